"""Going on with a run of a thread: where it was cut off, or with the steps that failed."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.types import Overwrite

from callsheet.graphs import SettingsError
from callsheet.orchestrator.run.settings import Settings

_OVER = ("failed", "skipped")


async def take_up(
    app: PregelProtocol[Any, Any, Any, Any], config: RunnableConfig, *, again: Collection[str] = ()
) -> bool:
    """Makes a thread ready to go on, as ``resume`` says; what runs it next is given no input.

    Returns:
        Whether there is anything left to be done.

    Raises:
        SettingsError: As in ``resume``.
    """
    before = await app.aget_state(config)
    if not before.values:
        raise SettingsError(f"there is nothing to resume in thread {config.get('configurable', {}).get('thread_id')!r}")
    results: dict[str, Any] = before.values.get("results", {})
    doubtful = {step for step, result in results.items() if result["status"] == "outcome_unknown"}
    if wrong := sorted(set(again) - doubtful):
        raise SettingsError(
            f"step {', '.join(wrong)} is not of unknown outcome: there are {sorted(doubtful) or 'none'}"
        )
    # A thread that died between two writes has tasks that are done, and nothing that comes next.
    if before.tasks:
        return True
    kept = {step: r for step, r in results.items() if r["status"] not in _OVER and step not in again}
    if kept == results:
        return False
    await app.aupdate_state(config, {"results": Overwrite(kept)}, as_node="plan")
    return True


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
    if not await take_up(app, config, again=again):
        return dict((await app.aget_state(config)).values)
    state: dict[str, Any] = await app.ainvoke(None, config, context=context)
    return state
