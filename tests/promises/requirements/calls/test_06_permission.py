"""Requirement 6: a policy says who may see and call what, before ranking and again at the call; deny wins."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from callsheet import AgentGraphRetriever, Settings, create_supervisor
from callsheet.agents import ToolRegistry
from callsheet.graphs import Loaded, Policy, SettingsError, load
from callsheet.orchestrator import CallsheetTools, create_retriever_app
from fleet import Fleet, definition
from scripted_model import ScriptedModel, calls, ended, planned

POLICY = {
    "default": "deny",
    "allow": ["files"],
    "deny": ["files/delete*"],
    "users": {"ann": {"allow": ["shell"]}},
    "groups": {"staff": {"members": ["bob"], "allow": ["mail", "files/delete*"]}},
}
REQUEST = "read a file from the disk"
UNASKED = Settings(agents=1, tools=1, approval="never")


def as_user(name: str, **more: Any) -> Any:
    return {"configurable": {"langgraph_auth_user": {"identity": name, **more}, "thread_id": "1"}}


@pytest.fixture
def loaded(fleet: Fleet) -> Loaded:
    """Three servers; reading needs nothing, copying needs the shell."""
    needs = {"callsheet/depends_on": [{"tool": "shell/execute", "kind": "tool_directly"}]}
    fleet.serve(
        "files",
        definition("read_file", "Reads a file from the disk."),
        definition("delete_file", "Deletes a file from the disk."),
        definition("copy_file", "Copies a file on the disk.", _meta=needs),
    )
    fleet.serve("shell", definition("execute", "Executes a command that reads a file from the disk."))
    fleet.serve("mail", definition("send_mail", "Sends a letter to a person."))
    return load(fleet.config, yes=True, policy=Policy(**POLICY))


def answered(told: Any) -> bool:
    return isinstance(told[-1], ToolMessage)


async def called(registry: ToolRegistry, tool: str, user: Any = None) -> str:
    (bound,) = registry.bind([tool], "run", user=user).values()
    answer = await bound.ainvoke({"type": "tool_call", "id": "1", "name": bound.name, "args": {}})
    await registry.close_run("run")
    return "done" if answer.status == "success" else answer.text


async def test_a_forged_call_is_refused_and_no_byte_is_sent(fleet: Fleet, loaded: Loaded) -> None:
    registry, before = ToolRegistry.from_catalog(loaded), fleet.bytes_sent("shell")
    said = await called(registry, "shell/execute")
    assert "agent 'shell', tool 'execute': the policy does not allow" in said
    assert fleet.bytes_sent("shell") == before  # not even a greeting
    assert await called(registry, "files/read_file") == "done"


async def test_a_call_that_something_renames_is_refused_and_no_byte_is_sent(fleet: Fleet, loaded: Loaded) -> None:
    @wrap_tool_call
    async def renaming(request: Any, handler: Any) -> Any:
        return await handler(request.override(tool_call={**request.tool_call, "name": "shell_execute"}, tool=None))

    before = fleet.bytes_sent("shell")
    model = ScriptedModel(replies=[calls("files_read_file"), AIMessage("done")])
    middleware: list[Any] = [renaming, CallsheetTools(loaded, approval="never")]
    agent: Any = create_agent(model, middleware=middleware)
    await agent.ainvoke({"messages": [HumanMessage(REQUEST)]})
    assert fleet.bytes_sent("shell") == before
    assert fleet.calls("files") == []


async def test_a_tool_of_an_earlier_step_is_refused_and_no_byte_is_sent(fleet: Fleet, loaded: Loaded) -> None:
    planner = ScriptedModel(replies=[planned(("1", "send a letter", []), ("2", "read a file", ["1"]))])
    model = ScriptedModel(replies=[lambda told: ended(told[-1]) if answered(told) else calls("mail_send_mail")])
    app = create_supervisor(loaded, planner_model=planner, worker_model=model, settings=UNASKED).compile()
    state = await app.ainvoke({"messages": [HumanMessage("send a letter and read a file")]}, as_user("bob"))
    assert [state["results"][i]["status"] for i in "12"] == ["done", "failed"]
    assert fleet.calls("mail") == ["send_mail"]
    assert fleet.calls("files") == []


async def test_a_tool_that_was_granted_before_is_refused_once_it_is_not(fleet: Fleet, loaded: Loaded) -> None:
    registry = ToolRegistry.from_catalog(loaded)
    (bound,) = registry.bind(["files/read_file"], "run").values()
    assert await bound.ainvoke({}) == "files did read_file"
    registry.follow(load(loaded, policy=Policy(default="deny")))
    before = fleet.bytes_sent("files")
    assert "the policy does not allow" in await bound.ainvoke({})
    assert fleet.bytes_sent("files") == before
    await registry.close_run("run")


async def test_a_resumed_run_is_held_to_who_resumes_it(fleet: Fleet, loaded: Loaded, cut_off: Any) -> None:
    memory = InMemorySaver()
    await cut_off(create_supervisor(loaded, settings=UNASKED), "execute a command", memory, as_user("ann"))
    model = ScriptedModel(replies=[calls("shell_execute"), AIMessage("no")])
    again = create_supervisor(loaded, worker_model=model, settings=UNASKED).compile(checkpointer=memory)
    before = fleet.bytes_sent("shell")
    await again.ainvoke(None, as_user("eve"))
    assert fleet.bytes_sent("shell") == before
    assert all("shell_execute" not in shown["tools"] for shown in model.shown)


@pytest.mark.parametrize(
    ("user", "seen"),
    [
        ("", {"files/read_file"}),
        ("eve", {"files/read_file"}),
        ("ann", {"files/read_file", "files/copy_file", "shell/execute"}),
        ("bob", {"files/read_file", "mail/send_mail"}),
    ],
)
def test_nobody_finds_what_they_may_not_see(loaded: Loaded, user: str, seen: set[str]) -> None:
    retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:").within(user)
    selection = retriever.select("delete, copy, read, execute and mail files", tools=50, agents=50)
    assert {tool.id for tool in selection.tools} == seen
    assert set(retriever.catalog.tools) == seen
    traced = {node.id for node in selection.trace.nodes} | {cut.id for cut in selection.trace.cut}
    assert traced <= seen | {tool.split("/")[0] for tool in seen}
    assert {tool for document in retriever.invoke("files") for tool in document.metadata["tools"]} <= seen


def test_a_tool_that_needs_a_forbidden_one_is_left_out_and_the_trace_says_so(loaded: Loaded) -> None:
    selection = AgentGraphRetriever.from_catalog(loaded, index=":memory:").select("copy a file")
    assert "files/copy_file" not in {tool.id for tool in selection.tools}
    assert "they require one that is not: files/copy_file" in selection.trace.policy
    assert "shell" not in json.dumps(selection.to_dict(trace=True))


async def test_the_user_of_the_server_decides_what_may_be_called(fleet: Fleet, loaded: Loaded) -> None:
    retriever = AgentGraphRetriever.from_catalog(loaded, index=":memory:")
    app = create_retriever_app(retriever).compile()
    query: Any = {"query": "execute a command"}
    found = {}
    for user in ("ann", "eve"):
        state = await app.ainvoke(query, as_user(user))
        found[user] = {tool["id"] for agent in state["selection"]["agents"] for tool in agent["tools"]}
    assert "shell/execute" in found["ann"]
    assert found["eve"] <= {"files/read_file"}
    member = await app.ainvoke({"query": "send a letter"}, as_user("zoe", groups=["staff"]))
    assert member["selection"]["agents"][0]["id"] == "mail"


async def test_a_worker_does_not_get_what_it_asks_for_against_the_policy(fleet: Fleet, loaded: Loaded) -> None:
    def reply(told: Any) -> AIMessage:
        return AIMessage("no") if answered(told) else calls("need_tool", tools=["shell/execute"])

    model = ScriptedModel(replies=[reply])
    app = create_supervisor(loaded, worker_model=model, settings=UNASKED).compile()
    offered, told = {}, {}
    for user in ("ann", "eve"):
        model.shown.clear()
        await app.ainvoke({"messages": [HumanMessage("read a file")]}, as_user(user))
        assert isinstance(model.shown[-1]["messages"][-1], ToolMessage)
        offered[user] = {name for shown in model.shown for name in shown["tools"]}
        told[user] = model.shown[-1]["messages"][-1].text
    assert "shell_execute" in offered["ann"]
    assert told["eve"].splitlines()[0] == "There is no tool 'shell/execute'"
    assert offered["eve"] == {"files_read_file", "run_program", "finish", "need_tool", "read_result"}


def test_a_policy_is_read_from_a_file(
    fleet: Fleet, loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(POLICY))
    assert load(fleet.config, yes=True, policy=file).policy == loaded.policy
    monkeypatch.setenv("CALLSHEET_POLICY", str(file))
    assert load(fleet.config, yes=True).policy == loaded.policy
    assert set(AgentGraphRetriever.from_catalog(fleet.config, yes=True, index=":memory:").catalog.tools) == {
        "files/read_file"
    }
    file.write_text("{")
    with pytest.raises(SettingsError, match="cannot be read"):
        load(fleet.config, yes=True)


def test_a_supervisor_takes_no_parts_with_another_policy(loaded: Loaded) -> None:
    with pytest.raises(SettingsError, match="ToolRegistry has another policy"):
        create_supervisor(loaded, registry=ToolRegistry(loaded.catalog, loaded.connections))
