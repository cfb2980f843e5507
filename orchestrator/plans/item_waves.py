"""Steps that are done once for each item of a result, when that result is there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from callsheet.agents import Plan, Revision, Step, StepResult
from callsheet.agents.planning.item_steps import ItemsError, expanded, items_of
from callsheet.agents.planning.planner import source_of


@dataclass(frozen=True, slots=True)
class Expansion:
    """What became of the mapped steps that are due.

    Attributes:
        plan: The plan with a step for each item in their place.
        revisions: What that changed.
        empty: Steps that have nothing to do, because there are no items.
        unreadable: Steps whose items cannot be read or are too many, each with the reason.
    """

    plan: Plan
    revisions: tuple[Revision, ...] = ()
    empty: tuple[Step, ...] = ()
    unreadable: tuple[tuple[Step, str], ...] = ()


def expand_mapped(
    plan: Plan,
    results: Mapping[str, StepResult],
    earlier: Mapping[str, StepResult],
    *,
    wave: int,
    max_items: int,
) -> Expansion:
    """Replaces each mapped step whose list is there by a step for each item.

    Args:
        plan: The plan.
        results: What became of its steps so far, by id.
        earlier: Results of earlier requests, by id.
        wave: Number of waves that have run.
        max_items: Maximum number of items of a step.
    """
    revisions: list[Revision] = []
    empty: list[Step] = []
    unreadable: list[tuple[Step, str]] = []
    for step in plan.steps:
        sources = _sources(step, results, earlier)
        if not sources or step.id in results:
            continue
        try:
            items = items_of(step, *sources, max_items=max_items)
        except ItemsError as error:
            unreadable.append((step, str(error)))
            continue
        if not items:
            empty.append(step)
            continue
        plan, revision = expanded(plan, step, items, wave=wave)
        revisions.append(revision)
    return Expansion(plan, tuple(revisions), tuple(empty), tuple(unreadable))


def _sources(step: Step, results: Mapping[str, StepResult], earlier: Mapping[str, StepResult]) -> Sequence[StepResult]:
    """The result that holds a step's items, or those of a step that was done once for each item.

    There is none while the step waits for anything.
    """
    if not step.for_each or step.item or any(name not in results for name in step.depends_on):
        return ()
    known = {**earlier, **results}
    name = source_of(step.for_each, known)
    parts = [other for other in step.depends_on if other.startswith(f"{name}.")]
    return [known[one] for one in ([name] if name in known else parts) if known[one].status == "done"]
