"""Runs of other programs, from the databases of their checkpointers, beside those of the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from callsheet.graphs import SettingsError
from callsheet.orchestrator.server.explorer.answers.json_answers import shown_line
from callsheet.orchestrator.server.runs.run_history import MOST_RUNS, Moment, Runs, Thread
from callsheet.orchestrator.server.runs.stores.checkpoint_database import (
    CheckpointDatabase,
    UnreadableError,
    checkpoint_database,
)
from callsheet.orchestrator.server.runs.stores.local_runs import MOST_MOMENTS, moment_at, thread_at

_LATEST = (
    "SELECT thread_id, MAX(checkpoint_id) AS latest FROM checkpoints WHERE checkpoint_ns = '' "
    "GROUP BY thread_id ORDER BY latest DESC LIMIT 200"
)
_MOST_THREADS = int(_LATEST.rpartition(" ")[2])
_CHANNELS = frozenset({"run", "request", "plan", "results", "selections", "waves"})
"""Channels of the supervisor's state."""


@dataclass(frozen=True, slots=True)
class Listing:
    """What a database has.

    Attributes:
        threads: The last threads of a supervisor.
        others: Number of threads of other graphs among those that were read.
        unreadable: Number of threads that cannot be deserialized among them.
        read: Number of threads that were read, the latest ones.
    """

    threads: Sequence[Thread]
    others: int
    unreadable: int
    read: int

    def __str__(self) -> str:
        """How many threads are shown, and how many are not."""
        threads = f"{len(self.threads)} thread{'' if len(self.threads) == 1 else 's'} shown"
        latest = f" (of the latest {self.read})" if self.read == _MOST_THREADS else ""
        unreadable = f", {self.unreadable} unreadable (encrypted or pickled)" if self.unreadable else ""
        return f"{threads}, {self.others} of other graphs left out{unreadable}{latest}"


class DatabaseRuns:
    """Runs in a database, which are only shown.

    Args:
        database: Where they are.
        name: What the database is called on the page.
    """

    def __init__(self, database: CheckpointDatabase, name: str) -> None:
        self._database, self.name = database, name

    def listing(self) -> Listing:
        """The last threads; blocks.

        Raises:
            SettingsError: The database cannot be read.
        """
        return self._database.read(self._listing)

    def recent(self) -> list[Thread]:
        """The last threads, and what is to be said of the others; blocks."""
        try:
            found = self.listing()
        except SettingsError as error:
            return [Thread(f"{self.name}:", shown_line(str(error)), "error", "", self.name)]
        left_out = (
            [Thread(f"{self.name}:", str(found), "note", "", self.name)] if found.others or found.unreadable else []
        )
        return [*found.threads, *left_out]

    def history(self, thread: str) -> list[Moment]:
        """The history of a thread; blocks.

        Raises:
            SettingsError: The database cannot be read.
        """
        why = (
            f"Another program keeps this run in {self.name}. It is only shown here: only that program can answer its "
            "questions, continue it or stop it."
        )
        moments = self._database.read(lambda saver, _: _moments(saver, thread, MOST_MOMENTS))
        return [replace(moment, locked=why) for moment, of_supervisor in moments if of_supervisor]

    def _listing(self, saver: BaseCheckpointSaver[Any], connection: Any) -> Listing:
        threads, counts = list[Thread](), Counter[str]()
        names = [str(row["thread_id"]) for row in connection.execute(_LATEST).fetchall()]
        for name in names:
            try:
                last = _moments(saver, name, 1)
            except UnreadableError:
                counts["unreadable"] += 1
                continue
            counts["others"] += sum(not of_supervisor for _, of_supervisor in last)
            threads += [
                replace(thread_at(f"{self.name}:{name}", moment), source=self.name)
                for moment, of_supervisor in last
                if of_supervisor
            ]
        return Listing(threads[:MOST_RUNS], counts["others"], counts["unreadable"], len(names))


class JoinedRuns:
    """The page's own runs, and those of other programs.

    Args:
        own: Those that the page can continue.
        others: Those that it only shows.
    """

    def __init__(self, own: Runs, others: Sequence[DatabaseRuns]) -> None:
        self._own, self._others = own, others

    async def recent(self, request: Request) -> Sequence[Thread]:
        """The last threads of each."""
        threads = [*await self._own.recent(request)]
        for runs in self._others:
            threads += await run_in_threadpool(runs.recent)
        return sorted(threads, key=lambda thread: thread.at, reverse=True)

    async def history(self, request: Request, thread: str) -> Sequence[Moment]:
        """The history of a thread.

        Raises:
            SettingsError: It cannot be read.
        """
        for runs in self._others:
            if thread.startswith(prefix := f"{runs.name}:"):
                return await run_in_threadpool(runs.history, thread.removeprefix(prefix))
        return await self._own.history(request, thread)

    async def waiting(self, request: Request) -> int | None:
        """Number of pending questions that can be answered here."""
        return await self._own.waiting(request)


def read_databases(places: Sequence[str]) -> list[DatabaseRuns]:
    """The databases at these places, each with a name of its own.

    Raises:
        SettingsError: A place is none of a database.
    """
    found, names = list[DatabaseRuns](), Counter[str]()
    for database in map(checkpoint_database, dict.fromkeys(places)):
        names[database.name] += 1
        same = names[database.name]
        found.append(DatabaseRuns(database, f"{database.name} ({same})" if same > 1 else database.name))
    return found


def _moments(saver: BaseCheckpointSaver[Any], thread: str, most: int) -> list[tuple[Moment, bool]]:
    """The last moments of a thread after its first step, each with whether it is one of a supervisor."""
    found = [*saver.list({"configurable": {"thread_id": thread, "checkpoint_ns": ""}}, limit=most)]
    begun = [one for one in found if one.metadata.get("step", 1) > 0]
    return [(moment_at(one), one.checkpoint["channel_versions"].keys() >= _CHANNELS) for one in begun]
