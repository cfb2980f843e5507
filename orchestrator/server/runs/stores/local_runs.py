"""Past runs of ``callsheet ask`` on this machine, from its threads."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from starlette.requests import Request

from callsheet.graphs import SettingsError
from callsheet.orchestrator.run.thread_files import Threads
from callsheet.orchestrator.server.explorer.answers.json_answers import shown_line
from callsheet.orchestrator.server.runs.run_history import MOST_RUNS, Moment, Pending, Thread
from callsheet.orchestrator.server.runs.shown_runs import run_answered

MOST_MOMENTS = 100


class LocalRuns:
    """Past runs in the threads of the command line."""

    def __init__(self, threads: Threads) -> None:
        self._threads = threads

    async def recent(self, request: Request) -> Sequence[Thread]:
        """The last threads."""
        return [await self._thread(name) for name in self._threads.names()[:MOST_RUNS]]

    async def history(self, request: Request, thread: str) -> Sequence[Moment]:
        """The history of a thread.

        Raises:
            SettingsError: Its file cannot be read.
        """
        return await self._moments(thread, MOST_MOMENTS) if thread in self._threads.names() else []

    async def last(self, thread: str) -> Moment:
        """The last moment of a thread.

        Raises:
            SettingsError: Its file cannot be read.
        """
        return next(iter(await self._moments(thread, 1)), Moment({}, ""))

    async def waiting(self, request: Request) -> int:
        """Number of pending questions, without those of unreadable threads, which ``recent`` reports."""
        found = 0
        for name in self._threads.names():
            with suppress(SettingsError):
                found += sum([len(moment.questions) for moment in await self._moments(name, 1)])
        return found

    async def _thread(self, name: str) -> Thread:
        try:
            last = await self.last(name)
        except SettingsError as error:
            return Thread(name, shown_line(str(error)), "error", "")
        return thread_at(name, last)

    async def _moments(self, thread: str, most: int) -> list[Moment]:
        config: RunnableConfig = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        async with self._threads.saver(thread) as saver:
            return [moment_at(found) async for found in saver.alist(config, limit=most)]


def thread_at(name: str, last: Moment) -> Thread:
    """A thread at its last moment."""
    status = "interrupted" if last.questions else "idle" if run_answered(last) else "unfinished"
    return Thread(name, shown_line(str(last.values.get("request", ""))), status, last.at)


def moment_at(found: CheckpointTuple) -> Moment:
    """A checkpoint, with the results of the steps that ended while others wait."""
    values, asked = dict(found.checkpoint["channel_values"]), list[Pending]()
    for _, channel, value in found.pending_writes or ():
        if channel == "__interrupt__":
            asked += [Pending(one.id, one.value) for one in (value if isinstance(value, list | tuple) else [value])]
        elif channel in ("results", "selections") and isinstance(value, dict):
            values[channel] = {**(values.get(channel) or {}), **value}
    return Moment(values, found.checkpoint["ts"], tuple(asked))
