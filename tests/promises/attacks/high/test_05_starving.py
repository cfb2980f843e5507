"""A server that talks without end takes nothing from the others."""

from __future__ import annotations

import asyncio
import statistics
import sys
import threading
import time
from typing import Any

import pytest

from callsheet.agents import Limits, ToolRegistry
from callsheet.agents.calls.tool_result import outcome_of
from callsheet.agents.safety import arguments
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.graphs import Agent, Catalog, ServerConfig, Tool, load
from fleet import Fleet, definition
from servers import FIXTURES, HANG

PATIENT = Limits(start=HANG, list=HANG, call=HANG, failures=50)
HEALTHY = ServerConfig(command=sys.executable, args=(str(FIXTURES / "fault_server.py"), "ok"))


def flooding(mode: str) -> ServerConfig:
    return ServerConfig(command=sys.executable, args=(str(FIXTURES / "flooding_server.py"), mode))


@pytest.mark.parametrize(
    ("mode", "kind", "says"),
    [
        ("braces", "protocol", "more lines that are not the protocol than 20,000 at once and 1,000 a second"),
        ("blank", "protocol", "more lines that are not the protocol"),
        ("log", "protocol", "INFO something happened"),
        ("long", "protocol", "or bytes than 5,000,000 at once and 250,000 a second"),
        ("notes", "too_large", "more messages unasked than 20,000 at once and 1,000 a second"),
        ("answers", "too_large", "more messages unasked"),
        ("large", "too_large", "more bytes than 10,000,000 at once and 500,000 a second, most of them unasked"),
    ],
)
async def test_a_session_ends_in_which_a_server_talks_and_talks(mode: str, kind: str, says: str) -> None:
    pool = SessionPool(limits=PATIENT)
    outcome = await pool.call("run", mode, flooding(mode), "work", {})
    await pool.close_run("run")
    assert (outcome.kind, outcome.effect) == (kind, "unknown")
    assert says in outcome.error


async def test_other_sessions_go_on_while_a_server_floods_its_own() -> None:
    pool = SessionPool(limits=PATIENT)

    async def seconds(calls: int) -> float:
        spent = []
        for _ in range(calls):
            began = time.perf_counter()
            assert not (await pool.call("run", "healthy", HEALTHY, "work", {})).error
            spent.append(time.perf_counter() - began)
        return statistics.median(spent)

    await seconds(5)
    alone = await seconds(30)
    flood = asyncio.create_task(pool.call("run", "flood", flooding("mixed"), "work", {}))
    await asyncio.sleep(0)
    await seconds(5)
    beside = min([await seconds(10) for _ in range(3)])  # what else the machine does only adds to it
    assert not flood.done()
    await pool.close_run("run")
    await flood
    assert beside < 60 * alone  # it was 7,000 times as long


async def test_listings_are_checked_outside_of_the_event_loop() -> None:
    pool, go, looking = SessionPool(limits=PATIENT), threading.Event(), threading.Event()

    def look(agent_id: str, *_: Any) -> None:
        if agent_id == "slow":
            looking.set()
            go.wait(HANG)

    pool.watch(look)
    slow = asyncio.create_task(pool.call("run", "slow", HEALTHY, "work", {}))
    assert await asyncio.to_thread(looking.wait, HANG)
    assert not (await pool.call("run", "healthy", HEALTHY, "work", {})).error
    assert not slow.done()
    go.set()
    assert not (await slow).error
    await pool.close_run("run")


async def test_arguments_are_checked_once_and_outside_of_the_event_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    go, looking, checks = threading.Event(), threading.Event(), []

    def slow(schema: Any, args: Any) -> arguments.Fit:
        checks.append(args)
        looking.set()
        assert go.wait(HANG)
        return arguments.Fit()

    monkeypatch.setattr(arguments, "fit_of", slow)
    registry = ToolRegistry(Catalog(agents=(Agent(id="a", tools=(Tool(agent="a", name="work"),)),)), {"a": HEALTHY})
    work = registry.bind(["a/work"], "run")["a_work"]
    call = asyncio.create_task(work.ainvoke({"type": "tool_call", "id": "1", "name": "work", "args": {"x": 1}}))
    assert await asyncio.to_thread(looking.wait, HANG)
    go.set()
    assert (await call).status == "success"
    assert checks == [{"x": 1}]
    await registry.close_run("run")


async def test_a_large_answer_is_checked_outside_of_the_event_loop(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of 5 MB of numbers kept the loop, and with it every other server's calls, for seconds."""
    threads: dict[str, str] = {}

    def read(agent: str, *given: Any, **more: Any) -> Any:
        threads[agent] = threading.current_thread().name
        return outcome_of(agent, *given, **more)

    monkeypatch.setattr("callsheet.agents.servers.session_pool.outcome_of", read)
    fleet.serve("small", definition("work"), structured={"a": [1]})
    fleet.serve("large", definition("work"), structured={"a": [1] * 10_000})
    registry = ToolRegistry.from_catalog(load(fleet.config, yes=True))
    for tool in registry.bind(["small/work", "large/work"], "run").values():
        await tool.ainvoke({})
    await registry.close_run("run")
    assert set(threads) == {"small", "large"}
    assert "callsheet" not in threads.values()


def test_a_listing_of_many_pages_is_no_longer_than_a_message_may_be(fleet: Fleet) -> None:
    pages = [[definition(f"work{page}", "x" * 2_000_000)] for page in range(3)]
    for number, said in ((2, None), (3, "in several pages, of more than 5,000,000 bytes: raise its limit")):
        fleet.serve("notes", pages=pages[:number])
        problems = load(fleet.config, yes=True).problems
        assert any(said in str(problem) for problem in problems) if said else not problems
