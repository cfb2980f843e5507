"""Expands steps that are done for each item of a result, when that result is available."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from callsheet.agents import Plan, Revision, Step, StepResult
from callsheet.agents.planning.item_steps import ItemsError, expanded, items_of
from callsheet.agents.planning.planner import source_of
from callsheet.orchestrator.plans.run_turns import earlier_results
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.state import State, plan_of, results_of


@dataclass(frozen=True, slots=True)
class Expansion:
    """The expansion of all mapped steps that are due.

    Attributes:
        plan: The plan with one step per item in their place.
        revisions: The changes.
        empty: Steps without items.
        unreadable: Steps whose items cannot be read or are too many, each with the reason.
    """

    plan: Plan
    revisions: tuple[Revision, ...] = ()
    empty: tuple[Step, ...] = ()
    unreadable: tuple[tuple[Step, str], ...] = ()


def expand_mapped(state: State, settings: Settings) -> Expansion:
    """Replaces each mapped step whose list is available by one step per item."""
    plan, results, earlier = plan_of(state), results_of(state), earlier_results(state["turns"])
    revisions: list[Revision] = []
    empty: list[Step] = []
    unreadable: list[tuple[Step, str]] = []
    for step in plan.steps:
        sources = _sources(step, results, earlier)
        if not sources or step.id in results:
            continue
        try:
            items = items_of(step, *sources, max_items=settings.max_items)
        except ItemsError as error:
            unreadable.append((step, str(error)))
            continue
        if not items:
            empty.append(step)
            continue
        plan, revision = expanded(plan, step, items, wave=len(state["waves"]))
        revisions.append(revision)
    return Expansion(plan, tuple(revisions), tuple(empty), tuple(unreadable))


def _sources(step: Step, results: Mapping[str, StepResult], earlier: Mapping[str, StepResult]) -> Sequence[StepResult]:
    """The result with a step's items, or the results of a mapped step; empty while a dependency is unfinished."""
    if not step.for_each or step.item or any(name not in results for name in step.depends_on):
        return ()
    known = {**earlier, **results}
    name = source_of(step.for_each, known)
    parts = [other for other in step.depends_on if other.startswith(f"{name}.")]
    return [known[one] for one in ([name] if name in known else parts) if known[one].status == "done"]
