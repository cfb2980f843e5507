"""Fault 5: a server hangs in a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from scenario import PATIENT, REQUEST, Scenario


@pytest.mark.parametrize("mode", ["hang", "hang_effect"])
async def test_a_hang_ends_at_the_limit_and_costs_its_own_step_only(
    scenario: Callable[..., Scenario], mode: str
) -> None:
    made = scenario(own={"call": 1})
    result = await made.survives("timeout", mode=mode, status="outcome_unknown")
    assert "no answer to tools/call within 1 s" in result["error"]
    assert result["calls"][-1]["effect"] == "unknown"
    assert made.count("faulty", "start") >= 2


async def test_after_failures_in_a_row_others_are_preferred_and_it_is_said(scenario: Callable[..., Scenario]) -> None:
    made = scenario(own={"call": 2}, limits=PATIENT.model_copy(update={"failures": 1, "pause": 600}))
    made.be("faulty", "hang")
    said: list[Any] = []
    async with made.app() as app:
        for _ in range(2):
            given = {"messages": [HumanMessage(REQUEST)]}
            async for _, _, event in app.astream(given, made.config, stream_mode=["custom"], subgraphs=True):
                said.append(event)
    picked = [event["selection"] for event in said if event["event"] == "picked" and event["step_id"] == "2"]
    assert "left_out" not in picked[0]
    assert "after 1 failure in a row" in picked[1]["left_out"]["faulty"]
    assert "faulty" in {agent["id"] for agent in picked[0]["agents"]}
    assert "faulty" not in {agent["id"] for agent in picked[1]["agents"]}
    assert made.count("faulty", "call") == 1
