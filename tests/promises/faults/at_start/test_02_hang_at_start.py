"""Fault 2: a server hangs when it is started, or when it is listed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from callsheet.agents import SessionPool
from callsheet.agents.servers.catalogs.server_catalog import read_listings
from callsheet.graphs import ServerConfig
from scenario import PATIENT, Scenario
from servers import HANG, Servers, until

LIMIT = 3.0


async def test_a_hang_at_the_start_costs_its_own_step_only(scenario: Callable[..., Scenario]) -> None:
    made = [scenario(own={"start": LIMIT}), scenario(own={"start": HANG, "list": LIMIT})]
    init, listing = await asyncio.gather(
        made[0].survives("timeout", mode="hang_init"), made[1].survives("timeout", mode="hang_list")
    )
    assert "it did not start within 3 s" in init["error"]
    assert "no answer to tools/list within 3 s" in listing["error"]


def test_one_dead_two_hanging_and_one_crashing_server_cost_only_their_own_tools(tmp_path: Path) -> None:
    servers = Servers(tmp_path)
    config = {f"good{i}": servers.stdio("ok", log="good.log") for i in range(24)}
    config["hanging"] = servers.stdio("hang_init", limits={"start": LIMIT})
    config["listing"] = servers.stdio("hang_list", limits={"start": HANG, "list": LIMIT})
    config["crashing"], config["dead"] = servers.stdio("exit"), ServerConfig(command="no-such-program-here")
    listings = SessionPool(limits=PATIENT).list_all(config)
    part = read_listings(config, listings)
    assert [agent.id for agent in part.agents] == [f"good{i}" for i in range(24)]
    assert {(problem.agent, problem.kind) for problem in part.problems} == {
        ("hanging", "timeout"),
        ("listing", "timeout"),
        ("crashing", "start"),
        ("dead", "start"),
    }
    for bad, why in (("crashing", "cannot open config"), ("dead", "was not found")):
        assert any(problem.agent == bad and why in problem.message for problem in part.problems)
    assert "it did not start within 3 s" in listings["hanging"].error
    assert "no answer to tools/list within 3 s" in listings["listing"].error
    assert not servers.processes()


async def test_listing_can_be_cancelled(tmp_path: Path) -> None:
    servers = Servers(tmp_path)
    listing = asyncio.create_task(SessionPool().list_tools(servers.stdio("hang_list")))
    assert await asyncio.to_thread(until, lambda: bool(servers.processes()))
    listing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listing
    assert await asyncio.to_thread(until, lambda: not servers.processes())
