"""Runs on this machine: those of the threads of the command line, and new ones in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import Command, Interrupt
from starlette.requests import Request

from callsheet.agents import ToolRegistry
from callsheet.graphs import CallsheetError, SettingsError, User
from callsheet.orchestrator.run.threads import Threads, stream_in_thread
from callsheet.orchestrator.server.page_requests import RefusedError
from callsheet.orchestrator.server.runs.run_history import (
    MODES,
    MOST_RUNS,
    MOST_SNAPSHOTS,
    LiveRun,
    RunSnapshot,
    Thread,
    run_answered,
    with_finished,
)
from callsheet.orchestrator.server.visible_catalog import shown_line
from callsheet.orchestrator.state import ending

if TYPE_CHECKING:
    from langgraph.graph import StateGraph

_AT_ONCE = 8
"""Maximum runs at once."""


def _snapshot(saved: CheckpointTuple) -> RunSnapshot:
    """A checkpoint, with the results of the steps that ended while others wait."""
    values, asked = dict(saved.checkpoint["channel_values"]), list[Interrupt]()
    for _, channel, value in saved.pending_writes or ():
        if channel == "__interrupt__":
            asked += value if isinstance(value, list | tuple) else [value]
        with_finished(values, channel, value)
    return RunSnapshot(values, saved.checkpoint["ts"], tuple(asked))


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


class LocalRuns:
    """Runs for one user: those in the threads of a catalog, and new ones in the event loop of the page.

    The sessions of a cancelled run are closed.
    """

    def __init__(
        self,
        workflow: StateGraph[Any, Any, Any, Any],
        threads: Threads,
        registry: ToolRegistry,
        user: User | None = None,
    ) -> None:
        self._threads, self._workflow, self._registry = threads, workflow, registry
        groups = sorted(user.groups) if user else []
        self._user = {"identity": user.id, "groups": groups} if user and user.id else None
        self._work: dict[str, _Work] = {}

    async def recent(self, request: Request) -> Sequence[Thread]:
        """The last threads."""
        return [await self._thread(name) for name in self._threads.names()[:MOST_RUNS]]

    async def history(self, request: Request, thread: str) -> Sequence[RunSnapshot]:
        """The history of a thread."""
        return await self._snapshots(thread, MOST_SNAPSHOTS) if thread in self._threads.names() else []

    async def last(self, thread: str) -> RunSnapshot:
        """The last state of a thread."""
        return next(iter(await self._snapshots(thread, 1)), RunSnapshot({}, ""))

    async def waiting(self, request: Request) -> int:
        """Number of pending questions, without those of unreadable threads, which ``recent`` reports."""
        waiting = 0
        for name in self._threads.names():
            with suppress(SettingsError):
                waiting += len((await self.last(name)).questions)
        return waiting

    async def _thread(self, name: str) -> Thread:
        try:
            last = await self.last(name)
        except SettingsError as error:
            return Thread(id=name, request=shown_line(str(error)), status="error", at="")
        values, answered = last.values, run_answered(last)
        ended = ending(values.get("plan") or {}, values.get("results") or {}) if answered else "unfinished"
        status = "interrupted" if last.questions else ended
        return Thread(id=name, request=shown_line(str(values.get("request", ""))), status=status, at=last.at)

    async def _snapshots(self, thread: str, most: int) -> list[RunSnapshot]:
        config: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        async with self._threads.saver(thread) as saver:
            return [_snapshot(one) async for one in saver.alist(config, limit=most)]

    async def start(self, request: Request, thread: str | None, text: str) -> str:
        """Starts a request."""
        if thread is not None:
            self._check(thread)
        chosen = thread or self._threads.new()
        live = LiveRun(RunSnapshot({"request": text}, ""))
        self._begin(chosen, live, {"messages": [HumanMessage(text)]})
        return chosen

    async def resume(self, request: Request, thread: str, answers: Mapping[str, Any]) -> None:
        """Answers questions, or continues a run that stopped."""
        self._check(thread)
        self._begin(thread, LiveRun(await self.last(thread)), Command(resume=dict(answers)) if answers else None)

    async def cancel(self, request: Request, thread: str) -> None:
        """Stops a run."""
        self._check(thread)
        work = self._work.get(thread)
        if work is not None and work.task is not None and not work.task.done():
            work.task.cancel()
            await asyncio.wait([work.task])

    async def watch(self, request: Request, thread: str) -> AsyncIterator[RunSnapshot]:
        """The run of a thread as it goes."""
        work = self._work.get(thread)
        while work is not None:
            changed = work.changed
            yield work.live.snapshot
            if work.task is None or work.task.done():
                return
            await changed.wait()

    def _check(self, thread: str) -> None:
        if thread not in self._work and thread not in self._threads.names():
            raise RefusedError(f"there is no thread {thread!r} of this page")

    def _begin(self, thread: str, live: LiveRun, given: Any) -> None:
        going = [name for name, work in self._work.items() if work.task is not None and not work.task.done()]
        if thread in going:
            raise RefusedError("the last request of this thread is still running: wait for it, or cancel it")
        if len(going) >= _AT_ONCE:
            raise RefusedError(f"{_AT_ONCE} runs are in progress here, the maximum: wait for one, or cancel one")
        for name in [name for name in self._work if name not in going][:-_AT_ONCE]:
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
                last = await self.last(thread)
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
        if run := live.snapshot.values.get("run"):
            with suppress(CallsheetError):
                await self._registry.close_run(str(run))
