"""Runs on this machine: those of the threads of the command line, and new ones in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
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

_MOST_ENDED = 8
"""Number of ended runs of this process whose trouble can still be seen."""


def _snapshot(saved: CheckpointTuple) -> RunSnapshot:
    """Returns a checkpoint, with the results of the steps that ended while others wait."""
    values = dict(saved.checkpoint["channel_values"])
    asked = list[Interrupt]()
    for _, channel, value in saved.pending_writes or ():
        if channel == "__interrupt__":
            asked += value if isinstance(value, list | tuple) else [value]
        with_finished(values, channel, value)
    return RunSnapshot(values, saved.checkpoint["ts"], tuple(asked))


class LocalRuns:
    """Runs for one user: those in the threads of a catalog, and new ones in the event loop of the page.

    The sessions of a cancelled run are closed. What changes something raises ``RefusedError`` if there is no such
    thread, or its last run has not ended.
    """

    def __init__(
        self,
        workflow: StateGraph[Any, Any, Any, Any],
        threads: Threads,
        registry: ToolRegistry,
        user: User | None = None,
    ) -> None:
        self._threads = threads
        self._workflow = workflow
        self._registry = registry
        groups = sorted(user.groups) if user else []
        self._user = {"identity": user.id, "groups": groups} if user and user.id else None
        self._runs: dict[str, tuple[LiveRun, asyncio.Task[None]]] = {}  # the last one of each thread

    async def recent(self, request: Request) -> Sequence[Thread]:
        """Returns the user's last threads, the latest first."""
        return [await self._thread(name) for name in self._threads.names()[:MOST_RUNS]]

    async def history(self, request: Request, thread: str) -> Sequence[RunSnapshot]:
        """Returns the history of a thread, the latest state first; empty if there is no such thread."""
        return await self._snapshots(thread, MOST_SNAPSHOTS) if thread in self._threads.names() else []

    async def last(self, thread: str) -> RunSnapshot:
        """Returns the last state of a thread."""
        return next(iter(await self._snapshots(thread, 1)), RunSnapshot({}, ""))

    async def _thread(self, name: str) -> Thread:
        try:
            last = await self.last(name)
        except SettingsError as error:
            return Thread(id=name, request=shown_line(str(error)), status="error", at="")
        values = last.values
        answered = run_answered(last)
        ended = ending(values.get("plan") or {}, values.get("results") or {}) if answered else "unfinished"
        status = "interrupted" if last.questions else ended
        return Thread(id=name, request=shown_line(str(values.get("request", ""))), status=status, at=last.at)

    async def _snapshots(self, thread: str, most: int) -> list[RunSnapshot]:
        config: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        async with self._threads.saver(thread) as saver:
            return [_snapshot(one) async for one in saver.alist(config, limit=most)]

    async def start(self, request: Request, thread: str | None, text: str) -> str:
        """Starts a request, in a thread or in a new one, and returns the thread's id."""
        if thread is not None:
            self._check(thread)
        chosen = thread or self._threads.new()
        live = LiveRun(RunSnapshot({"request": text}, ""))
        self._begin(chosen, live, {"messages": [HumanMessage(text)]})
        return chosen

    async def resume(self, request: Request, thread: str, answers: Mapping[str, Any]) -> None:
        """Answers questions by id; without answers, continues where the run stopped, or with the steps that failed."""
        self._check(thread)
        self._begin(thread, LiveRun(await self.last(thread)), Command(resume=dict(answers)) if answers else None)

    async def cancel(self, request: Request, thread: str) -> None:
        """Stops a run; it can be continued."""
        self._check(thread)
        if thread in self._runs:
            _, task = self._runs[thread]
            task.cancel()
            await asyncio.wait([task])

    async def watch(self, request: Request, thread: str) -> AsyncIterator[RunSnapshot]:
        """Yields the run of a thread as it goes (``LiveRun.states``); empty if none goes on."""
        if thread in self._runs:
            live, _ = self._runs[thread]
            async for snapshot in live.states():
                yield snapshot

    def _check(self, thread: str) -> None:
        if thread not in self._runs and thread not in self._threads.names():
            raise RefusedError(f"there is no thread {thread!r} of this page")

    def _begin(self, thread: str, live: LiveRun, given: Any) -> None:
        ended = [name for name, (_, task) in self._runs.items() if task.done()]
        if thread in self._runs and thread not in ended:
            raise RefusedError("the last request of this thread is still running: wait for it, or cancel it")
        for name in ended[:-_MOST_ENDED]:
            del self._runs[name]
        self._runs[thread] = live, asyncio.create_task(self._run(thread, live, given))

    async def _run(self, thread: str, live: LiveRun, given: Any) -> None:
        try:
            with self._threads.locked(thread):
                await stream_in_thread(
                    self._workflow, self._threads, thread, given, modes=MODES, take=live.take, user=self._user
                )
                last = await self.last(thread)
        except asyncio.CancelledError:
            await self._fail(live, "cancelled")
        except CallsheetError as error:
            await self._fail(live, str(error))
        except Exception as error:  # noqa: BLE001 whatever a run raises is told on the page, and does not end the server
            await self._fail(live, f"{type(error).__name__}: {error}")
        else:
            live.end(last)

    async def _fail(self, live: LiveRun, trouble: str) -> None:
        try:
            run = live.snapshot.values.get("run")
            if run:
                with suppress(CallsheetError):
                    await self._registry.close_run(str(run))
        finally:
            live.fail(trouble)
