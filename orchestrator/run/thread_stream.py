"""Runs or continues the supervisor in a thread of this machine, and passes on what it streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.types import Overwrite

from callsheet.graphs import SettingsError
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


def without_failed(results: Mapping[str, Any]) -> dict[str, Any]:
    """The results of a run without those of the steps that are to be repeated: failed, or skipped because of that."""
    return {step: result for step, result in results.items() if result["status"] not in _OVER}


async def take_up(app: PregelProtocol[Any, Any, Any, Any], config: RunnableConfig) -> bool:
    """Prepares a thread to continue its last run; the next run gets no input.

    An interrupted run continues where it was. A run that ended continues with the steps that failed, and with those
    that were skipped because of them; for example when a server is back.

    Returns:
        Whether anything is left to do.

    Raises:
        SettingsError: The thread is unknown.
    """
    before = await app.aget_state(config)
    if not before.values:
        raise SettingsError(f"there is nothing to resume in thread {config.get('configurable', {}).get('thread_id')!r}")
    # A thread that died between two writes has finished tasks, and no next node.
    if before.tasks:
        return True
    results: dict[str, Any] = before.values.get("results", {})
    kept = without_failed(results)
    if kept == results:
        return False
    await app.aupdate_state(config, {"results": Overwrite(kept)}, as_node="plan")
    return True
