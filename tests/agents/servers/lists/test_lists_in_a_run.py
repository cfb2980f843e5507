"""A server that lists other tools after a call: none is used before a person has accepted it, and all say so."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import CallsheetTools, Settings, create_supervisor
from callsheet.agents import ToolRegistry
from callsheet.agents.calls.review import decision_on
from callsheet.graphs import Loaded, Policy, User, load
from commands import run
from scripted_model import ScriptedModel, calls

SERVER = """
import json, sys
def tool(name, about): return {"name": name, "description": about, "inputSchema": {"type": "object"}}
tools = [tool("open_project", "Opens a project."), tool("list_files", "Lists the files."), tool("read", "Reads.")]
def send(**message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    number = asked.get("id")
    if number is None: continue
    if asked["method"] == "initialize":
        about = {"capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "ide", "version": "1"}}
        send(id=number, result={"protocolVersion": "2025-06-18", **about})
    elif asked["method"] == "tools/list":
        send(id=number, result={"tools": tools})
    elif asked["method"] == "tools/call":
        if asked["params"]["name"] == "open_project":
            tools = [tools[0], tool("list_files", "Lists the files of the open project."), tool("build", "Builds it.")]
            send(method="notifications/tools/list_changed")
        send(id=number, result={"content": [{"type": "text", "text": "did " + asked["params"]["name"]}]})
    else:
        send(id=number, error={"code": -32601, "message": "Method not found"})
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    (tmp_path / "server.py").write_text(SERVER)
    file = tmp_path / "mcp.json"
    entry = {"command": sys.executable, "args": ["-S", str(tmp_path / "server.py")]}
    file.write_text(json.dumps({"mcpServers": {"ide": entry}}))
    return file


async def opened(config: Path, *then: str, **more: Any) -> tuple[ToolRegistry, dict[str, ToolMessage]]:
    """A run that opens a project, waits until the tools have changed, and calls others."""
    registry = ToolRegistry.from_catalog(load(config, yes=True, **more))
    bound = {tool.id: tool for tool in registry.bind(["ide/open_project", "ide/list_files"], "run").values()}
    answers = dict[str, ToolMessage]()
    before = registry.loaded
    for tool_id in ("ide/open_project", *then):
        call = {"type": "tool_call", "id": "1", "name": bound[tool_id].name, "args": {}}
        answers[tool_id] = await bound[tool_id].ainvoke(call)
        async with asyncio.timeout(10):
            while registry.loaded is before:
                await asyncio.sleep(0.02)
    await registry.close_run("run")
    registry.close()
    return registry, answers


def waiting(loaded: Loaded) -> list[tuple[str, str]]:
    return [(change.id, change.kind) for change in loaded.changes if change.later]


async def test_the_command_that_a_refusal_names_shows_and_accepts_the_change(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, answers = await opened(config, "ide/list_files")
    assert "look at it with `callsheet approve ide/list_files`" in answers["ide/list_files"].text

    def command(*words: str) -> tuple[int, str, str]:
        return run(capsys, *words, "--catalog", str(config), "--yes")

    status, out, _ = await asyncio.to_thread(command, "approve", "ide/list_files")
    assert (status, out.splitlines()[-1]) == (0, "1 accepted, 0 waiting")
    assert "Lists the files of the open project." in out
    _, answers = await opened(config, "ide/list_files")
    assert answers["ide/list_files"].text == "did list_files"
    status, out, _ = await asyncio.to_thread(command, "approve", "ide/build")
    assert (status, out.splitlines()[-1]) == (0, "1 accepted, 0 waiting")
    assert (await asyncio.to_thread(command, "approve", "ide/build"))[1] == "nothing waits for approval\n"
    registry, _ = await opened(config)
    assert "ide/build" in registry.catalog.tools


async def test_tools_listed_at_the_start_stay_accepted(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await opened(config)
    await asyncio.to_thread(run, capsys, "approve", "ide", "--catalog", str(config), "--yes")
    loaded = await asyncio.to_thread(load, config, yes=True)
    assert set(loaded.catalog.tools) == {"ide/open_project", "ide/list_files", "ide/read"}
    assert not loaded.changes
    assert not loaded.problems


async def test_check_and_the_next_load_say_what_is_new(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await opened(config)
    loaded = await asyncio.to_thread(load, config, yes=True)
    assert waiting(loaded) == [("ide/list_files", "changed"), ("ide/build", "new")]
    assert set(loaded.catalog.tools) == {"ide/open_project", "ide/list_files", "ide/read"}
    told = "\n".join(str(problem) for problem in loaded.problems)
    assert "list_files was not what was accepted when a run had gone on for a while" in told
    assert "build appeared in a run, and is new since its server was accepted" in told
    _, out, _ = await asyncio.to_thread(run, capsys, "check", "--catalog", str(config), "--yes")
    assert "ide/build: appeared in a run" in out
    assert "is gone from its server" not in out


async def test_a_new_tool_is_refused_as_new_and_with_the_command_that_shows_it(config: Path) -> None:
    registry, _ = await opened(config)
    why = registry.refused(["ide/build"])["ide/build"]
    assert why == "it was added after its server was accepted: look at it with `callsheet approve ide/build`"


async def test_a_registry_tells_the_news_of_its_agents_to_those_who_may_know(config: Path) -> None:
    policy = Policy(default="allow", users={"ann": {"deny": ["ide/build"]}})
    registry, _ = await opened(config, policy=policy)
    assert registry.news({"ide"}) == (
        "ide listed other tools than were accepted (changed: list_files; new: build): "
        "review it with `callsheet approve ide`"
    )
    assert "build" not in registry.news({"ide"}, User("ann"))
    assert registry.news({"other"}) == ""


async def test_the_answer_says_what_is_new(config: Path) -> None:
    await opened(config)
    loaded = await asyncio.to_thread(load, config, yes=True)
    workflow = create_supervisor(loaded, settings=Settings(allow=("ide/open_project",)))
    thread: Any = {"configurable": {"thread_id": "1"}}
    app = workflow.compile(checkpointer=InMemorySaver())
    state = await app.ainvoke({"messages": [HumanMessage("open project")]}, thread)
    assert "ide listed other tools than were accepted" in state["messages"][-1].text


async def test_another_entry_of_the_same_name_inherits_no_news(config: Path) -> None:
    await opened(config)
    entries = json.loads(config.read_text())
    entries["mcpServers"]["ide"]["env"] = {"LANG": "de"}
    config.write_text(json.dumps(entries))
    assert waiting(await asyncio.to_thread(load, config, yes=True)) == []


class Run:
    """A run whose worker opens a project, asks for the tool that its server then adds, and calls it."""

    def __init__(self, loaded: Loaded, *more: str, **settings: Any) -> None:
        wants = [calls("ide_open_project"), calls("need_tool", tools=["ide/build", *more]), calls("ide_build")]
        ends = calls("finish", status="done", answer="Built.")
        self.model = ScriptedModel(replies=[*wants, ends])
        chosen = {"planning": "none", "allow": ("ide/open_project",), **settings}
        workflow = create_supervisor(loaded, worker_model=self.model, settings=Settings(**chosen))
        self.app = workflow.compile(checkpointer=InMemorySaver())
        self.thread: Any = {"configurable": {"thread_id": "1"}}

    async def asked(self) -> Any:
        """Starts the run, and returns what it asks first."""
        state = await self.app.ainvoke({"messages": [HumanMessage("open project and build it")]}, self.thread)
        return self._question(state)

    async def answer(self, question: Any, word: Any, **more: Any) -> Any:
        """Answers a question, and returns the next one, or the end."""
        resume = {question.id: decision_on(word, question.value, **more)}
        state = await self.app.ainvoke(Command(resume=resume), self.thread)
        return self._question(state)

    def _question(self, state: Any) -> Any:
        waiting = state.get("__interrupt__")
        return waiting[0] if waiting else state

    def said(self, name: str) -> str:
        """What the model was told as the answer of its last call of a tool."""
        messages = self.model.shown[-1]["messages"]
        return next(one.text for one in reversed(messages) if isinstance(one, ToolMessage) and one.name == name)


async def test_a_person_accepts_a_late_tool_in_the_run(config: Path) -> None:
    run = Run(await asyncio.to_thread(load, config, yes=True))
    question = await run.asked()
    asked = question.value
    assert "[its server now also has ide/build; need_tool adds what you name" in run.said("ide_open_project")
    assert asked["action_requests"][0]["name"] == "accept_tool"
    assert asked["action_requests"][0]["args"]["definition"]["description"] == "Builds it."
    assert "Builds it." in asked["action_requests"][0]["description"]
    assert (asked["type"], asked["tool"]) == ("new_tool", "ide/build")
    assert asked["review_configs"][0]["allowed_decisions"] == ["approve", "reject"]
    assert asked["shown"].splitlines()[:3] == ["Name: build", "Description: Builds it.", "Arguments: none"]
    assert asked["action_requests"][0]["description"].endswith(asked["shown"])
    call = await run.answer(question, "approve")
    assert run.said("need_tool").startswith("You can now call:\nide_build")
    assert call.value["tool"] == "ide/build"  # it is accepted, and its call needs the usual approval
    ended = await run.answer(call, "approve")
    assert run.said("ide_build").startswith("did build")
    assert ended["messages"][-1].text.startswith("Built.")
    later = await asyncio.to_thread(load, config, yes=True, anew=True)
    assert ("ide/build", "new") not in waiting(later)


async def test_a_late_tool_that_a_person_rejects_stays_out(config: Path) -> None:
    run = Run(await asyncio.to_thread(load, config, yes=True))
    ended = await run.answer(await run.asked(), "reject", message="not today")
    assert run.said("need_tool") == "ide/build cannot be used now: a person has not accepted it: not today"
    assert "review it with `callsheet approve ide`" in ended["messages"][-1].text
    assert ("ide/build", "new") in waiting(await asyncio.to_thread(load, config, yes=True))


async def test_each_late_tool_is_a_question_of_its_own(config: Path) -> None:
    server = config.parent / "server.py"
    server.write_text(SERVER.replace('tool("build", "Builds it.")]', 'tool("build", ""), tool("deploy", "Ships it.")]'))
    run = Run(await asyncio.to_thread(load, config, yes=True), "ide/deploy")
    second = await run.answer(await run.asked(), "reject")
    assert second.value["action_requests"][0]["args"]["tool"] == "ide/deploy"
    await run.answer(second, "approve")
    told = run.said("need_tool")
    assert "ide_deploy (agent ide): Ships it." in told
    assert "ide/build cannot be used now: a person has not accepted it" in told


async def test_where_nobody_is_asked_the_refusal_names_the_command(config: Path) -> None:
    run = Run(await asyncio.to_thread(load, config, yes=True), approval="never")
    ended = await run.asked()
    assert "its server now also has" not in run.said("ide_open_project")
    assert "look at it with `callsheet approve ide/build`" in run.said("need_tool")
    assert "messages" in ended


async def test_an_answer_about_another_definition_accepts_nothing(config: Path) -> None:
    run = Run(await asyncio.to_thread(load, config, yes=True))
    question = await run.asked()
    other = {**question.value, "hash": "0" * 64}
    again = await run.app.ainvoke(Command(resume={question.id: decision_on("approve", other)}), run.thread)
    (asked,) = again["__interrupt__"]
    assert asked.value["problem"].startswith("its definition has changed since this was asked")
    assert ("ide/build", "new") in waiting(await asyncio.to_thread(load, config, yes=True))


async def test_an_agent_with_the_middleware_is_told_of_late_tools_and_uses_one(config: Path) -> None:
    wants = [calls("ide_open_project"), calls("need_tool", tools=["ide/build"]), calls("ide_build")]
    model = ScriptedModel(replies=[*wants, AIMessage("Built.")])
    loaded = await asyncio.to_thread(load, config, yes=True)
    tools = await asyncio.to_thread(CallsheetTools, loaded)
    agent: Any = create_agent(model, middleware=[tools], checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "1"}}
    state = await agent.ainvoke({"messages": [HumanMessage("open project and build it")]}, thread)
    for word in ("tool_approval", "new_tool", "tool_approval"):
        (question,) = state["__interrupt__"]
        assert question.value["type"] == word
        state = await agent.ainvoke(Command(resume={question.id: decision_on("approve", question.value)}), thread)
    assert state["messages"][-1].text == "Built."
    answers = [one for one in model.shown[-1]["messages"] if isinstance(one, ToolMessage)]
    assert [one.text.count("its server now also has ide/build") for one in answers] == [1, 0, 0]
    assert answers[1].text.startswith("You can now call:\nide_build")
    assert answers[2].text.startswith("did build")
