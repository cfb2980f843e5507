"""Fault 3: a server crashes in a call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from scenario import Scenario


async def test_a_crash_costs_its_own_step_only(scenario: Callable[..., Scenario]) -> None:
    made = scenario()
    result = await made.survives("crash", mode="crash", status="outcome_unknown")
    assert result["calls"][-1]["effect"] == "unknown"
    assert "status 7" in result["error"]


async def test_a_tool_that_only_reads_is_called_again_in_a_new_session(scenario: Callable[..., Scenario]) -> None:
    made = scenario(trusted=True)
    made.be("faulty", "hints")
    await asyncio.to_thread(made.read)
    state = await made.run()
    assert state["results"]["2"]["status"] == "done"
    assert made.count("faulty") == 2


async def test_a_tool_whose_read_only_hint_is_not_trusted_is_not_called_again(
    scenario: Callable[..., Scenario],
) -> None:
    made = scenario(trusted=False)
    made.be("faulty", "hints")
    await asyncio.to_thread(made.read)
    state = await made.run()
    assert state["results"]["2"]["status"] == "outcome_unknown"
    assert made.count("faulty") == 1
