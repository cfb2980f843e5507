"""Requirement 8: start, list, call, output and concurrency are bounded, for each server and tool; calls by step."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from callsheet import Settings, create_supervisor
from callsheet.agents import Limits, SessionPool, ToolRegistry
from callsheet.agents.servers.catalogs.catalog_sources import load_servers
from callsheet.graphs import load
from fleet import Fleet, definition
from scripted_model import ScriptedModel
from servers import Servers


@pytest.fixture
def servers(tmp_path: Path) -> Servers:
    return Servers(tmp_path)


@pytest.fixture
async def pool() -> AsyncIterator[SessionPool]:
    pool = SessionPool(limits=Limits(failures=50))
    yield pool
    await asyncio.to_thread(pool.close)


@pytest.mark.parametrize(
    ("mode", "limit", "words"),
    [
        ("hang_init", "start", "it did not start within 1.5 s"),
        ("hang_list", "list", "no answer to tools/list within 1.5 s"),
        ("hang", "call", "no answer to tools/call within 1.5 s"),
    ],
)
async def test_a_servers_own_limit_of_time_holds(
    pool: SessionPool, servers: Servers, mode: str, limit: str, words: str
) -> None:
    outcome = await pool.call("run", "a", servers.stdio(mode, limits={limit: 1.5}), "work", {})
    assert outcome.kind == "timeout"
    assert words in outcome.error
    await pool.close_run("run")
    assert not servers.processes()


async def test_a_tool_may_have_a_limit_of_its_own(servers: Servers) -> None:
    own = {"work": {"call": 1.5}}
    registry = ToolRegistry.from_catalog(load(load_servers({"a": servers.stdio("hang", tools=own)})))
    (bound,) = registry.bind(["a/work"], "run").values()
    answer: ToolMessage = await bound.ainvoke({"type": "tool_call", "id": "1", "name": "work", "args": {}})
    assert "no answer to tools/call within 1.5 s" in answer.text
    await registry.close_run("run")


async def test_what_a_model_sees_and_what_is_read_are_bounded(pool: SessionPool, servers: Servers) -> None:
    caps = {"output": 1_000, "message": 60_000}
    seen = await pool.call("run", "a", servers.stdio("big", size=50_000, limits=caps), "work", {})
    assert (seen.kind, seen.error, seen.text[:1_001]) == ("too_large", "", "A" * 1_000 + "\n")
    read = await pool.call("run", "b", servers.stdio("big", size=500_000, limits=caps), "work", {})
    assert (read.kind, read.effect) == ("too_large", "unknown")
    assert "more than 60,000 bytes" in read.error


async def test_calls_at_once_are_bounded_by_server(pool: SessionPool, servers: Servers, tmp_path: Path) -> None:
    config = servers.stdio("slow", limits={"server_calls": 1})
    await asyncio.gather(*(pool.call(f"run {i}", "a", config, "work", {}) for i in range(3)))
    order = [line for line in (tmp_path / "slow.log").read_text().split() if line in ("in", "out")]
    assert order == ["in", "out"] * 3


@pytest.mark.parametrize("a_turn", [1, 5])
async def test_calls_of_a_step_are_bounded(fleet: Fleet, a_turn: int) -> None:
    def reply(told: Any) -> AIMessage:
        wanted = [
            {"name": "a_work", "args": {"x": f"{len(told)} {i}"}, "id": f"{len(told)} {i}"} for i in range(a_turn)
        ]
        return AIMessage("", tool_calls=wanted)

    config = fleet.serve("a", definition("work", "Repairs the roof."))
    settings = Settings(max_calls=3, approval="never")
    workflow = create_supervisor(config, worker_model=ScriptedModel(replies=[reply]), settings=settings, yes=True)
    state = await workflow.compile().ainvoke({"messages": [HumanMessage("repair the roof")]})
    assert fleet.calls("a") == ["work"] * (3 if a_turn == 1 else 0)
    assert state["results"]["1"]["status"] == "failed"
    assert state["results"]["1"]["error"] == "stopped before it made more than 3 calls for one step"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"limits": {"call": -1}}, "limit 'call'"),
        ({"limits": {"coll": 1}}, "limit 'coll'"),
        ({"tools": {"work": {"call": 0}}}, "limit 'call'"),
        ({"limits": {"calls": 5}}, "holds for all servers together: set CALLSHEET_LIMIT_CALLS"),
    ],
)
def test_an_entry_with_a_limit_that_cannot_work_is_left_out_alone(
    servers: Servers, said: dict[str, Any], words: str
) -> None:
    found = load_servers({"a": servers.stdio("ok", **said), "b": servers.stdio("ok")})
    (problem,) = found.problems
    assert (problem.agent, words in problem.message) == ("a", True)
    assert [agent.id for agent in found.agents] == ["b"]
    assert servers.count("ok", "start") == 1
