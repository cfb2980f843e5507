"""Stores the threads of the command line, one file each, so that a killed run can be resumed, and streams runs.

A thread belongs to the catalog of its first request.
"""

from __future__ import annotations

import re
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callsheet.graphs import SettingsError
from callsheet.graphs.storage import cure_of, is_full, private_file, state_folder

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.graph import StateGraph
    from langgraph.pregel.protocol import PregelProtocol
    from langgraph.types import StateSnapshot

    from callsheet.graphs import Loaded

Take = Callable[[Sequence[str], str, Any], None]
"""A callback for a part of a stream: its namespace (empty for the supervisor's own), its mode, and the data."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_UNNAMED = "run-"
_DAY = 86_400.0
_MOST_UNNAMED = 200
_STORED = (".sqlite", ".sqlite-wal", ".sqlite-shm", ".lock")
_OVER = ("failed", "skipped")


class Threads:
    """The checkpoints of runs over one catalog: one SQLite file per thread, which only the owner can read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def of(cls, loaded: Loaded) -> Threads:
        """Returns the threads of a catalog, in the user's data folder.

        Catalogs with the same sources have the same threads (``catalog_key``).
        """
        from callsheet.graphs.catalog.labels import catalog_key

        return cls(_all() / catalog_key(loaded.label))

    @staticmethod
    def new() -> str:
        """Returns a new name for a thread; threads whose names a user chose are never deleted."""
        return f"{_UNNAMED}{uuid.uuid4().hex[:8]}"

    def latest(self) -> str:
        """Returns the most recently used thread; a ``SettingsError`` if there is none."""
        names = self.names()
        if not names:
            raise SettingsError("there is no thread of this catalog to resume")
        return names[0]

    def names(self) -> list[str]:
        """Returns the names of all threads, the most recently used first."""
        return [file.stem for file in _latest_first(self._folder, "*.sqlite")]

    def check(self, thread: str) -> None:
        """Raises a ``SettingsError`` if there is no such thread, or if its name is invalid."""
        if not self._file(thread).exists():
            known = ", ".join(self.names()[:10]) or "none"
            raise SettingsError(f"there is no thread {thread!r} of this catalog to resume; the last are: {known}")

    @contextmanager
    def locked(self, thread: str) -> Iterator[None]:
        """Locks the thread against other processes.

        Raises:
            SettingsError: Another process uses it, or the folder is not writable.
        """
        from filelock import FileLock, Timeout

        file = self._file(thread)
        lock = FileLock(file.with_suffix(".lock"), timeout=0, mode=0o600)
        try:
            private_file(file).touch()
            lock.acquire()
        except Timeout as error:
            raise SettingsError(f"another process is working on the thread {thread!r}: wait for it") from error
        except OSError as error:
            raise SettingsError(f"{file} cannot be written: {error.strerror or error}: {cure_of(error)}") from error
        try:
            yield
        finally:
            lock.release()

    @asynccontextmanager
    async def saver(self, thread: str) -> AsyncIterator[BaseCheckpointSaver[str]]:
        """Opens the checkpoints of the thread.

        Raises:
            SettingsError: The file is damaged or in use by another program, or the disk is full.
        """
        import sqlite3

        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with AsyncSqliteSaver.from_conn_string(str(self._file(thread))) as saver:
            try:
                await saver.setup()
                await _check(saver, thread)
            except Exception as error:  # a damaged file may raise anything
                raise self._unusable(thread, error) from error
            try:
                yield saver
            except sqlite3.Error as error:
                raise self._unusable(thread, error) from error
            finally:
                # First what a cancelled run still writes: its cursor would outlive the connection, with the lock.
                async with saver.lock:
                    await saver.conn.close()

    def _unusable(self, thread: str, error: Exception) -> SettingsError:
        file = self._file(thread)
        if is_full(error):
            return SettingsError(f"{file} cannot be written: {error}: {cure_of(error)}")
        if "locked" in str(error):
            return SettingsError(f"{file} is in use by another program: {error}: wait for it")
        return SettingsError(
            f"{file} cannot be read, it is damaged: {error}: the run cannot continue; check what its calls have done, "
            "then move the file away and ask again"
        )

    def _file(self, thread: str) -> Path:
        if not _NAME.fullmatch(thread):
            raise SettingsError(f"{thread!r} cannot be the name of a thread: use letters, digits, '.', '_' and '-'")
        return self._folder / f"{thread}.sqlite"


