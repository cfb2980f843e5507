"""Carries out requests of the page in this process, in the threads of the command line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import HumanMessage
from langgraph.types import Command
from starlette.requests import Request

from callsheet.agents import ToolRegistry
from callsheet.graphs import CallsheetError, User
from callsheet.orchestrator.run.thread_files import Threads
from callsheet.orchestrator.run.thread_stream import stream_in_thread
from callsheet.orchestrator.server.runs.live_run import MODES, LiveRun
from callsheet.orchestrator.server.runs.run_history import Moment, RunRefusedError
from callsheet.orchestrator.server.runs.shown_runs import run_ended
from callsheet.orchestrator.server.runs.stores.local_runs import LocalRuns

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

_MOST = 8
"""Maximum runs at once."""


@dataclass(slots=True)
class _Work:
    """A run that goes on, or the last one of its thread."""

    live: LiveRun
    task: asyncio.Task[None] | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self) -> None:
        """Wakes everybody who watches."""
        before, self.changed = self.changed, asyncio.Event()
        before.set()


class LocalRunner:
    """Runs the supervisor in the event loop of the page.

    Args:
        workflow: The supervisor.
        threads: Where its checkpoints are stored.
        registry: Calls the tools; the sessions of a cancelled run are closed.
        user: For whom it runs.
    """

    def __init__(
        self,
        workflow: StateGraph[Any, Any, Any, Any],
        threads: Threads,
        registry: ToolRegistry,
        user: User | None = None,
    ) -> None:
        self._workflow, self._threads, self._registry = workflow, threads, registry
        groups = sorted(user.groups) if user else []
        self._user = {"identity": user.id, "groups": groups} if user and user.id else None
        self._runs = LocalRuns(threads)
        self._work: dict[str, _Work] = {}

    async def start(self, request: Request, thread: str | None, text: str) -> str:
        """Starts a request."""
        if thread is not None:
            self._check(thread)
        chosen = thread or self._threads.new()
        live = LiveRun(Moment({"request": text}, ""))
        self._begin(chosen, live, {"messages": [HumanMessage(text)]})
        return chosen

    async def resume(self, request: Request, thread: str, answers: Mapping[str, Any]) -> None:
        """Answers questions, or continues a run that stopped."""
        self._check(thread)
        self._begin(thread, LiveRun(await self._runs.last(thread)), Command(resume=dict(answers)) if answers else None)

    async def cancel(self, request: Request, thread: str) -> None:
        """Stops a run."""
        self._check(thread)
        work = self._work.get(thread)
        if work is not None and work.task is not None and not work.task.done():
            work.task.cancel()
            await asyncio.wait([work.task])

    async def watch(self, request: Request, thread: str) -> AsyncIterator[Moment]:
        """The run of a thread as it goes."""
        work = self._work.get(thread)
        while work is not None:
            changed = work.changed
            yield work.live.moment
            if work.task is None or work.task.done():
                return
            await changed.wait()

    def _check(self, thread: str) -> None:
        if thread not in self._work and thread not in self._threads.names():
            raise RunRefusedError(f"there is no thread {thread!r} of this page")

    def _begin(self, thread: str, live: LiveRun, given: Any) -> None:
        going = [name for name, work in self._work.items() if work.task is not None and not work.task.done()]
        if thread in going:
            raise RunRefusedError("the last request of this thread is still running: wait for it, or cancel it")
        if len(going) >= _MOST:
            raise RunRefusedError(f"{_MOST} runs are in progress here, the maximum: wait for one, or cancel one")
        for name in [name for name in self._work if name not in going][:-_MOST]:
            del self._work[name]
        self._work[thread] = work = _Work(live)
        work.task = asyncio.create_task(self._run(thread, work, given))

    async def _run(self, thread: str, work: _Work, given: Any) -> None:
        def take(namespace: Any, mode: str, data: Any) -> None:
            work.live.take(namespace, mode, data)
            work.tell()

        try:
            with self._threads.locked(thread):
                await stream_in_thread(
                    self._workflow, self._threads, thread, given, modes=MODES, take=take, user=self._user
                )
                last = await self._runs.last(thread)
                self._threads.settle(thread, ended=run_ended(last))
            work.live.end(last)
        except asyncio.CancelledError:
            work.live.fail("cancelled")
            await self._close(work.live)
        except CallsheetError as error:
            work.live.fail(str(error))
        except Exception as error:  # noqa: BLE001 whatever a run raises is told on the page, and does not end the server
            work.live.fail(f"{type(error).__name__}: {error}")
            await self._close(work.live)
        finally:
            work.task = None
            work.tell()

    async def _close(self, live: LiveRun) -> None:
        """Ends the sessions of a run that was cut off."""
        if run := live.moment.values.get("run"):
            with suppress(CallsheetError):
                await self._registry.close_run(str(run))
