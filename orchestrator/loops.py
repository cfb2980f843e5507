"""Asynchronous nodes that a blocking caller can run too."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import set_config_context

from callsheet.agents import BackgroundLoop, in_threads

_LOOP = BackgroundLoop("callsheet-sync")


def both_ways(
    node: Callable[..., Coroutine[Any, Any, Any]], name: str, app: Runnable[Any, Any] | None = None
) -> RunnableLambda[Any, Any]:
    """An asynchronous node that ``invoke`` can run too, on a loop of its own.

    Args:
        node: Takes the state, and the app if one is given.
        name: What it is called in traces.
        app: What the node runs inside. LangGraph sees it in this closure: it draws it within the node, and streams
            and checkpoints it as a part of the run.
    """

    def blocking(state: Any, config: RunnableConfig) -> Any:
        with set_config_context(in_threads(config)) as context:
            return context.run(_LOOP.blocking, node(state, app) if app else node(state))

    async def running(state: Any) -> Any:
        return await (node(state, app) if app else node(state))

    return RunnableLambda(blocking, running, name=name)
