"""Fault 1: a server is missing, or dies, when it is started."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from scenario import Scenario


async def test_a_server_that_dies_at_its_start_costs_its_own_step_only(scenario: Callable[..., Scenario]) -> None:
    await scenario().survives("start", mode="exit")


async def test_a_server_that_is_down_is_picked_by_its_last_known_tools_and_marked(
    scenario: Callable[..., Scenario],
) -> None:
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
