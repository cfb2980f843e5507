"""Observes which tools take arguments from which, and how calls end."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping

from callsheet.agents import Plan, StepResult
from callsheet.graphs import Catalog
from callsheet.graphs.dependencies import ObservationLog, OutcomeLog, Seen, observed, outcomes_of
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
    log: ObservationLog, plan: Plan, results: Mapping[str, StepResult], request: str, catalog: Catalog
) -> None:
    """Counts the observed dependencies of a run, and the outcomes of its calls; errors are logged.

    Dependencies go to the store of the run, or to the log if there is no store; outcomes to a file beside the log.
    """
    kept, outcomes = store(), OutcomeLog(log.file.sibling(OutcomeLog.name))
    ended = outcomes_of(call for result in results.values() for call in result.calls)
    try:
        await asyncio.to_thread(outcomes.add, ended, catalog)
    except Exception as error:  # noqa: BLE001 a file may be damaged, a disk full
        _LOG.warning("the outcomes of calls were not stored: %s", error)
    try:
        if seen := observed_in(plan, results, request):
            await (count_observed(kept, seen) if kept is not None else asyncio.to_thread(log.add, seen))
    except Exception as error:  # noqa: BLE001 a store may raise anything
        _LOG.warning("observed dependencies were not stored: %s", error)
