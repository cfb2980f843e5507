"""Runs or continues the supervisor in a thread of this machine, and passes on what it streams."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.types import Overwrite

from callsheet.graphs import SettingsError
from callsheet.orchestrator.run.settings import Settings
from callsheet.orchestrator.run.thread_files import Threads

if TYPE_CHECKING:
    from langgraph.graph import StateGraph
    from langgraph.types import StateSnapshot

Take = Callable[[Sequence[str], str, Any], None]
"""Takes a part of a stream: its namespace, empty for the supervisor's own, its mode, and the data."""


async def stream_in_thread(
    workflow: StateGraph[Any, Any, Any, Any],
    threads: Threads,
    thread: str,
    given: Any,
    *,
    modes: Sequence[Any],
    take: Take,
    user: Mapping[str, Any] | None = None,
) -> StateSnapshot:
    """Runs a workflow until it ends or waits for a person; no input continues. The caller has locked the thread.

    Returns:
        The state of the thread, with those of its unfinished steps.

    Raises:
        SettingsError: There is nothing to continue, or a new request would replace an unfinished one.
    """
    config: Any = {"configurable": {"thread_id": thread, **({"langgraph_auth_user": user} if user else {})}}
    async with threads.saver(thread) as saver:
        app = workflow.compile(checkpointer=saver, name="supervisor")
        if isinstance(given, dict) and (await app.aget_state(config)).tasks:
            raise SettingsError(
                f"the last request of {thread!r} is not finished: continue with --resume, or name another"
            )
        if given is not None or await take_up(app, config):
            stream: Any = app.astream(given, config, stream_mode=[*modes], subgraphs=True, durability="sync")
            async for namespace, mode, data in stream:
                take(namespace, mode, data)
        return await app.aget_state(config, subgraphs=True)


_OVER = ("failed", "skipped")


async def take_up(
    app: PregelProtocol[Any, Any, Any, Any], config: RunnableConfig, *, again: Collection[str] = ()
) -> bool:
    """Prepares a thread for ``resume``; the next run gets no input.

    Returns:
        Whether anything is left to do.

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
            f"step {', '.join(wrong)} has no unknown outcome; steps that have one: {sorted(doubtful) or 'none'}"
        )
    # A thread that died between two writes has finished tasks, and no next node.
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
    """Continues the last run of a thread; finished steps are not repeated.

    An interrupted run continues where it was. A run that ended continues with the steps that failed, and with those
    that were skipped because of them; for example when a server is back.

    Args:
        app: A supervisor, compiled with a checkpointer.
        config: Names the thread.
        again: Steps of unknown outcome that a person has checked and wants to run again; others do not change.
        context: Options of the run.

    Returns:
        The final state.

    Raises:
        SettingsError: The thread is unknown, or one of these steps does not have an unknown outcome.
    """
    if not await take_up(app, config, again=again):
        return dict((await app.aget_state(config)).values)
    state: dict[str, Any] = await app.ainvoke(None, config, context=context)
    return state
