"""Fault 6: a server answers more than anybody wants to read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from callsheet.agents import Limits
from scenario import Scenario

CAP = 5_000_000


async def test_what_is_too_large_costs_its_own_step_only(scenario: Callable[..., Scenario]) -> None:
    made = scenario()
    result = await made.survives("too_large", mode="big", status="outcome_unknown")
    assert "more than 5,000,000 bytes" in result["error"]
    assert (made.folder / "threads.sqlite").stat().st_size < CAP


async def test_a_long_answer_below_the_cap_is_cut_and_kept_outside_the_checkpoint(
    scenario: Callable[..., Scenario],
) -> None:
    made = scenario(limits=Limits(start=60, list=60, call=60, message=100_000_000, output=10_000))
    made.be("faulty", "big")
    state = await made.run()
    (call,) = state["results"]["2"]["calls"]
    assert (call["kind"], call["error"]) == ("too_large", "")
    assert len(call["output"]) < 11_000
    (file,) = call["files"]
    assert Path(file).stat().st_size == 30_000_000
    assert (made.folder / "threads.sqlite").stat().st_size < CAP
    Path(file).unlink()
