"""Earlier requests of a conversation, whose results later requests can use by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from callsheet.agents import StepResult
from callsheet.orchestrator.state import State

_MOST = 5
"""Number of earlier requests whose results are kept."""


def archived(state: State) -> list[dict[str, Any]]:
    """The earlier requests with the last one of this thread, if it had a plan; a new request is about to replace it."""
    turns = list(state.get("turns", []))
    results = state.get("results", {})
    if not results:
        return turns
    done = {name: result for name, result in results.items() if result["status"] == "done"}
    number = 1 + max((int(turn["id"].removeprefix("t")) for turn in turns), default=0)
    return [*turns, {"id": f"t{number}", "request": state["request"], "results": done}][-_MOST:]


def earlier_results(turns: Sequence[Mapping[str, Any]]) -> dict[str, StepResult]:
    """The results of earlier requests by id, such as ``t1.2``, the latest request first."""
    return {
        (name := f"{turn['id']}.{step}"): StepResult(**{**result, "id": name, "depends_on": ()})
        for turn in reversed(turns)
        for step, result in turn["results"].items()
    }


def last_results(turns: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Ids of the results of the last request."""
    return tuple(earlier_results(turns[-1:]))
