"""What a run shows of how tools depend on each other, kept for ``callsheet infer``."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping

from callsheet.agents import Plan, StepResult
from callsheet.graphs.dependencies import ObservationLog, Seen, observed
from callsheet.orchestrator.run.run_store import count_observed, store

_LOG = logging.getLogger(__name__)


def observed_in(plan: Plan, results: Mapping[str, StepResult], request: str) -> Counter[Seen]:
    """The arguments that calls of a run took from results of earlier calls.

    Args:
        plan: The steps; a call can only have used the results of steps that its own builds on.
        results: What became of each step, by its id.
        request: The user's words: a value that stands there need not have come from a tool.
    """
    seen: Counter[Seen] = Counter()
    for step in plan.steps:
        before = [call for name in plan.ancestors(step.id) for call in results[name].calls]
        seen.update(observed(results[step.id].calls, before=before, said=request))
    return seen


async def keep_observed(
    log: ObservationLog | None, plan: Plan, results: Mapping[str, StepResult], request: str
) -> None:
    """Adds what a run shows to the counts; that they cannot be kept is logged, and no reason to fail the run.

    Args:
        log: Where they are kept if the workflow was compiled without a store; nothing is counted where None.
        plan: As in ``observed_in``.
        results: As in ``observed_in``.
        request: As in ``observed_in``.
    """
    if log is None or not (seen := observed_in(plan, results, request)):
        return
    kept = store()
    try:
        await (count_observed(kept, seen) if kept is not None else asyncio.to_thread(log.add, seen))
    except Exception as error:  # noqa: BLE001 a store raises errors of its own
        _LOG.warning("observed dependencies are not kept: %s", error)
