"""Fifteen tasks over the real fleet: adaptive plans reach all ends, plans that are never changed reach four of them.

With the fleet installed: ``CALLSHEET_FLEET=.../mcp.json pytest tests/orchestrator/plans/test_fleet_plans.py``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fleet_model import Told, deciding
from fleet_plans import TASKS, PlanTask
from plan_runs import BOUNDS, PlanRuns

pytestmark = [pytest.mark.slow, pytest.mark.server]
IDS = [task.id for task in TASKS]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> PlanRuns:
    config = os.environ.get("CALLSHEET_FLEET")
    if not config:
        pytest.skip("CALLSHEET_FLEET names no mcp.json of installed servers")
    return PlanRuns(Path(config), tmp_path_factory.mktemp("fleet"))


def within_bounds(state: Mapping[str, Any]) -> bool:
    """Whether a run kept to its limits."""
    usage = state["usage"]
    return (
        len(state["plan"]["steps"]) <= BOUNDS["max_steps"]
        and len(state["waves"]) <= BOUNDS["max_waves"]
        and usage["input_tokens"] + usage["output_tokens"] <= BOUNDS["token_budget"]
        and not state["plan"]["incomplete"]
    )


def test_fifteen_tasks_of_which_ten_need_what_comes_back() -> None:
    assert len(set(IDS)) == 15
    assert sum(not task.once for task in TASKS) >= 10


@pytest.mark.parametrize("task", TASKS, ids=IDS)
async def test_adaptive_reaches_the_end(runs: PlanRuns, task: PlanTask) -> None:
    played = await runs.play(task, "adaptive")
    assert within_bounds(played.state)
    assert played.reached, played.state["results"]
    assert task.once or any(revision["added"] for revision in played.state["revisions"])


@pytest.mark.parametrize("task", TASKS, ids=IDS)
async def test_once_reaches_what_can_be_planned_beforehand(runs: PlanRuns, task: PlanTask) -> None:
    played = await runs.play(task, "once")
    assert within_bounds(played.state)
    assert played.reached is task.once, played.state["results"]


@pytest.mark.parametrize(
    ("bound", "words", "calls"),
    [
        ({"max_steps": 4}, "the request needs 5 steps, at most 4 are allowed", 4),
        ({"max_waves": 3}, "the plan has taken 3 waves of steps, its limit", 3),
        ({"token_budget": 700}, "the token budget of 700 is spent", 2),
    ],
)
async def test_a_reviser_that_always_asks_for_more_is_stopped(
    runs: PlanRuns, bound: dict[str, int], words: str, calls: int
) -> None:
    def greedy(told: Told) -> dict[str, Any]:
        return told.next(f"Search for files that match {len(told.results)}* in the directory {told.box}/files")

    runs.lay(TASKS[0], "00000000")
    request = f"Search {runs.box}/files until it is enough"
    state = await runs.run(request, deciding(greedy), planning="adaptive", **bound)
    made = [call["tool"] for result in state["results"].values() for call in result["calls"]]
    assert made == ["filesystem/search_files"] * calls
    said = [state["plan"]["incomplete"], *(result["error"] for result in state["results"].values())]
    assert any(words in text for text in said)
    assert words in state["messages"][-1].text
