"""The gateway over a real server, driven by the SDK's client of both eras of the protocol."""

from __future__ import annotations

import asyncio
import base64
import json
from pathlib import Path
from typing import Any

import pytest
from mcp import MCPError, types

from callsheet.agents import ToolRegistry
from callsheet.graphs import Agent, Catalog, Policy, SettingsError, Tool, UnknownNameError, User, load
from callsheet.graphs.trust.consent import StandingApprovals
from callsheet.graphs.trust.policy import Grants
from callsheet.orchestrator.server.gateway.catalog_gateway import (
    MOST_WAITING,
    Caller,
    Gateway,
    Waiting,
    found_text,
)
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings
from callsheet.retrievers.roster import roster
from local_gateway import APPROVED, LocalGateway, answering, logged, said

pytestmark = pytest.mark.server
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])


@ERAS
async def test_a_client_finds_reads_and_calls(local: LocalGateway, mode: str) -> None:
    async with local.client(mode) as client:
        listed = [tool.name for tool in (await client.list_tools()).tools]
        found = await client.call_tool("find_tools", {"query": "how long is this name?"})
        read = await client.call_tool("read_tools", {"tools": ["works/measure"]})
        called = await client.call_tool("call_tool", {"tool": "works/measure", "arguments": {"name": "Oslo"}})
    assert listed == ["find_tools", "read_tools", "call_tool"]
    assert said(found).startswith("works/measure: Measures the length of a name")
    assert json.loads(said(read))["inputSchema"]["required"] == ["name"]
    assert called.structured_content == {"length": 4}
    assert not called.is_error


@ERAS
async def test_an_image_arrives_as_an_image(local: LocalGateway, mode: str) -> None:
    (text, image) = (await local.call("works/paint", mode)).content
    assert isinstance(text, types.TextContent)
    assert isinstance(image, types.ImageContent)
    assert text.text.startswith("one pixel")
    assert base64.b64decode(image.data).startswith(b"\x89PNG")
    assert image.mime_type == "image/png"


@ERAS
async def test_progress_is_passed_on(local: LocalGateway, mode: str) -> None:
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with local.client(mode) as client:
        arguments: dict[str, Any] = {"tool": "works/count", "arguments": {"steps": 3}}
        counted = await client.call_tool("call_tool", arguments, progress_callback=hear)
    assert said(counted) == "counted to 3"
    assert heard == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


@ERAS
async def test_a_cancelled_call_is_called_off_at_its_server(local: LocalGateway, mode: str) -> None:
    async with local.client(mode) as client:
        call = asyncio.create_task(client.call_tool("call_tool", {"tool": "works/sleep"}))
        await logged(local, ["asleep"])
        call.cancel()
        await logged(local, ["asleep", "called off"])
        after = await client.call_tool("call_tool", {"tool": "works/measure", "arguments": {"name": "x"}})
    assert after.structured_content == {"length": 1}


