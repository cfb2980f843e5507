"""The workflow's store, as on LangGraph's server: preferences and observed dependencies."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore

from callsheet.agents import Call, Plan, StepResult
from callsheet.graphs import Catalog, SettingsError
from callsheet.graphs.dependencies import ObservationLog, OutcomeLog, Seen, observed, outcomes_of
from callsheet.orchestrator.run.current_user import caller
from callsheet.orchestrator.run.settings import Settings

PREFERENCES = "preferences"
"""Key of a user's preferences in the user's namespace; the value has fields of ``Settings``."""
OBSERVED = ("callsheet", "observed")
"""Namespace of observed dependencies: one item per edge."""
_PAGE = 100
_LOG = logging.getLogger(__name__)


def namespace_of(user: str) -> tuple[str, str]:
    """A user's namespace: by convention it begins with the id, with escaped full stops, which are not allowed."""
    return (user.replace("%", "%25").replace(".", "%2E"), "callsheet")


def store() -> BaseStore | None:
    """The store of the current run; None if the workflow was compiled without one."""
    return get_runtime().store


async def preferences() -> dict[str, Any]:
    """The preferences of the current user: fields of ``Settings``; empty for an anonymous user.

    Raises:
        SettingsError: The stored value is invalid; the message names its place.
    """
    kept, user = store(), caller().id
    item = await kept.aget(namespace_of(user), PREFERENCES) if kept is not None and user else None
    if item is None:
        return {}
    try:
        return Settings(**item.value).model_dump(mode="json", exclude_unset=True)
    except (SettingsError, TypeError) as error:
        raise SettingsError(f"the preferences of {user!r} in the store ({namespace_of(user)}): {error}") from error


async def count_observed(kept: BaseStore, seen: Mapping[Seen, int]) -> None:
    """Adds to the counts in a store. If two runs end at the same moment, one may not be counted."""
    for edge, count in seen.items():
        key = _key(edge)
        before = await kept.aget(OBSERVED, key)
        times = count + (before.value.get("count", 0) if before else 0)
        await kept.aput(OBSERVED, key, {"edge": list(edge), "count": times}, index=False)


async def observed_on(url: str) -> Counter[Seen]:
    """The counts in the store of a LangGraph server; its key is ``LANGGRAPH_API_KEY``, if it needs one.

    Raises:
        SettingsError: It does not answer, or refuses.
    """
    import httpx
    from langgraph_sdk import get_client
    from langgraph_sdk.errors import LangGraphError

    values: list[Mapping[str, Any]] = []
    try:
        client = get_client(url=url)
        while len(values) % _PAGE == 0:
            found = await client.store.search_items(OBSERVED, limit=_PAGE, offset=len(values))
            values += [item["value"] for item in found["items"]]
            if not found["items"]:
                break
    except (httpx.HTTPError, httpx.InvalidURL, LangGraphError) as error:
        raise SettingsError(f"the store of {url} cannot be read: {error or type(error).__name__}") from error
    return counts_of(values)


def counts_of(values: Iterable[Mapping[str, Any]]) -> Counter[Seen]:
    """The counts in items of a store; invalid items are skipped and logged."""
    counts: Counter[Seen] = Counter()
    for value in values:
        match value:
            case {"edge": [str() as source, str() as target, str() as parameter], "count": int() as count}:
                counts[source, target, parameter] += count
            case _:
                _LOG.warning("an item of %s is not a count: %s", "/".join(OBSERVED), str(value)[:200])
    return counts


def _key(edge: Seen) -> str:
    return hashlib.sha256(json.dumps(edge).encode()).hexdigest()[:32]


def observed_in(plan: Plan, results: Mapping[str, StepResult], request: str) -> Counter[Seen]:
    """Arguments that calls of a run took from results of earlier calls.

    Only calls of agents count: what a worker does itself (reads a result, runs a program) passes on values of others.

    Args:
        plan: The steps; a call can only use results of steps that its own depends on.
        results: The results by step id.
        request: The user's text: a value in it need not come from a tool.
    """
    seen: Counter[Seen] = Counter()
    for step in plan.steps:
        before = [call for name in plan.ancestors(step.id) for call in _of_agents(results[name])]
        before.sort(key=lambda call: call.began)  # steps run side by side, or again
        seen.update(observed(_of_agents(results[step.id]), before=before, said=request))
    return seen


def _of_agents(result: StepResult) -> list[Call]:
    return [call for call in result.calls if call.agent]


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
