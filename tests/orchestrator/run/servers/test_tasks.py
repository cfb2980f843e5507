"""Calls that their server works on as tasks, within a run: events, time limits, and a question that is out of date."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from callsheet.agents.calls.review import decision_on, flat
from callsheet.graphs import CallLedger, load
from scripted_model import ScriptedModel, calls, ended
from task_server import TaskServer

pytestmark = pytest.mark.server
THREAD: Any = {"configurable": {"thread_id": "1"}}


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TaskServer]:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    made = TaskServer(tmp_path)
    made.start()
    yield made
    made.kill()


def app_of(tasks: TaskServer, tool: str, *, saved: bool = True, **said: Any) -> Any:
    """A supervisor whose worker makes one call of a tool of the server; ``said`` are the terms of the server."""
    config = tasks.folder / "mcp.json"
    server = {"type": "http", "url": tasks.url, "callsheet": said}
    config.write_text(json.dumps({"mcpServers": {"bank": server}}))
    worker = ScriptedModel(replies=[calls(f"bank_{tool}", name="Ann"), lambda told: ended(told[-1])])
    settings = Settings(planning="none", allow=(f"bank/{tool}",), approval="ask" if saved else "never")
    workflow = create_supervisor(load(str(config), yes=True), worker_model=worker, settings=settings)
    return workflow.compile(checkpointer=InMemorySaver() if saved else None)


def order(tool: str) -> Any:
    return {"messages": [HumanMessage(f"{tool} for the name Ann")]}


@pytest.mark.parametrize("trusted", [True, False])
@pytest.mark.parametrize("saved", [True, False])
async def test_the_events_of_a_task_are_those_of_one_call(tasks: TaskServer, *, trusted: bool, saved: bool) -> None:
    app = app_of(tasks, "report", saved=saved, trusted=trusted)
    heard = list[Any]()
    parts = app.astream(order("report"), THREAD if saved else None, stream_mode="custom", subgraphs=True)
    async for _, event in parts:
        if event.get("event") in ("tool_started", "progress", "tool_finished"):
            heard.append((event["event"], event.get("text")))
            if event.get("text") == "working: page 3 of 3":
                tasks.release()
    assert [name for name, _ in heard if name != "progress"] == ["tool_started", "tool_finished"]
    assert (heard[0][0], heard[-1][0]) == ("tool_started", "tool_finished")
    told = [text for name, text in heard if name == "progress"]
    assert told[-2:] == ["working: page 3 of 3", "completed: done"]
    assert tasks.count("call report Ann") == 1


async def test_a_task_that_takes_too_long_is_asked_about_and_its_server_before_the_answer_counts(
    tasks: TaskServer,
) -> None:
    app = app_of(tasks, "later", limits={"longest_call": 60})
    state = await app.ainvoke(order("later"), THREAD)
    (asked,) = state["__interrupt__"]
    assert asked.value["type"] == "unknown_outcome"
    assert "has not ended within 60 s" in asked.value["why"]
    (entry,) = CallLedger(str(tasks.folder / "mcp.json")).entries()
    assert (entry.tool, entry.state, bool(entry.task)) == ("later", "unanswered", True)
    tasks.release()
    answer = {asked.id: decision_on("edit", asked.value)}  # it would be sent again
    state = await app.ainvoke(Command(resume=answer), THREAD)
    (result,) = state["results"].values()
    assert (result["status"], tasks.count("call later Ann")) == ("done", 1)
    assert "later Ann" in result["calls"][0]["output"]
    assert CallLedger(str(tasks.folder / "mcp.json")).entries() == ()


async def test_a_question_of_a_task_is_a_question_of_the_run_which_may_be_resumed_later(tasks: TaskServer) -> None:
    app = app_of(tasks, "order")
    state = await app.ainvoke(order("order"), THREAD)
    (asked,) = state["__interrupt__"]
    assert asked.value["type"] == "needs_input"
    assert flat(asked.value)["description"] == "Step 1: the server of 'bank' asks: Which size?"
    assert list(flat(asked.value)["args"]) == ["size"]
    wrong = decision_on("edit", asked.value, args={"size": 7})
    state = await app.ainvoke(Command(resume={asked.id: wrong}), THREAD)
    (again,) = state["__interrupt__"]
    assert "string" in again.value["problem"]
    given = decision_on("edit", again.value, args={"size": "XL"})
    state = await app.ainvoke(Command(resume={again.id: given}), THREAD)
    (result,) = state["results"].values()
    assert result["calls"][0]["output"] == 'order Ann {"size": {"action": "accept", "content": {"size": "XL"}}}'
    assert (tasks.count("effect order Ann"), tasks.count("tasks/update order Ann")) == (1, 1)
    assert CallLedger(str(tasks.folder / "mcp.json")).entries() == ()


@pytest.mark.parametrize(("opened", "action"), [(True, "accept"), (False, "decline"), (None, "decline")])
async def test_a_page_that_a_task_wants_to_be_opened_is_shown_with_its_host(
    tasks: TaskServer, opened: bool | None, action: str
) -> None:
    app = app_of(tasks, "visit", trusted=True)
    state = await app.ainvoke(order("visit"), THREAD)
    (asked,) = state["__interrupt__"]
    told = flat(asked.value)["description"]
    assert "Sign the order (open this page on shop.example: https://shop.example/sign?order=7 )" in told
    refused = decision_on("reject", asked.value)
    answer = refused if opened is None else decision_on("edit", asked.value, args={"opened": opened})
    state = await app.ainvoke(Command(resume={asked.id: answer}), THREAD)
    (result,) = state["results"].values()
    assert result["calls"][0]["output"] == f'visit Ann {{"size": {{"action": "{action}"}}}}'


async def test_the_seconds_of_a_task_are_those_of_the_whole_call(tasks: TaskServer) -> None:
    app = app_of(tasks, "report", trusted=True)
    began = waited = 0.0
    parts = app.astream(order("report"), THREAD, stream_mode="custom", subgraphs=True)
    async for _, event in parts:
        if event.get("text") == "working: page 3 of 3":
            waited = time.time() - began
            tasks.release()
        if event.get("event") == "tool_started":
            began = event["began"]
    (result,) = (await app.aget_state(THREAD)).values["results"].values()
    assert result["calls"][0]["seconds"] >= waited
