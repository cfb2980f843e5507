"""Fault 10: a server over HTTP is killed and comes back; and a user cancels, at any moment."""

from __future__ import annotations

import asyncio
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from scenario import FAULTY, PATIENT, REQUEST, Scenario, resume
from servers import HttpServer, alive, until

AT_ONCE = 10


@pytest.fixture
def http(tmp_path: Path) -> Iterator[HttpServer]:
    server = HttpServer(tmp_path)
    yield server
    server.kill()


async def test_a_server_that_is_down_costs_its_own_step_and_is_used_when_it_is_back(
    scenario: Callable[..., Scenario], http: HttpServer
) -> None:
    result = await scenario(http=http).survives("start", mode="down")
    assert result["calls"][-1]["effect"] == "none"


async def test_a_server_that_dies_in_a_call_leaves_its_outcome_unknown(
    scenario: Callable[..., Scenario], http: HttpServer
) -> None:
    await scenario(http=http).survives("crash", mode="crash", status="outcome_unknown")


async def test_a_call_that_hangs_ends_at_our_limit(scenario: Callable[..., Scenario], http: HttpServer) -> None:
    made = scenario(http=http, own={"call": 2})
    await made.survives("timeout", mode="hang", status="outcome_unknown")


async def test_cancels_at_any_moment_leave_no_process_no_lock_and_usable_checkpoints(
    scenario: Callable[..., Scenario],
) -> None:
    """Each run is cancelled at one of every five of its events, and some turns of the loop after that."""
    made, chance = scenario(limits=PATIENT.model_copy(update={"warm": 0})), random.Random(0)
    made.be(FAULTY, "slow")
    ends: Counter[str] = Counter()
    gate = asyncio.Semaphore(AT_ONCE)

    async def events(app: Any, thread: int, reached: asyncio.Event, last: int | None = None) -> int:
        config = {"configurable": {"thread_id": str(thread)}}
        given, number = {"messages": [HumanMessage(REQUEST)]}, 0
        async for _ in app.astream(given, config, stream_mode=["tasks", "custom"], subgraphs=True):
            number += 1
            if number == last:
                reached.set()
        return number

    async def one(app: Any, thread: int, last: int) -> None:
        async with gate:
            reached = asyncio.Event()
            run = asyncio.create_task(events(app, thread, reached, last))
            waiting = asyncio.create_task(reached.wait())
            if last:
                await asyncio.wait([run, waiting], return_when=asyncio.FIRST_COMPLETED)
            # Every other run is cancelled at this very event, so that most are not over by then.
            for _ in range(chance.randrange(100) if last % 2 else 0):
                await asyncio.sleep(0)
            waiting.cancel()
            run.cancel()
            ended = await asyncio.gather(run, return_exceptions=True)
            ends[type(ended[0]).__name__] += 1

    async with made.app() as app:
        whole = await events(app, 1_000_000, asyncio.Event())
        assert whole > 20
        threads = range(0, whole, 5)
        await asyncio.gather(*(one(app, last, last) for last in threads))
        assert await asyncio.to_thread(until, lambda: not alive(made.tag)), alive(made.tag)
        assert set(ends) <= {"CancelledError", "int"}
        assert ends["CancelledError"] > len(threads) / 2
        calls = made.count(FAULTY)
        states = {i: await app.aget_state({"configurable": {"thread_id": str(i)}}) for i in threads}
        cut = [i for i, state in states.items() if state.next]
        for thread in cut[:: max(1, len(cut) // 4)]:
            state = await resume(app, {"configurable": {"thread_id": str(thread)}})
            statuses = {i: r["status"] for i, r in state["results"].items()}
            assert set(statuses) == set("1234")
            assert set(statuses.values()) <= {"done", "outcome_unknown", "skipped"}, statuses
        assert made.count(FAULTY) >= calls
    assert until(lambda: not alive(made.tag)), alive(made.tag)
    with sqlite3.connect(made.folder / "threads.sqlite", timeout=1) as database:
        database.execute("BEGIN EXCLUSIVE")
        database.rollback()
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
