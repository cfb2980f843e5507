"""Going on with a run of a thread: where it was cut off, or with the steps that failed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.types import Overwrite

from callsheet.graphs import SettingsError
from callsheet.orchestrator.settings import Settings

_OVER = ("failed", "skipped")


async def resume(
    app: PregelProtocol[Any, Any, Any, Any],
    config: RunnableConfig,
    *,
    again: Collection[str] = (),
    context: Settings | None = None,
) -> dict[str, Any]:
    """Goes on with the last run of a thread; steps that are done are not done again.

    A run that was cut off goes on where it was. One that came to an end is taken up again with the steps that failed,
    and those that were skipped for their sake, as when a server is back that was down.

    Args:
        app: A supervisor, compiled with a checkpointer.
        config: Names the thread.
        again: Steps of unknown outcome that somebody has looked at and wants done (again); they are left as they are
            otherwise.
        context: Options of the run.

    Returns:
        The state at its end.

    Raises:
        SettingsError: The thread is not known, or has no step of unknown outcome by that name.
    """
    before = await app.aget_state(config)
    results: dict[str, Any] = before.values.get("results", {})
    if not before.values.get("plan"):
        raise SettingsError(f"there is nothing to resume in thread {config.get('configurable', {}).get('thread_id')!r}")
    doubtful = {step for step, result in results.items() if result["status"] == "outcome_unknown"}
    if wrong := sorted(set(again) - doubtful):
        raise SettingsError(f"step {', '.join(wrong)} is not of unknown outcome: there are {sorted(doubtful) or 'none'}")
    if not before.next:
        kept = {step: r for step, r in results.items() if r["status"] not in _OVER and step not in again}
        if kept == results:
            return dict(before.values)
        config = await app.aupdate_state(config, {"results": Overwrite(kept)}, as_node="plan")
    state: dict[str, Any] = await app.ainvoke(None, config, context=context)
    return state
