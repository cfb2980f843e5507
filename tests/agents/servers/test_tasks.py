"""Calls that their server works on as tasks (SEP-2663): their states, results, questions, limits and cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from callsheet.agents.calls.call_context import ASK, PROGRESS, Limits, within
from callsheet.agents.calls.outcome import Fault, Outcome
from callsheet.agents.servers.server_tasks import TaskState
from callsheet.agents.servers.session_pool import SessionPool
from servers import HANG, until
from task_server import TaskServer

pytestmark = pytest.mark.server


@pytest.fixture
def tasks(tmp_path: Path) -> Iterator[TaskServer]:
    made = TaskServer(tmp_path)
    made.start()
    yield made
    made.kill()


@pytest.fixture
def pool() -> Iterator[SessionPool]:
    made = SessionPool(limits=Limits(start=HANG, list=HANG, call=HANG))
    yield made
    made.close()


async def call(pool: SessionPool, tasks: TaskServer, tool: str, **said: Any) -> Outcome:
    return await pool.call("run", "office", tasks.config(**said), tool, {"name": "Ann"})


async def test_a_call_that_runs_as_a_task_has_the_result_of_the_task(pool: SessionPool, tasks: TaskServer) -> None:
    tasks.release()
    outcome = await call(pool, tasks, "report")
    assert (outcome.text, outcome.structured, outcome.error) == (
        "report Ann\n" + '{"done": "Ann"}',
        {"done": "Ann"},
        "",
    )
    assert (await call(pool, tasks, "greet")).text == "hello Ann"
    assert tasks.count("call report Ann") == 1


async def test_each_new_state_of_a_task_is_progress(pool: SessionPool, tasks: TaskServer) -> None:
    heard = list[Any]()

    async def hear(*report: Any) -> None:
        heard.append(report)
        if "page 3" in report[-1]:
            tasks.release()

    with within(PROGRESS, hear):
        outcome = await call(pool, tasks, "report")
    assert not outcome.error
    texts = ["working", *(f"working: page {page} of 3" for page in (1, 2, 3)), "completed: done"]
    assert heard == [(None, None, text) for text in texts]


@pytest.mark.parametrize(
    ("tool", "kind", "effect", "says"),
    [
        ("fail", "protocol", "reported", 'error -32603: the printer is on fire; data: {"printer": "P3"}'),
        ("broken", "tool", "reported", "broken Ann"),
        ("lose", "protocol", "unknown", "Task (its id) has expired; whether the call took effect is unknown"),
        ("odd", "protocol", "unknown", "the state of the task cannot be read"),
        ("think", "protocol", "unknown", "it asks for sampling/createMessage, which is not supported"),
    ],
)
async def test_a_task_that_gives_no_result_is_an_error_that_says_why(
    pool: SessionPool, tasks: TaskServer, tool: str, kind: str, effect: str, says: str
) -> None:
    outcome = await call(pool, tasks, tool)
    assert (outcome.kind, outcome.effect) == (kind, effect)
    assert says in outcome.error
    if tool == "think":
        assert until(lambda: tasks.count("tasks/cancel think Ann") == 1)


async def test_a_task_is_asked_no_sooner_than_its_server_wants_and_no_longer_than_the_limit(
    pool: SessionPool, tasks: TaskServer
) -> None:
    outcome = await call(pool, tasks, "later", limits={"call": 60, "longest_call": 120})
    assert (outcome.kind, outcome.effect) == ("timeout", "unknown")
    assert "has not ended within 120 s" in outcome.error
    assert tasks.count("tasks/get later Ann") == 0


async def test_a_question_of_a_task_reaches_the_person_and_is_asked_once(pool: SessionPool, tasks: TaskServer) -> None:
    asked = list[Any]()

    async def person(message: str, form: dict[str, Any]) -> dict[str, Any]:
        asked.append((message, list(form["properties"])))
        return {"action": "accept", "content": {"size": "XL"}}

    with within(ASK, person):
        outcome = await call(pool, tasks, "order")
    assert 'order Ann {"size": {"action": "accept", "content": {"size": "XL"}}}' in outcome.text
    assert asked == [("Which size?", ["size"])]


async def test_a_question_of_a_task_without_a_person_is_dismissed(pool: SessionPool, tasks: TaskServer) -> None:
    outcome = await call(pool, tasks, "order")
    assert 'order Ann {"size": {"action": "cancel"}}' in outcome.text


async def test_who_cancels_a_call_cancels_its_task(pool: SessionPool, tasks: TaskServer) -> None:
    running = asyncio.create_task(call(pool, tasks, "report"))
    assert await asyncio.to_thread(until, lambda: tasks.count("tasks/get report Ann") > 0)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running
    await pool.close_run("run")  # which waits until the server was told
    assert tasks.count("tasks/cancel report Ann") == 1


async def test_a_server_that_is_started_again_is_asked_about_its_tasks(pool: SessionPool, tasks: TaskServer) -> None:
    running = asyncio.create_task(call(pool, tasks, "report"))
    assert await asyncio.to_thread(until, lambda: tasks.count("tasks/get report Ann") > 0)
    tasks.kill()
    tasks.release()
    await asyncio.to_thread(tasks.start)
    assert (await running).text.startswith("report Ann")
    assert tasks.count("call report Ann") == 1


@pytest.mark.parametrize(
    ("milliseconds", "seconds"), [(5_000, 5.0), (0, 0.05), (-1, 1.0), (None, 1.0), (True, 1.0), (float("nan"), 1.0)]
)
def test_an_interval_that_is_no_number_is_a_second(milliseconds: Any, seconds: float) -> None:
    told = {"taskId": "1", "status": "working", "pollIntervalMs": milliseconds}
    assert TaskState.of(told).interval == seconds


@pytest.mark.parametrize("told", [{}, {"taskId": 1, "status": "working"}, {"taskId": "1", "status": "paused"}])
def test_a_state_that_cannot_be_read_is_a_fault(told: dict[str, Any]) -> None:
    with pytest.raises(Fault, match="cannot be read"):
        TaskState.of(told)
