"""A supervisor over a catalog, and what is said in its threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from callsheet import Settings, create_supervisor


class Conversation:
    """A compiled supervisor; each thread has a name.

    Args:
        source: The agents, or a catalog.
        saver: Its checkpointer; by default one in memory.
        saved: Whether it has a checkpointer.
        settings: Fields of ``Settings``.
        options: Further arguments of ``create_supervisor``.

    Attributes:
        app: The compiled supervisor.
        config: The thread of the last request.
        events: What was streamed for it.
    """

    def __init__(
        self, source: Any, *, saver: Any = None, saved: bool = True, settings: Any = None, **options: Any
    ) -> None:
        workflow = create_supervisor(source, settings=Settings(**(settings or {})), **options)
        self.saver = (saver or InMemorySaver()) if saved else None
        self.app: Any = workflow.compile(checkpointer=self.saver)
        self.config: Any = {"configurable": {"thread_id": "1"}}
        self.events: list[Any] = []

    def ask(self, request: Any) -> dict[str, Any]:
        """Runs a request, or goes on with a ``Command``; the state with what waits for the user."""
        given = {"messages": [HumanMessage(request)]} if isinstance(request, str) else request
        durability = "sync" if self.saver else None
        state: dict[str, Any] = {}
        self.events = []
        for mode, part in self.app.stream(given, self.config, stream_mode=["custom", "values"], durability=durability):
            if mode == "custom":
                self.events.append(part)
            else:
                state = part
        return {**state, "waiting": list(state.get("__interrupt__", ()))}

    def revisions(self) -> list[Any]:
        """The revisions that were streamed in the last run."""
        return [event for event in self.events if event["event"] == "revision"]


Conversations = Callable[..., Conversation]
"""Makes a conversation; its parameters are those of the fixture."""
