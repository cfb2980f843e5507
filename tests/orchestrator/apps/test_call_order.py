"""Calls of one turn to one server are made in the order in which the model wrote them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

from callsheet import CallsheetTools, Settings, create_supervisor
from callsheet.agents.approval import call_order
from scripted_model import ScriptedModel

THREAD: Any = {"configurable": {"thread_id": "1"}}


class Report:
    """A document to which paragraphs are added, the first ones slowly; and a clock on another server."""

    def __init__(self, *, approval: str = "never", marked: bool = True) -> None:
        self.lines: list[str] = []
        self.times: dict[str, tuple[float, float]] = {}
        self.approval, self.marked = approval, marked

    def agents(self) -> dict[str, list[Any]]:
        @tool
        def add_paragraph(text: str) -> str:
            """Adds a paragraph to the report."""
            time.sleep(0.2 if text.endswith("1") else 0.0)
            self.lines.append(text)
            return f"added {text}"

        @tool
        def read_paragraph(number: int) -> str:
            """Reads a paragraph of the report."""
            began = time.monotonic()
            time.sleep(0.2)
            self.times[f"read {number}"] = began, time.monotonic()
            return "text"

        @tool
        def tell_time() -> str:
            """Tells the time of day."""
            self.lines.append("clock")
            return "noon"

        add_paragraph.metadata = {"callsheet/approval": self.approval}
        tell_time.metadata = {"callsheet/approval": "never"}
        read_paragraph.metadata = {"annotations": {"readOnlyHint": self.marked}, "callsheet/approval": "never"}
        return {"report": [add_paragraph, read_paragraph], "clock": [tell_time]}


def turn(*called: tuple[str, dict[str, Any]]) -> AIMessage:
    calls = [{"name": name, "args": args, "id": f"c{n}", "type": "tool_call"} for n, (name, args) in enumerate(called)]
    return AIMessage("", tool_calls=calls)


def paragraphs(number: int) -> list[tuple[str, dict[str, Any]]]:
    return [("report_add_paragraph", {"text": f"line {n}"}) for n in range(1, number + 1)]


def supervisor(report: Report, model: ScriptedModel, saver: Any) -> Any:
    settings = Settings(planning="none", tool_floor=0)
    workflow = create_supervisor(report.agents(), worker_model=model, settings=settings)
    return workflow.compile(checkpointer=saver)


def middleware(report: Report, model: ScriptedModel, saver: Any) -> Any:
    return create_agent(model, middleware=[CallsheetTools(report.agents())], checkpointer=saver)


APPS = pytest.mark.parametrize("made", [supervisor, middleware])


def ask(app: Any) -> Any:
    return app.invoke({"messages": [HumanMessage("add paragraphs to the report")]}, THREAD)


@APPS
def test_ten_paragraphs_of_one_turn_arrive_in_their_order(made: Any) -> None:
    report = Report()
    ask(made(report, ScriptedModel(replies=[turn(*paragraphs(10)), AIMessage("Added.")]), InMemorySaver()))
    assert report.lines == [f"line {n}" for n in range(1, 11)]


async def test_ten_paragraphs_arrive_in_order_in_an_asynchronous_run_without_a_checkpointer() -> None:
    report = Report()
    model = ScriptedModel(replies=[turn(*paragraphs(5)), AIMessage("Added.")])
    app = supervisor(report, model, None)
    await app.ainvoke({"messages": [HumanMessage("add paragraphs to the report")]})
    assert report.lines == [f"line {n}" for n in range(1, 6)]


def test_calls_to_another_server_do_not_wait() -> None:
    report = Report()
    both = turn(*paragraphs(2), ("clock_tell_time", {}))
    ask(supervisor(report, ScriptedModel(replies=[both, AIMessage("Added.")]), InMemorySaver()))
    assert report.lines == ["clock", "line 1", "line 2"]


@pytest.mark.parametrize("marked", [True, False])
def test_calls_are_made_side_by_side_only_if_it_is_said_that_they_read(*, marked: bool) -> None:
    report = Report(marked=marked)
    reads = turn(*[("report_read_paragraph", {"number": n}) for n in range(3)])
    ask(supervisor(report, ScriptedModel(replies=[reads, AIMessage("Read.")]), InMemorySaver()))
    starts = [began for began, _ in report.times.values()]
    ends = [ended for _, ended in report.times.values()]
    assert (max(starts) < min(ends)) is marked


def test_a_failed_call_does_not_stop_those_behind_it() -> None:
    report = Report()
    broken = turn(("report_add_paragraph", {"txt": 1}), *paragraphs(2))
    ask(supervisor(report, ScriptedModel(replies=[broken, AIMessage("Added.")]), InMemorySaver()))
    assert report.lines == ["line 1", "line 2"]


@APPS
def test_calls_behind_a_question_keep_their_order_over_every_resumption(made: Any, tmp_path: Path) -> None:
    report = Report(approval="always")
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        for _ in range(4):
            replies = [turn(*paragraphs(3)), AIMessage("Added.")]
            app = made(report, ScriptedModel(replies=replies if not report.lines else replies[1:]), saver)
            given: Any = {"messages": [HumanMessage("add paragraphs to the report")]}
            waiting = app.get_state(THREAD).interrupts
            if waiting:
                assert len(waiting) == 1
                assert f"line {len(report.lines) + 1}" in str(waiting[0].value)
                given = Command(resume={waiting[0].id: {"type": "approve"}})
            app.invoke(given, THREAD)
            call_order._TURNS.clear()  # as in another process
        assert report.lines == ["line 1", "line 2", "line 3"]
        assert not app.get_state(THREAD).interrupts