@ERAS
async def test_a_call_is_sent_after_a_person_approved_it(local: LocalGateway, mode: str) -> None:
    asked: list[str] = []

    async def approve(context: Any, request: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(request.message)
        assert local.log == []
        return APPROVED

    written = await local.call("works/write", mode, approve, text="hello")
    assert said(written) == "wrote hello"
    assert local.log == ["wrote hello"]
    (message,) = asked
    assert "works/write" in message
    assert '"text": "hello"' in message


@ERAS
@pytest.mark.parametrize(
    "answer",
    [
        types.ElicitResult(action="decline"),
        types.ElicitResult(action="cancel"),
        types.ElicitResult(action="accept", content={"decision": "reject", "message": "not today"}),
    ],
)
async def test_a_call_that_a_person_refused_is_not_sent(
    local: LocalGateway, mode: str, answer: types.ElicitResult
) -> None:
    written = await local.call("works/write", mode, answering(answer), text="hello")
    assert written.is_error
    assert "a person refused this call" in said(written)
    assert ("not today" in said(written)) == bool(answer.content)
    assert local.log == []


async def test_the_end_of_long_arguments_is_shown(local: LocalGateway) -> None:
    asked: list[types.ElicitRequestFormParams] = []
    refuse = answering(types.ElicitResult(action="decline"), asked)
    await local.call("works/write", "auto", refuse, text="a" * 50_000 + "; rm -rf /")
    (question,) = asked
    assert "; rm -rf /" in question.message
    assert "ATTENTION: 50,026 characters in all: each text is shortened" in question.message
    assert len(question.message) < 6_000


async def test_waiting_calls_are_bounded_for_each_user(local: LocalGateway) -> None:
    anna, bert = Caller("a", User("anna")), Caller("b", User("bert"))
    first = await local.gateway.call("works/write", {"text": "x"}, anna)
    assert isinstance(first, Waiting)
    others = [await local.gateway.call("works/write", {"text": "x"}, bert) for _ in range(MOST_WAITING + 1)]
    assert local.gateway.relay.waiting(first.id, anna.user) == first
    with pytest.raises(SettingsError):
        local.gateway.relay.waiting(others[0].id or "", bert.user)
    for waiting in (*others[1:], first):
        assert isinstance(waiting, Waiting)
        local.gateway.relay.drop(waiting.id, (anna if waiting is first else bert).user)


@ERAS
async def test_an_invalid_answer_of_a_client_is_asked_for_again(local: LocalGateway, mode: str) -> None:
    answers = iter(["perhaps", "approve"])
    asked: list[str] = []

    async def answer(context: Any, request: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(request.message)
        return types.ElicitResult(action="accept", content={"decision": next(answers)})

    assert not (await local.call("works/write", mode, answer, text="hello")).is_error
    assert len(asked) == 2
    assert "Note: " in asked[1]


@ERAS
async def test_a_client_that_cannot_ask_gets_the_way_to_allow_the_tool_for_good(local: LocalGateway, mode: str) -> None:
    written = await local.call("works/write", mode, text="hello")
    assert written.is_error
    loaded = local.gateway.registry.loaded
    allow = f"callsheet trust allow works/write --catalog {loaded.label}"
    assert f"Nothing was sent. To allow this tool for good, a person runs `{allow}`" in said(written)
    assert "allow works " not in said(written)  # its server makes no claim that could be believed
    assert local.log == []
    standing, tool = StandingApprovals.of(loaded.label), loaded.catalog.tool("works/write")
    assert standing is not None
    standing.add(tool, loaded.pin(tool))
    assert not (await local.call("works/write", mode, text="hello")).is_error
    standing.revoke([tool.id])
    assert (await local.call("works/write", mode, text="hello")).is_error
    assert len(local.log) == 1


@ERAS
async def test_a_client_that_asks_is_told_always_once(local: LocalGateway, mode: str) -> None:
    heard: list[Any] = []
    always = answering(types.ElicitResult(action="accept", content={"decision": "always"}), heard)
    for _ in range(2):
        assert not (await local.call("works/write", mode, always, text="hello")).is_error
    (asked,) = heard
    offered = [one["const"] for one in asked.requested_schema["properties"]["decision"]["oneOf"]]
    assert offered == ["approve", "always", "reject"]
    loaded = local.gateway.registry.loaded
    (standing,) = filter(None, [StandingApprovals.of(loaded.label)])
    assert standing.revoke(["works/write"]) == 1
    assert (await local.call("works/write", mode, text="hello")).is_error


async def test_a_skill_is_read_and_not_called(minilm: MiniLMEmbeddings, tmp_path: Path) -> None:
    skill = tmp_path / "minutes" / "SKILL.md"
    skill.parent.mkdir()
    skill.write_text("---\nname: minutes\ndescription: Write the minutes of a meeting.\n---\nBegin with the date.")
    loaded = load(tmp_path)
    retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:", embeddings=minilm)
    gateway = Gateway(retriever, ToolRegistry.from_catalog(loaded))
    (skill_id,) = loaded.catalog.skills_by_id
    assert "Begin with the date." in gateway.read([skill_id], Caller("desk"))
    with pytest.raises(UnknownNameError, match=f"{skill_id!r} is a skill, not a tool: read it with read_tools"):
        await gateway.call(skill_id, {}, Caller("desk"))


@pytest.mark.parametrize(
    ("name", "arguments", "told"),
    [
        ("call_tool", {"tool": "works/write", "arguments": {"txt": "hello"}}, "the arguments do not fit"),
        ("call_tool", {"tool": "works/measurex"}, "no tool 'works/measurex'"),
        ("call_tool", {"tool": "works/measure", "arguments": {"nam": "x"}}, "name"),
        ("call_tool", {"tool": "works/measure", "arguments": "x"}, "arguments: Input should be a valid dictionary"),
        ("read_tools", {"tools": []}, "give 1 to 10 ids"),
        ("find_tools", {"query": 7}, "query: "),
        ("find_tools", {"query": "x", "top": 3}, "top: Extra inputs"),
    ],
)
async def test_a_wrong_call_is_an_error_that_says_what(
    local: LocalGateway, name: str, arguments: dict[str, Any], told: str
) -> None:
    asked: list[Any] = []
    async with local.client(elicited=answering(APPROVED, asked)) as client:
        result = await client.call_tool(name, arguments)
    assert result.is_error
    assert told in said(result)
    assert (asked, local.log) == ([], [])


async def test_an_unknown_tool_is_a_protocol_error(local: LocalGateway) -> None:
    async with local.client() as client:
        with pytest.raises(MCPError, match="no tool 'nonsense'; there are find_tools"):
            await client.call_tool("nonsense", {})


async def test_a_server_that_dies_is_an_error_and_is_started_again(local: LocalGateway) -> None:
    async with local.client() as client:
        died = await client.call_tool("call_tool", {"tool": "works/die"})
        after = await client.call_tool("call_tool", {"tool": "works/measure", "arguments": {"name": "x"}})
    assert died.is_error
    assert "works" in said(died)
    assert after.structured_content == {"length": 1}


# Names first: what a worker sees of the catalog, a client sees too


async def test_a_client_is_told_the_names_of_all_tools_at_the_start_and_in_its_first_search_only(
    local: LocalGateway,
) -> None:
    names = roster(local.loaded.catalog).text
    query = {"query": "how long is this name?"}
    async with local.client() as client:
        first = said(await client.call_tool("find_tools", query))
        second = said(await client.call_tool("find_tools", query))
        asked = said(await client.call_tool("find_tools", {}))
    assert local.server.instructions is not None
    assert local.server.instructions.endswith(names)
    assert first.endswith(names)
    assert "All agents" not in second
    assert second.startswith(first.partition("\n")[0])
    assert asked.endswith(names)


@pytest.mark.parametrize("name", ["works/measure", "measure", "Works/Measure", "works__measure"])
async def test_schemas_are_read_by_any_unique_name(local: LocalGateway, name: str) -> None:
    assert json.loads(local.gateway.read([name], Caller("desk")))["id"] == "works/measure"


async def test_the_id_of_an_agent_gives_its_tools(local: LocalGateway) -> None:
    lines = local.gateway.read(["works"], Caller("desk")).splitlines()
    assert lines[0].startswith("works")
    assert any(line.startswith("- measure: Measures the length of a name") for line in lines)


async def test_each_unknown_name_has_near_ids_and_nothing_is_read(local: LocalGateway) -> None:
    with pytest.raises(UnknownNameError) as error:
        local.gateway.read(["works/measure", "works/measurex", "zzz"], Caller("desk"))
    first, second = str(error.value).split("; ")
    assert first.startswith("no tool 'works/measurex' in the catalog (did you mean 'works/measure'")
    assert second == "no tool 'zzz' in the catalog"


async def test_where_users_see_different_tools_nobody_is_told_names_at_the_start(
    minilm: MiniLMEmbeddings, tmp_path: Path
) -> None:
    own = {"eve": Grants(deny=("works/measure",))}
    local = LocalGateway(tmp_path, minilm, policy=Policy(default="allow", users=own))
    assert local.server.instructions is not None
    assert "measure" not in local.server.instructions
    hidden = local.gateway.roster(Caller("desk", User("eve"))).text
    assert "measure" not in hidden
    assert "measure" in local.gateway.roster(Caller("desk", User("ann"))).text
    alike = LocalGateway(tmp_path, minilm, policy=Policy(default="allow", deny=("works/measure",)))
    assert "measure" not in str(alike.server.instructions)
    assert "works" in str(alike.server.instructions)


async def test_a_search_in_a_large_catalog_brings_the_names_of_the_agents_found(minilm: MiniLMEmbeddings) -> None:
    names = [f"get{chr(97 + at % 26) * 100}Record{at}" for at in range(300)]  # too long for the roster, few to embed
    tools = (Tool(agent="crm", name=name, description="Gets a record.") for name in names)
    letters = (Tool(agent="post", name=name, description="Writes letters.") for name in ("write_letter", "send_letter"))
    catalog = Catalog(agents=(Agent(id="crm", tools=tuple(tools)), Agent(id="post", tools=tuple(letters))))
    retriever = AgentGraphRetriever.from_catalog(catalog, index=":memory:", embeddings=minilm)
    gateway = Gateway(retriever, ToolRegistry.from_catalog(catalog))
    selection = await gateway.find("write a letter", Caller("desk"))
    assert not gateway.roster(Caller("desk")).whole
    assert "post: send_letter, write_letter" in found_text(selection, catalog).splitlines()
