"""Observes which tools take arguments from which, for ``callsheet infer``."""

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
    """Arguments that calls of a run took from results of earlier calls.

    Args:
        plan: The steps; a call can only use results of steps that its own depends on.
        results: The results by step id.
        request: The user's text: a value in it need not come from a tool.
    """
    seen: Counter[Seen] = Counter()
    for step in plan.steps:
        before = [call for name in plan.ancestors(step.id) for call in results[name].calls]
        seen.update(observed(results[step.id].calls, before=before, said=request))
    return seen


async def keep_observed(
    log: ObservationLog | None, plan: Plan, results: Mapping[str, StepResult], request: str
) -> None:
    """Counts the observed dependencies of a run; errors are logged, and do not fail the run.

    The counts go to the store of the run, or to the log if there is no store; without a log, nothing is counted.
    """
    if log is None or not (seen := observed_in(plan, results, request)):
        return
    kept = store()
    try:
        await (count_observed(kept, seen) if kept is not None else asyncio.to_thread(log.add, seen))
    except Exception as error:  # noqa: BLE001 a store may raise anything
        _LOG.warning("observed dependencies were not stored: %s", error)
