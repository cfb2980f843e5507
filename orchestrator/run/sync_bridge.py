"""Runs asynchronous nodes for blocking callers too."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.runnables.config import set_config_context
from langgraph.config import get_config

from callsheet.agents import in_threads
from callsheet.agents.calls.call_context import LOOP

T = TypeVar("T")


def waited_for(work: Coroutine[Any, Any, T]) -> T:
    """Runs asynchronous work inside a blocking run, and returns its result."""
    with set_config_context(in_threads(get_config())) as context:
        return context.run(LOOP.blocking, work)


def sync_and_async(
    node: Callable[..., Coroutine[Any, Any, Any]], name: str, app: Runnable[Any, Any] | None = None
) -> RunnableLambda[Any, Any]:
    """An asynchronous node that ``invoke`` can run too, on the background loop.

    Args:
        node: Takes the state, and the app if there is one.
        name: Name in traces.
        app: Called by the node. LangGraph finds it in this closure: it draws the app inside the node, and streams and
            checkpoints it as a part of the run.
    """

    def blocking(state: Any) -> Any:
        return waited_for(node(state, app) if app else node(state))

    async def running(state: Any) -> Any:
        return await (node(state, app) if app else node(state))

    return RunnableLambda(blocking, running, name=name)
