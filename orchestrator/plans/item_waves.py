"""Steps that are done once for each item of a result, when that result is there."""

from __future__ import annotations

from collections.abc import Mapping
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
        source = _source(step, results, earlier)
        if source is None or step.id in results:
            continue
        try:
            items = items_of(step, source, max_items=max_items)
        except ItemsError as error:
            unreadable.append((step, str(error)))
            continue
        if not items:
            empty.append(step)
            continue
        plan, revision = expanded(plan, step, items, wave=wave)
        revisions.append(revision)
    return Expansion(plan, tuple(revisions), tuple(empty), tuple(unreadable))


def _source(step: Step, results: Mapping[str, StepResult], earlier: Mapping[str, StepResult]) -> StepResult | None:
    """The result that holds a step's items, if it is there and the step waits for nothing else."""
    if not step.for_each or step.item or any(name not in results for name in step.depends_on):
        return None
    known = {**earlier, **results}
    source = known.get(source_of(step.for_each, known))
    return source if source is not None and source.status == "done" else None
