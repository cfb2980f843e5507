"""Reads threads of the command line on this machine, and runs requests in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from langgraph.pregel.protocol import PregelProtocol
from starlette.requests import Request

from callsheet.agents import ToolRegistry
from callsheet.graphs import CallsheetError, SettingsError, UnknownNameError, User
from callsheet.orchestrator.run.threads import Threads, stream_in_thread
from callsheet.orchestrator.run_events import MODES, RunEvent, event_of, event_status, values_of
from callsheet.orchestrator.server.page_requests import RefusedError
from callsheet.orchestrator.server.runs.runs import MOST_RUNS, Thread, config_of, missing_thread, no_thread
from callsheet.orchestrator.server.visible_catalog import shown_line

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

_MOST_ENDED = 8
"""Number of ended runs of this process whose trouble can still be seen."""


class _LocalRun:
    """A run of this process, with its events from the beginning for whoever comes late."""

    def __init__(self, first: RunEvent) -> None:
        self._events: list[RunEvent] = [first]
        self._trouble = ""
        self._changed = asyncio.Event()
        self.task: asyncio.Task[None] | None = None
        self.over = False

    def take(self, namespace: Sequence[str], mode: str, data: Any) -> None:
        """Takes a part of the run's stream."""
        event = event_of(namespace, mode, data)
        if event:
            self._events.append(event)
            self._tell()

    def end(self, trouble: str = "") -> None:
        """Ends it, with what went wrong; from now on, the state of the thread tells the rest."""
        self._trouble = trouble
        self._events = []
        self.over = True
        self._tell()

    async def events(self) -> AsyncIterator[RunEvent]:
        """Yields its events until it ends, and what ended it."""
        place = 0
        while True:
            changed = self._changed
            # An event may be added while another one is yielded.
            while place < len(self._events):
                yield self._events[place]
                place += 1
            if self.over:
                break
            await changed.wait()
        if self._trouble:
            yield {"event": "trouble", "text": self._trouble}

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class LocalBackend:
    """Runs requests of one user in the event loop of the page, in the threads of a catalog.

    The sessions of a cancelled run are closed.
    """

    def __init__(
        self,
        workflow: StateGraph[Any, Any, Any, Any],
        threads: Threads,
        registry: ToolRegistry,
        user: User | None = None,
    ) -> None:
        self._workflow = workflow
        self._threads = threads
        self._registry = registry
        self._user = {"identity": user.id, "groups": sorted(user.groups)} if user and user.id else None
        self._runs: dict[str, _LocalRun] = {}  # the last one of each thread

    async def recent(self, request: Request) -> Sequence[Thread]:
        """Returns the latest threads of the user."""
        return [await self._thread(request, name) for name in self._threads.names()[:MOST_RUNS]]

    async def _thread(self, request: Request, name: str) -> Thread:
        try:
            async with self.app(request, name) as app:
                state = await app.aget_state(config_of(name))
        except SettingsError as error:
            return Thread(id=name, request=shown_line(str(error)), status="error", at="")
        status = "running" if self._goes_on(name) else event_status(state)
        text = shown_line(str(values_of(state).get("request", "")))
        return Thread(id=name, request=text, status=status, at=state.created_at or "")

    async def waiting(self, request: Request) -> None:
        """Returns None, because pending questions are counted only on a server."""

    @asynccontextmanager
    async def app(self, request: Request, thread: str) -> AsyncIterator[PregelProtocol[Any, Any, Any, Any]]:
        """Opens the checkpoints of a thread."""
        if thread not in self._threads.names():
            raise UnknownNameError(no_thread(thread))
        async with self._threads.saver(thread) as saver:
            yield self._workflow.compile(checkpointer=saver, name="supervisor")

    async def begin(self, request: Request, thread: str | None, given: Any) -> str:
        """Begins a run as a task of this process."""
        if thread is not None:
            self._check(thread)
        chosen = thread or self._threads.new()
        if self._goes_on(chosen):
            raise RefusedError("the last request of this thread is still running: wait for it, or cancel it")
        ended = [name for name in self._runs if not self._goes_on(name)]
        for name in ended[:-_MOST_ENDED]:
            del self._runs[name]
        first: RunEvent = {"event": "running"}
        if isinstance(given, dict):
            first = {"event": "request", "request": given["messages"][-1]["content"]}
        run = self._runs[chosen] = _LocalRun(first)
        run.task = asyncio.create_task(self._run(chosen, run, given))
        return chosen

    async def events(self, request: Request, thread: str) -> AsyncIterator[RunEvent]:
        """Yields the events of the thread's run."""
        if thread in self._runs:
            async for event in self._runs[thread].events():
                yield event

    async def cancel(self, request: Request, thread: str) -> None:
        """Cancels the task of the thread's run and waits until it has ended."""
        self._check(thread)
        run = self._runs.get(thread)
        if run and run.task:
            run.task.cancel()
            await asyncio.wait([run.task])

    def _goes_on(self, thread: str) -> bool:
        return thread in self._runs and not self._runs[thread].over

    def _check(self, thread: str) -> None:
        if thread not in self._runs and thread not in self._threads.names():
            raise missing_thread(thread)

    async def _run(self, thread: str, run: _LocalRun, given: Any) -> None:
        trouble = ""
        try:
            with self._threads.locked(thread):
                await stream_in_thread(
                    self._workflow, self._threads, thread, given, modes=MODES, take=run.take, user=self._user
                )
        except asyncio.CancelledError:
            trouble = "cancelled"
        except CallsheetError as error:
            trouble = str(error)
        except Exception as error:  # noqa: BLE001 whatever a run raises is told on the page, and does not end the server
            trouble = f"{type(error).__name__}: {error}"
        try:
            if trouble:
                await self._close_sessions(thread)
        finally:
            run.end(trouble)

    async def _close_sessions(self, thread: str) -> None:
        """Closes the sessions of a run that did not come to its end."""
        with suppress(CallsheetError):
            async with self._threads.saver(thread) as saver:
                state = await self._workflow.compile(checkpointer=saver).aget_state(config_of(thread))
            await self._registry.close_run(str(state.values.get("run") or ""))
