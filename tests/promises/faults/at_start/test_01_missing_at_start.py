"""Fault 1: a server is missing, or dies, when it is started."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from callsheet.agents.servers.catalogs.catalog_sources import load_servers
from callsheet.graphs import ServerConfig
from servers import Servers


async def test_a_server_that_dies_at_its_start_costs_its_own_step_only(scenario: Any) -> None:
    await scenario().survives("start", mode="exit")


@pytest.mark.parametrize("bad", ["exit", "command"])
def test_fourteen_of_fifteen_are_catalogued_and_the_bad_one_is_named(tmp_path: Path, bad: str) -> None:
    servers = Servers(tmp_path)
    config = {f"good{i}": servers.stdio("ok", log="good") for i in range(14)}
    config["bad"] = servers.stdio("exit") if bad == "exit" else ServerConfig(command="no-such-program-here")
    part = load_servers(config)
    assert [agent.id for agent in part.agents] == [f"good{i}" for i in range(14)]
    (problem,) = part.problems
    assert (problem.agent, problem.kind) == ("bad", "start")
    assert ("cannot open config" if bad == "exit" else "was not found") in problem.message
    assert not servers.processes()


async def test_a_server_that_is_down_is_picked_by_its_last_known_tools_and_marked(scenario: Any) -> None:
    made = scenario()
    made.be("faulty", "exit")
    await asyncio.to_thread(made.read)
    state = await made.run()
    assert [state["results"][i]["status"] for i in "1234"] == ["done", "failed", "done", "skipped"]
    async with made.app() as app:
        picked = (await app.aget_state(made.config)).values["selections"]["2"]
    assert set(picked["down"]) == {"faulty"}
    made.be("faulty", "ok")
    assert [r["status"] for r in (await made.resumed())["results"].values()] == ["done"] * 4
