"""Resources and prompts of the servers behind the gateway, driven by the SDK's client of both eras of the protocol."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from mcp import MCPError, types

from callsheet.agents.servers.catalogs.listings import PROMPT, RESOURCE, entries_of, resources_of
from callsheet.graphs import Catalog, Policy
from callsheet.orchestrator.server.gateway.catalog_gateway import (
    PAGE,
    Caller,
    page_of,
    prompt_named,
    read_result,
    resource_named,
)
from callsheet.orchestrator.server.gateway.mcp_gateway import GatewayServer
from callsheet.retrievers import MiniLMEmbeddings
from gateway_desk import APPROVED, Desk, answering, said

pytestmark = pytest.mark.server
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"])
NOTES = "callsheet:works/note://"
NOTE = entries_of("resources/list", [{"uri": "note://a", "name": "a"}])
DIARY = "works/template:note://diary/{day}"


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory, minilm: MiniLMEmbeddings) -> Iterator[Desk]:
    made = Desk(tmp_path_factory.mktemp("two"), minilm, names=("mirror", "works"), trusted=False)
    yield made
    made.registry.close()


@ERAS
async def test_a_search_finds_them_beside_the_tools(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        drawer = said(await client.call_tool("find_tools", {"query": "in which drawer of the workshop is the saw?"}))
        length = said(await client.call_tool("find_tools", {"query": "how long is this name?"}))
    selection = await desk.gateway.find("how long is this name?", Caller("x"))
    assert "works/resource:note://inventory: What lies in the workshop" in drawer
    assert [line.split(":")[0] for line in length.splitlines()] == [tool.id for tool in selection.tools]


@ERAS
async def test_they_are_read_with_the_tools_of_the_gateway(desk: Desk, mode: str) -> None:
    async with desk.client(mode) as client:
        described = await client.call_tool("read_tools", {"tools": ["works/prompt:report", DIARY]})
        read = await client.call_tool("call_tool", {"tool": "works/resource:note://inventory"})
        day = await client.call_tool("call_tool", {"tool": DIARY, "arguments": {"day": "1 May"}})
        asked = {"tool": "works/prompt:report", "arguments": {"topic": "owls"}}
        report = await client.call_tool("call_tool", asked)
        greeting = await client.call_tool("call_tool", {"tool": "works/prompt:greeting"})
        wrong = await client.call_tool("call_tool", {"tool": "works/prompt:report"})
    prompt, template = map(json.loads, said(described).splitlines())
    assert prompt["inputSchema"]["required"] == ["topic"]
    assert template["inputSchema"]["required"] == ["day"]
    assert said(read) == "saw: drawer 3"
    assert read.structured_content is None
    assert said(day) == "on 1 May it rained"
    assert said(report) == "Write a short report about owls."
    assert said(greeting) == "[user]\nGood day.\n[assistant]\nGood day to you."
    assert wrong.is_error
    assert "'topic' is a required property" in said(wrong)


@ERAS
async def test_the_protocol_lists_and_reads_them_by_server(two: Desk, mode: str) -> None:
    async with two.client(mode) as client:
        resources = {one.uri: one for one in (await client.list_resources()).resources}
        (template, _) = (await client.list_resource_templates()).resource_templates
        prompts = {one.name: one for one in (await client.list_prompts()).prompts}
        (text,) = (await client.read_resource(f"{NOTES}inventory")).contents
        (image,) = (await client.read_resource("callsheet:mirror/note://pixel")).contents
        rendered = await client.get_prompt("mirror/greeting")
    assert list(resources) == [f"callsheet:{n}/note://{r}" for n in ("mirror", "works") for r in ("inventory", "pixel")]
    assert resources[f"{NOTES}inventory"].title == "Inventory"
    assert resources[f"{NOTES}pixel"].mime_type == "image/png"
    assert template.uri_template == "callsheet:mirror/note://diary/{day}"
    assert [argument.required for argument in prompts["works/report"].arguments or ()] == [True, False]
    assert isinstance(text, types.TextResourceContents)
    assert (text.uri, text.text) == (f"{NOTES}inventory", "saw: drawer 3")
    assert isinstance(image, types.BlobResourceContents)
    assert base64.b64decode(image.blob).startswith(b"\x89PNG")
    assert [message.role for message in rendered.messages] == ["user", "assistant"]


@ERAS
async def test_what_takes_arguments_along_is_approved_like_a_call(two: Desk, mode: str) -> None:
    asked: list[types.ElicitRequestFormParams] = []
    async with two.client(mode, answering(APPROVED, asked)) as client:
        (day,) = (await client.read_resource(f"{NOTES}diary/monday")).contents
        prompt = await client.get_prompt("works/report", {"topic": "owls"})
    async with two.client(mode, answering(types.ElicitResult(action="decline"))) as client:
        with pytest.raises(MCPError, match="a person refused this call"):
            await client.read_resource(f"{NOTES}diary/monday")
    async with two.client(mode) as client:
        with pytest.raises(MCPError, match="this client cannot ask one"):
            await client.get_prompt("works/report", {"topic": "owls"})
    assert isinstance(day, types.TextResourceContents)
    assert (day.uri, day.text) == (f"{NOTES}diary/monday", "on monday it rained")
    assert isinstance(prompt.messages[0].content, types.TextContent)
    first, second = (one.message for one in asked)
    assert ("works/template" in first, "works/prompt" in second) == (True, True)


@pytest.mark.parametrize(
    "uri", ["note://inventory", f"{NOTES}nonsense", "callsheet:nobody/note://inventory", "", NOTES]
)
async def test_an_unknown_resource_is_a_protocol_error(desk: Desk, uri: str) -> None:
    async with desk.client() as client:
        with pytest.raises(MCPError, match="no resource"):
            await client.read_resource(uri)
        with pytest.raises(MCPError, match="no prompt 'works/measure'"):
            await client.get_prompt("works/measure")
        called = await client.call_tool("call_tool", {"tool": "works/resource:note://nonsense"})
    assert "no tool 'works/resource:note://nonsense'" in said(called)


async def test_a_policy_hides_them(
    two: Desk, tmp_path_factory: pytest.TempPathFactory, minilm: MiniLMEmbeddings
) -> None:
    policy = Policy(default="allow", deny=("works/resource:*", "works/prompt:report", DIARY))
    made = Desk(tmp_path_factory.mktemp("policy"), minilm, policy=policy)
    try:
        async with made.client() as client:
            assert (await client.list_resources()).resources == []
            assert (await client.list_resource_templates()).resource_templates == []
            assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["works/greeting"]
            found = said(await client.call_tool("find_tools", {"query": "in which drawer of the workshop is the saw?"}))
            called = await client.call_tool("call_tool", {"tool": "works/resource:note://inventory"})
            for uri in (f"{NOTES}inventory", f"{NOTES}diary/monday"):
                with pytest.raises(MCPError, match="no resource"):
                    await client.read_resource(uri)
    finally:
        made.registry.close()
    assert "resource:" not in found
    assert "no tool 'works/resource:note://inventory'" in said(called)
    assert made.log == []


@ERAS
async def test_a_client_is_told_that_they_have_changed(desk: Desk, mode: str) -> None:
    server = GatewayServer(desk.gateway, lambda context: Caller("told")).server
    told: list[str] = []

    async def hear(message: Any) -> None:
        told.append(type(message).__name__)

    loaded = desk.loaded
    async with desk.client(mode, server=server, message_handler=hear) as client:
        listening = asyncio.create_task(_listen(client)) if mode == "auto" else None
        assert len((await client.list_resources()).resources) == 2
        await asyncio.sleep(0.2)
        desk.registry.follow(type(loaded)(loaded.catalog, **{**loaded.details, "resources": {}}, label=loaded.label))
        async with asyncio.timeout(10):
            while "PromptListChangedNotification" not in told:
                await asyncio.sleep(0.02)
        none = (await client.list_resources()).resources
        desk.registry.follow(loaded)
        if listening:
            listening.cancel()
    assert none == []
    assert {"ResourceListChangedNotification", "ToolListChangedNotification"} & set(told) == {
        "ResourceListChangedNotification"
    }


async def _listen(client: Any) -> None:
    async with client.listen(resources_list_changed=True, prompts_list_changed=True) as changes:
        async for _ in changes:
            pass


def _many(number: int) -> Catalog:
    listed = [{"uri": f"x://{n:05}", "name": "x"} for n in range(number)]
    return Catalog(agents=(resources_of("a b", entries_of("resources/list", listed))[0],))


@pytest.mark.parametrize("number", [0, 1, PAGE, PAGE + 1, 250])
def test_long_lists_come_in_pages(number: int) -> None:
    catalog, cursor, found = _many(number), None, list[str]()
    for _ in range(1 + (number - 1) // PAGE if number else 1):
        page, cursor = page_of(catalog, RESOURCE, cursor)
        assert len(page) <= PAGE
        found += [one.uri for one in page]
    assert cursor is None
    assert found == [f"callsheet:a%20b/x://{n:05}" for n in range(number)]


@pytest.mark.parametrize("agent", ["works", "io.github.kim/works"])
def test_a_server_may_have_a_slash_in_its_name(agent: str) -> None:
    made, _ = resources_of(agent, [*entries_of("prompts/list", [{"name": "a/b"}]), *NOTE])
    catalog = Catalog(agents=(made,))
    (prompt,), _ = page_of(catalog, PROMPT, None)
    assert prompt_named(catalog, prompt.name) == f"{agent}/prompt:a/b"
    (note,), _ = page_of(catalog, RESOURCE, None)
    resource, _ = resource_named(catalog, note.uri)
    artifact = {"tool": resource, "structured": {"contents": [{"uri": "note://a", "text": "x"}]}}
    read = read_result(note.uri, ToolMessage("x", tool_call_id="1", artifact=artifact))
    assert [content.uri for content in read.contents] == [note.uri]


def test_a_uri_is_read_by_the_server_that_it_names() -> None:
    listed = [{"uriTemplate": template, "name": "x"} for template in ("x://{id}", "x://list{?page}", "y://{id")]
    catalog = Catalog(agents=(resources_of("a b", entries_of("resources/templates/list", listed))[0],))
    assert list(catalog.tools) == ["a b/template:x://{id}", "a b/template:x://list{?page}"]
    assert resource_named(catalog, "callsheet:a%20b/x://1%2F2") == ("a b/template:x://{id}", {"id": "1/2"})
    with pytest.raises(MCPError):
        resource_named(catalog, f"callsheet:a%20b/x://{'1' * 5_000}")
