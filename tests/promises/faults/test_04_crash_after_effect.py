"""Fault 4: a server does what it was called for, and crashes before it says so."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import Command

from scenario import REQUEST, Scenario


@pytest.mark.parametrize("source", ["ours", "shared"])
async def test_the_effect_happens_once_and_the_step_says_that_nobody_knows(
    scenario: Callable[..., Scenario], source: str, request: pytest.FixtureRequest
) -> None:
    mode = "crash_after_effect" if source == "ours" else f"{request.getfixturevalue('chaos')}crash_after_effect"
    made = scenario()
    result = await made.survives("crash", mode=mode, status="outcome_unknown")
    assert made.count("faulty", "EFFECT") == 1
    assert result["calls"][-1]["effect"] == "unknown"
    assert "a person has checked" in result["error"]


async def test_a_person_is_asked_where_there_is_one(scenario: Callable[..., Scenario]) -> None:
    made = scenario(approval="ask")
    made.be("faulty", "crash_after_effect")
    asked: list[str] = []
    async with made.app() as app:
        state = await app.ainvoke({"messages": [HumanMessage(REQUEST)]}, made.config)
        while questions := state.get("__interrupt__"):
            answers = {}
            for found in questions:
                kind = found.value["type"]
                asked.append(kind)
                answers[found.id] = (
                    {"type": "approve"} if kind == "tool_approval" else {"type": "respond", "message": "It was done."}
                )
            state = await app.ainvoke(Command(resume=answers), made.config)
    assert asked.count("unknown_outcome") == 1
    assert made.count("faulty", "EFFECT") == made.count("faulty", "call") == 1
    assert state["results"]["2"]["status"] == "done"
