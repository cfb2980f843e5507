"""The threads and runs of the page, on either backend."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.pregel.protocol import PregelProtocol
from langgraph.types import Command, StateSnapshot
from starlette.requests import Request
from typing_extensions import TypedDict

from callsheet.graphs import UnknownNameError
from callsheet.orchestrator.run_events import RunEvent, last_states, state_events
from callsheet.orchestrator.server.page_requests import RefusedError

MOST_RUNS = 50
MOST_STATES = 100


class Thread(TypedDict):
    """A conversation with the supervisor: its last request, and the time of its last change in ISO 8601.

    ``status`` is ``running``, ``error``, or that of the last request (``event_status``).
    """

    id: str
    request: str
    status: str
    at: str


class Backend(Protocol):
    """Stores threads and carries out requests: in this process, or on the LangGraph server of the page.

    Each method gets the viewer's request, whose credentials a server checks.
    """

    async def recent(self, request: Request) -> Sequence[Thread]:
        """Returns the latest threads that the viewer may see, the most recent first."""
        ...

    async def waiting(self, request: Request) -> int | None:
        """Returns the number of pending questions in all threads; None if it is not known."""
        ...

    def app(self, request: Request, thread: str) -> AbstractAsyncContextManager[PregelProtocol[Any, Any, Any, Any]]:
        """Opens the app that reads the states of a thread.

        Raises:
            UnknownNameError: There is no such thread, or the viewer may not see it.
            RefusedError: The server refuses a request of the app.
        """
        ...

    async def begin(self, request: Request, thread: str | None, given: Any) -> str:
        """Starts a run in a thread, or in a new one, and returns the thread's id; no input continues the last run.

        Raises:
            RefusedError: There is no such thread, or its last run goes on.
        """
        ...

    def events(self, request: Request, thread: str) -> AsyncIterator[RunEvent]:
        """Yields the events of a current run, from its beginning; nothing if no run goes on.

        The first event is ``request``, or ``running`` if a run is continued. If an error ended the run, the last event
        is ``trouble`` with ``text``; it is also sent after the run.
        """
        ...

    async def cancel(self, request: Request, thread: str) -> None:
        """Stops the run of a thread; it can be continued.

        Raises:
            RefusedError: There is no such thread.
        """
        ...


class Runs:
    """Shows threads and runs to the page, and carries out its requests.

    A viewer sees and changes only what the backend allows. A change that is not possible raises a ``RefusedError``.
    """

    def __init__(self, backend: Backend) -> None:
        self.backend = backend

    async def state(self, request: Request, thread: str) -> StateSnapshot | None:
        """Returns the last state of a thread; None if it has none, or if the viewer may not see it."""
        # A history, because a remote graph cannot read the state of a thread that has none.
        states = await self.history(request, thread, most=1)
        return states[0] if states else None

    async def history(self, request: Request, thread: str, *, most: int = MOST_STATES) -> Sequence[StateSnapshot]:
        """Returns the last states of a thread, the latest first; empty if the viewer may not see the thread."""
        try:
            async with self.backend.app(request, thread) as app:
                return [state async for state in app.aget_state_history(config_of(thread), limit=most)]
        except UnknownNameError:
            return []

    async def start(self, request: Request, thread: str | None, text: str) -> str:
        """Starts a request in a thread, or in a new one, and returns the thread's id."""
        return await self.backend.begin(request, thread, {"messages": [{"role": "user", "content": text}]})

    async def resume(self, request: Request, thread: str, answers: Mapping[str, Any]) -> None:
        """Answers questions by id; without answers, continues where the run stopped, or with the failed steps."""
        await self.backend.begin(request, thread, Command(resume=dict(answers)) if answers else None)

    async def watch(self, request: Request, thread: str) -> AsyncIterator[RunEvent]:
        """Yields the events of the last request of a thread, to its end or to a question.

        Yields nothing if the viewer may not see the thread.
        """
        async for event in self._told(request, thread):
            yield event
        live = False
        trouble: list[RunEvent] = []
        async for event in self.backend.events(request, thread):
            if event["event"] == "trouble":
                trouble.append(event)
                continue
            live = True
            yield event
        if live:
            async for event in self._told(request, thread):
                yield event
        for event in trouble:
            yield event

    async def _told(self, request: Request, thread: str) -> AsyncIterator[RunEvent]:
        """Yields what the last state of a thread's last request tells."""
        # For a moment, the last state of the thread is that of an answered request with the next one added to its
        # messages. The state before it is the answered request's own.
        states = last_states(await self.history(request, thread, most=2))
        for event in state_events(states[0]) if states else ():
            yield event


def config_of(thread: str) -> RunnableConfig:
    """Returns the LangGraph configuration that names a thread."""
    return {"configurable": {"thread_id": thread}}


def no_thread(thread: str) -> str:
    """Returns the message for a thread that does not exist for the viewer."""
    return f"there is no thread {thread!r} that you may see"


def missing_thread(thread: str) -> RefusedError:
    """Returns the error for a change of a thread that does not exist for the viewer."""
    return RefusedError(no_thread(thread))
