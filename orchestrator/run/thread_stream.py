"""Runs the supervisor in a thread of this machine, and passes on what it streams."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

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
    """Runs a workflow until it ends or waits for a person.

    Args:
        workflow: The supervisor.
        threads: Stores its checkpoints.
        thread: The thread, which the caller has locked.
        given: Its input; None to continue.
        modes: Stream modes of LangGraph.
        take: Called with each part of the stream.
        user: ``langgraph_auth_user`` of the run; None for nobody.

    Returns:
        The state of the thread, with those of its unfinished steps.

    Raises:
        SettingsError: There is nothing to continue, or a new request would replace an unfinished one.
    """
    from callsheet.orchestrator.run.resumption import take_up

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