def sweep_threads(*, days: float = 30) -> None:
    """Deletes unnamed threads of all catalogs that were not used for ``days``, and all but the last 200."""
    for folder in _all().glob("*/"):
        for number, file in enumerate(_latest_first(folder, f"{_UNNAMED}*.sqlite")):
            with suppress(OSError):
                if number >= _MOST_UNNAMED or file.stat().st_mtime < time.time() - days * _DAY:
                    for ending in _STORED:
                        file.with_suffix(ending).unlink(missing_ok=True)


def _all() -> Path:
    return state_folder() / "threads"


def _latest_first(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern), key=lambda file: file.stat().st_mtime, reverse=True)


async def _check(saver: AsyncSqliteSaver, thread: str) -> None:
    """Reads a file once, to find damage before anything is done; it may raise anything."""
    async with saver.conn.execute("PRAGMA quick_check(1)") as found:
        row = await found.fetchone()
    if row is None or row[0] != "ok":
        raise ValueError(row[0] if row else "the thread is empty")
    await saver.aget_tuple({"configurable": {"thread_id": thread, "checkpoint_ns": ""}})


async def stream_in_thread(
    workflow: StateGraph[Any, Any, Any, Any],
    threads: Threads,
    thread: str,
    given: Any,
    *,
    modes: Sequence[Any],
    take: Take,
    user: Mapping[str, Any] | None = None,
) -> StateSnapshot:
    """Runs a workflow until it ends or waits for a person; without input, the last run continues.

    The caller has locked the thread.

    Returns:
        The state of the thread.

    Raises:
        SettingsError: There is nothing to continue, or a new request would replace an unfinished one.
    """
    config: Any = {"configurable": {"thread_id": thread, **({"langgraph_auth_user": user} if user else {})}}
    async with threads.saver(thread) as saver:
        app = workflow.compile(checkpointer=saver, name="supervisor")
        if isinstance(given, dict) and (await app.aget_state(config)).tasks:
            raise SettingsError(
                f"the last request of {thread!r} is not finished: continue with --resume, or name another"
            )
        if given is not None or await take_up(app, config):
            stream: Any = app.astream(given, config, stream_mode=[*modes], subgraphs=True, durability="sync")
            async for namespace, mode, data in stream:
                take(namespace, mode, data)
        return await app.aget_state(config)


async def take_up(app: PregelProtocol[Any, Any, Any, Any], config: RunnableConfig) -> bool:
    """Prepares a thread to continue its last run; the next run gets no input.

    An interrupted run continues where it was. A run that has ended continues with the steps that failed, and with those
    that were skipped because of them; for example when a server works again.

    Returns:
        Whether anything is left to do.

    Raises:
        SettingsError: The thread is unknown.
    """
    before = await app.aget_state(config)
    if not before.values:
        raise SettingsError(f"there is nothing to resume in thread {config.get('configurable', {}).get('thread_id')!r}")
    # A thread that died between two writes has finished tasks, and no next node.
    if before.tasks:
        return True
    results: dict[str, Any] = before.values.get("results", {})
    kept = {step: result for step, result in results.items() if result["status"] not in _OVER}
    if kept == results:
        return False
    # LangGraph's Overwrite as JSON, which a graph on a server takes too.
    await app.aupdate_state(config, {"results": {"__overwrite__": kept}}, as_node="plan")
    return True
