"""Agents that speak A2A, over loopback: handed the step, heard out, asked back, stopped."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from a2a_server import Clerk, clerk, free_port
from callsheet import A2AAgent, CatalogError, Settings, ToolRegistry, create_supervisor
from callsheet.agents import Limits
from callsheet.graphs import load
from servers import HANG

THREAD: Any = {"configurable": {"thread_id": "1"}}


@pytest.fixture(scope="module")
def office() -> Iterator[tuple[str, Clerk]]:
    with clerk() as served:
        yield served


@pytest.fixture
def url(office: tuple[str, Clerk]) -> str:
    office[1].heard.clear()
    office[1].cancelled.clear()
    return office[0]


@pytest.fixture
def heard(office: tuple[str, Clerk]) -> list[str]:
    return office[1].heard


def supervised(url: str, **settings: Any) -> Any:
    agent = {"clerk": A2AAgent(url)}
    workflow = create_supervisor(
        agent, settings=Settings(**{"approval": "never", "allow": ("clerk/run",), "replans": 0, **settings})
    )
    return workflow.compile(checkpointer=InMemorySaver())


def asking(text: str) -> Any:
    return {"messages": [("user", text)]}


async def called(url: str, request: str, **limits: float) -> Any:
    loaded = load({"clerk": A2AAgent(url)})
    bound = ToolRegistry.from_catalog(loaded, limits=Limits(**limits)).bind(["clerk/run"], "run")["clerk_run"]
    return await bound.ainvoke({"type": "tool_call", "name": "run", "args": {"request": request}, "id": "1"})


def test_its_card_says_who_it_is_and_what_it_can_do(url: str) -> None:
    agent = load([A2AAgent(url)]).catalog.agent("The-Clerk")
    assert (agent.name, agent.description) == ("The Clerk", "Works in an office.")
    (tool,) = agent.tools
    assert tool.id == "The-Clerk/run"
    assert tool.description == "Works in an office. It has these skills. Forms: Files, signs and loses forms."
    assert [parameter.name for parameter in tool.parameters] == ["request"]


def test_its_caller_may_name_and_describe_it(url: str) -> None:
    assert list(load(A2AAgent(url, name="desk")).catalog.tools) == ["desk/run"]
    described = load({"desk": {"description": "Knows forms.", "tools": A2AAgent(url)}}).catalog.agent("desk")
    assert described.description == "Knows forms."
    assert load(A2AAgent(f"{url}.well-known/agent-card.json")).catalog.agents[0].id == "The-Clerk"


@pytest.mark.parametrize(("streaming", "old"), [(True, False), (False, False), (True, True), (False, True)])
async def test_an_answer_is_text_data_and_notes_of_files(streaming: bool, old: bool) -> None:
    with clerk(streaming=streaming, old=old) as (url, agent):
        answer = await called(url, "file a form")
        text, _, data = answer.text.rpartition("\n")
        assert text == "filed form 12\n[file copy.txt, 4 bytes]\n[file f: http://127.0.0.1:9/form]"
        assert json.loads(data) == {"form": 12, "filed": True}
        assert answer.artifact["structured"] == {"form": 12, "filed": True}
        assert agent.heard == ["file a form"]


async def test_the_step_is_handed_over_and_its_progress_is_told(url: str, heard: list[str]) -> None:
    app = supervised(url)
    stream = app.astream(asking("Ask the clerk to write a letter"), THREAD, stream_mode="custom", subgraphs=True)
    told = [event async for _, event in stream if event["event"] == "progress"]
    assert heard == ["Ask the clerk to write a letter"]
    assert {(event["step_id"], event["agent"]) for event in told} == {("1", "clerk")}
    assert [(event["state"], event["text"]) for event in told] == [
        ("submitted", ""),
        ("working", "looking for the form"),
        ("working", "Dear "),
        ("working", "all, "),
        ("working", "bye"),
        ("completed", ""),
    ]
    assert app.get_state(THREAD).values["results"]["1"]["result"] == "Dear all, bye"


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ("lose a form", "it reports that the task is failed: the form is lost"),
        ("forge a form", "it reports that the task is rejected: that is not done here"),
    ],
)
async def test_a_task_that_it_gives_up_is_an_error_in_its_words(url: str, request_: str, said: str) -> None:
    answer = await called(url, request_)
    assert answer.status == "error"
    assert answer.text == f"agent 'clerk', tool 'run': {said}"
    assert (answer.artifact["kind"], answer.artifact["effect"]) == ("tool", "reported")


async def test_what_it_asks_is_asked_by_our_run_and_answered_in_the_same_task(url: str, heard: list[str]) -> None:
    app = supervised(url)
    (first,) = (await app.ainvoke(asking("Ask the clerk to sign a form"), THREAD))["__interrupt__"]
    assert first.value == {"type": "input_required", "agent": "clerk", "question": "which form?", "data": []}
    (second,) = (await app.ainvoke(Command(resume="another"), THREAD))["__interrupt__"]
    assert second.value["question"] == "which other?"
    result = (await app.ainvoke(Command(resume="form 13"), THREAD))["results"]["1"]
    assert (result["status"], result["result"]) == ("done", "signed form 13")
    assert heard == ["Ask the clerk to sign a form", "another", "form 13"]
    assert len(result["calls"]) == 1


def test_the_same_for_a_caller_without_an_event_loop(url: str) -> None:
    app = supervised(url)
    (asked,) = app.invoke(asking("Ask the clerk to unlock a form"), THREAD)["__interrupt__"]
    assert asked.value == {"type": "auth_required", "agent": "clerk", "question": "log in at x", "data": []}
    assert app.invoke(Command(resume="done"), THREAD)["results"]["1"]["result"] == "signed done"


async def test_an_answer_that_is_no_text_is_sent_as_data(url: str, heard: list[str]) -> None:
    app = supervised(url)
    await app.ainvoke(asking("Ask the clerk to sign a form"), THREAD)
    await app.ainvoke(Command(resume={"form": 13}), THREAD)
    assert heard[1] == "(no text)"


async def test_a_person_is_asked_first_unless_somebody_said_otherwise(url: str, heard: list[str]) -> None:
    (approval,) = (
        await supervised(url, approval="ask", allow=()).ainvoke(asking("Ask the clerk to file a form"), THREAD)
    )["__interrupt__"]
    assert approval.value["type"] == "tool_approval"
    assert heard == []
    sure = ToolRegistry.from_catalog(load({"clerk": A2AAgent(url, approval="never")}))
    assert sure.assurance("clerk/run").why("ask") == ""
    assert not sure.assurance("clerk/run").repeatable


async def test_one_that_falls_silent_is_left_at_the_limit_and_told_so(office: Any, url: str, heard: list[str]) -> None:
    answer = await called(url, "wait for a form", call=2)
    assert (answer.artifact["kind"], answer.artifact["effect"]) == ("timeout", "unknown")
    assert "no answer within 2 s; whether the call took effect is unknown" in answer.text
    assert await asyncio.to_thread(office[1].cancelled.wait, HANG)
    assert heard == ["wait for a form"]


async def test_a_step_of_unknown_outcome_is_not_done_again(url: str, heard: list[str]) -> None:
    app = supervised(url, step_seconds=4.0, replans=2)
    result = (await app.ainvoke(asking("Ask the clerk to wait for a form"), THREAD))["results"]["1"]
    assert result["status"] == "outcome_unknown"
    assert heard == ["Ask the clerk to wait for a form"]


async def test_a_run_that_is_cancelled_cancels_the_task(office: Any, url: str, heard: list[str]) -> None:
    at_work = asyncio.Event()

    async def run() -> None:
        given = asking("Ask the clerk to wait for a form")
        async for _, _, event in supervised(url).astream(given, THREAD, stream_mode=["custom"], subgraphs=True):
            if event["event"] == "progress":
                at_work.set()

    running = asyncio.create_task(run())
    await at_work.wait()
    assert heard
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(office[1].cancelled.wait, HANG)


async def test_one_that_is_gone_surely_did_nothing(monkeypatch: Any, tmp_path: Any) -> None:
    with clerk() as (url, _):
        loaded = load({"clerk": A2AAgent(url)})
    bound = ToolRegistry.from_catalog(loaded).bind(["clerk/run"], "run")["clerk_run"]
    answer = await bound.ainvoke({"type": "tool_call", "name": "run", "args": {"request": "file"}, "id": "1"})
    assert (answer.artifact["kind"], answer.artifact["effect"]) == ("start", "none")
    assert "it cannot be reached" in answer.text
    again = load({"clerk": A2AAgent(url)})
    assert list(again.catalog.tools) == ["clerk/run"]
    assert "Its last known tools are kept" in again.problems[0].message


def test_one_that_never_was_there_is_a_problem_or_has_no_name() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    loaded = load({"clerk": A2AAgent(url)})
    assert loaded.catalog.agents == ()
    assert "it cannot be reached: ConnectError" in str(loaded.problems[0])
    with pytest.raises(CatalogError, match="an A2A agent has no name: give it one: it cannot be reached"):
        load([A2AAgent(url)])
