"""One run at a time works on the current step of a thread; a second run is refused.

Two runs that resume a thread at the same time both find the question unanswered, and each would send the call. So a run
claims the thread's current checkpoint before it decides or sends anything: within a process by a lock, between
processes by a write to that checkpoint, of which savers keep the first (``put_writes`` of LangGraph's own savers:
in memory, SQLite, Postgres). The claim of a dead run is taken over, and its open question is asked again.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.config import get_config
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import get_runtime

from callsheet.graphs.errors import CallsheetError
from callsheet.graphs.process_identity import ProcessIdentity

# LangGraph passes the saver to code inside a node under this key; there is no public accessor.
_KEY = "__pregel_checkpointer"


def checkpointer() -> BaseCheckpointSaver[Any] | None:
    """Returns the checkpointer of the current run; None if the app has none, or if there is no run."""
    try:
        found = get_config().get("configurable", {}).get(_KEY)
    except RuntimeError:
        return None
    return found if isinstance(found, BaseCheckpointSaver) else None


def in_threads(config: RunnableConfig) -> RunnableConfig:
    """Returns the config for asynchronous code inside a blocking run, in which the checkpointer is used from threads.

    ``SqliteSaver`` and ``PostgresSaver`` have no asynchronous methods, and ``AsyncSqliteSaver`` belongs to one loop.
    """
    configurable = config.get("configurable") or {}
    saver = configurable.get(_KEY)
    if not isinstance(saver, BaseCheckpointSaver) or isinstance(saver, _InThreads):
        return config
    return {**config, "configurable": {**configurable, _KEY: _InThreads(saver)}}


class _InThreads(BaseCheckpointSaver[Any]):
    """A checkpointer whose asynchronous methods run the blocking ones of ``saver`` in threads."""

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        super().__init__(serde=saver.serde)
        self._saver = saver
        for name in ("get_next_version", "get_tuple", "list", "put", "put_writes", "delete_thread"):
            setattr(self, name, getattr(saver, name))

    @property
    def config_specs(self) -> list[Any]:
        return self._saver.config_specs

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> BaseCheckpointSaver[Any]:
        return _InThreads(self._saver.with_allowlist(extra_allowlist))

    async def aget_tuple(self, *args: Any, **more: Any) -> CheckpointTuple | None:
        return await asyncio.to_thread(self._saver.get_tuple, *args, **more)

    async def alist(self, *args: Any, **more: Any) -> AsyncIterator[CheckpointTuple]:
        for found in await asyncio.to_thread(lambda: [*self._saver.list(*args, **more)]):
            yield found

    async def aput(self, *args: Any, **more: Any) -> RunnableConfig:
        return await asyncio.to_thread(self._saver.put, *args, **more)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        # LangGraph looks whether it takes ``task_path``.
        await asyncio.to_thread(self._saver.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, *args: Any, **more: Any) -> None:
        await asyncio.to_thread(self._saver.delete_thread, *args, **more)


_CHANNEL = "callsheet:run"
# Seconds in which a run that has made its calls writes the thread's next checkpoint; another run waits for that.
_PASSING_ON = 2.0
# Seconds for which a run on another machine or in another container counts as alive: it cannot be checked from here.
_LEASE = 900.0
_SENT_NOTHING = "this run has decided nothing and sent nothing; look at the thread again when the other one is done"


class ConcurrentRunError(CallsheetError, GraphBubbleUp):
    """Raised if another run works on the same step of the thread; this run ends and writes nothing to the thread."""


_Part = tuple[str, str]


@dataclass(slots=True)
class _Owner:
    """A run that claims a checkpoint, within this process.

    Attributes:
        control: LangGraph's object for one run, shared by its parts, and by other runs only if the caller does so.
        taken: Done when the claim has succeeded or failed.
        generation: Number of claims of the checkpoint, this one included; 0 until it is stored.
        working: Active parts of the run, each by its namespace and its call.
        sent: The calls that earlier runs have sent from this checkpoint.
        stopped: Whether a part ended with a question or an error, so that the run ends here.
        left: How often all parts have left, the last time at ``at`` (seconds of ``time.monotonic``).
    """

    control: object
    taken: Future[None] = field(default_factory=Future)
    generation: int = 0
    working: set[_Part] = field(default_factory=set)
    sent: set[_Part] = field(default_factory=set)
    stopped: bool = False
    left: int = 0
    at: float = 0.0

    def passing_on(self) -> float:
        """Seconds for which its run may still write the next checkpoint."""
        return 0.0 if self.stopped else max(0.0, self.at + _PASSING_ON - time.monotonic())


_Place = tuple[str, str]
_OWNERS: dict[_Place, _Owner] = {}
_LOCK = threading.Lock()


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim of a run on a checkpoint, as used by one of its calls.

    What a run writes to the claimed checkpoint stays even if the run's own checkpoints are deleted, as a server does
    when it rolls a run back. So it remains known that a call was sent.
    """

    saver: BaseCheckpointSaver[Any]
    place: _Place
    part: _Part
    owner: _Owner

    @property
    def sent_before(self) -> bool:
        """Returns whether an earlier run has sent this call."""
        return self.part in self.owner.sent

    async def note_sent(self) -> None:
        """Records that the call is being sent."""
        record = {"kind": "sent", "generation": self.owner.generation, "part": [*self.part]}
        await _write(self.saver, self.place, record, f"sent {self.part}")


@asynccontextmanager
async def sole_run(saver: BaseCheckpointSaver[Any] | None, call: str = "") -> AsyncIterator[Claim | None]:
    """Claims the current checkpoint within the block, in which a run works on a step or decides on a call.

    Without a checkpointer there is no thread, so nothing is claimed.

    Raises:
        ConcurrentRunError: Another run has claimed the step, or the thread has moved on without this run.
    """
    if saver is None:
        yield None
        return
    configurable: Mapping[str, Any] = get_config().get("configurable") or {}
    place = (str(configurable["thread_id"]), str(configurable["checkpoint_map"][""]))
    part = (str(configurable.get("checkpoint_ns", "")), call)
    owner, first = await _joined(place, get_runtime().control, part)
    try:
        if first:
            await _take(saver, place, owner)
        else:
            await asyncio.shield(asyncio.wrap_future(owner.taken))
        yield Claim(saver, place, part, owner)
    except BaseException as error:
        left = _left(place, owner, part, stopped=True)
        if left and isinstance(error, Exception | asyncio.CancelledError):  # else the program ends
            await _say_left(saver, place, owner)
        raise
    if _left(place, owner, part, stopped=False):
        await _say_left(saver, place, owner)


async def _joined(place: _Place, control: object, part: _Part) -> tuple[_Owner, bool]:
    """Returns the owner of a checkpoint, and whether this is the first part of its run."""
    while True:
        owner, first, seconds = _entered(place, control, part)
        if owner is not None:
            return owner, first
        await asyncio.sleep(seconds)


def _entered(place: _Place, control: object, part: _Part) -> tuple[_Owner | None, bool, float]:
    """As ``_joined``, without waiting: with no owner, the seconds until another run has written its next checkpoint."""
    with _LOCK:
        for key, one in [*_OWNERS.items()]:
            if one.control is not control and not one.working and not one.passing_on():
                del _OWNERS[key]
        owner = _OWNERS.get(place)
        if owner is not None and not owner.working and owner.control is not control:
            return None, False, owner.passing_on()
        # A program may share one control among runs: a part that is already active belongs to another run.
        if owner is not None and (owner.control is not control or part in owner.working):
            raise ConcurrentRunError(f"another run in this process is at the same step of this thread: {_SENT_NOTHING}")
        first = owner is None
        owner = owner or _OWNERS.setdefault(place, _Owner(control))
        owner.working.add(part)
        return owner, first, 0.0


def _left(place: _Place, owner: _Owner, part: _Part, *, stopped: bool) -> bool:
    """Returns whether all parts have left a claimed checkpoint."""
    with _LOCK:
        owner.working.discard(part)
        owner.stopped = owner.stopped or stopped
        owner.at = time.monotonic()
        if not owner.taken.done() or owner.taken.exception() is not None:
            _OWNERS.pop(place, None)
            return False
        owner.left += not owner.working
        return not owner.working and owner.generation > 0


async def _take(saver: BaseCheckpointSaver[Any], place: _Place, owner: _Owner) -> None:
    try:
        records = await _records(saver, place)
        taken = [record for record in records if record["kind"] == "taken"]
        if taken:
            await _check_free(saver, place, taken[-1], records)
        mine = {"kind": "taken", "generation": len(taken) + 1, "key": uuid.uuid4().hex, **await _whoami()}
        # A checkpoint that is still being written is claimed too: another process may find it a moment later.
        await _write(saver, place, mine, f"{len(taken) + 1}")
        kept = [record for record in await _records(saver, place) if record["kind"] == "taken"]
        if kept and kept[-1]["key"] != mine["key"]:
            raise _taken_by(kept[-1])
        owner.generation = len(taken) + 1
        owner.sent |= {(ns, call) for record in records if record["kind"] == "sent" for ns, call in [record["part"]]}
    except BaseException as error:
        owner.taken.set_exception(error)
        raise
    owner.taken.set_result(None)


async def _check_free(saver: BaseCheckpointSaver[Any], place: _Place, last: Any, records: list[Any]) -> None:
    """Raises unless the run with the last claim has stopped or died."""
    left = [one for one in records if one["kind"] == "left" and one["generation"] == last["generation"]]
    if left and left[-1]["stopped"]:
        return
    here = await _whoami()
    ours = all(last.get(key) == here[key] for key in ("machine", "process", "born"))
    # For this process, ``_entered`` knows more.
    alive = not ours and await asyncio.to_thread(_alive, last)
    if alive and left:  # it may write the next checkpoint, or another of its parts may arrive later
        await asyncio.sleep(min(_PASSING_ON, max(0.0, left[-1]["at"] + _PASSING_ON - time.time())))
    newest = await saver.aget_tuple({"configurable": {"thread_id": place[0], "checkpoint_ns": ""}})
    if newest is not None and newest.checkpoint["id"] != place[1]:
        raise ConcurrentRunError(f"another run has continued this thread meanwhile: {_SENT_NOTHING}")
    if alive:
        raise _taken_by(last)


async def _say_left(saver: BaseCheckpointSaver[Any], place: _Place, owner: _Owner) -> None:
    record = {"kind": "left", "generation": owner.generation, "stopped": owner.stopped, "at": time.time()}
    await _write(saver, place, {**record, "number": owner.left}, f"{owner.generation}.{owner.left}")


async def _records(saver: BaseCheckpointSaver[Any], place: _Place) -> list[dict[str, Any]]:
    """Returns the claims stored with a checkpoint, in order; none can be read before the checkpoint is stored."""
    found = await saver.aget_tuple(_config(place))
    written = found.pending_writes if found is not None else None
    records = [value for _, channel, value in written or () if channel == _CHANNEL]
    return sorted(records, key=lambda record: (record["generation"], record.get("number", 0)))


async def _write(saver: BaseCheckpointSaver[Any], place: _Place, record: dict[str, Any], name: str) -> None:
    task = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{_CHANNEL} {place} {name}"))
    await saver.aput_writes(_config(place), [(_CHANNEL, record)], task)


def _config(place: _Place) -> RunnableConfig:
    return {"configurable": {"thread_id": place[0], "checkpoint_ns": "", "checkpoint_id": place[1]}}


async def _whoami() -> dict[str, Any]:
    here = await asyncio.to_thread(ProcessIdentity.here)
    return {**here.model_dump(), "at": time.time()}


def _alive(record: Mapping[str, Any]) -> bool:
    """Returns whether the process with a claim is alive; if that cannot be checked from here, whether it may be."""
    owner = ProcessIdentity(**{name: record[name] for name in ProcessIdentity.model_fields})
    runs = owner.runs
    return time.time() - float(record["at"]) < _LEASE if runs is None else runs


def _taken_by(record: Mapping[str, Any]) -> ConcurrentRunError:
    since = datetime.fromtimestamp(record["at"], UTC).strftime("%H:%M:%S UTC")
    whose = f"process {record['process']} on {record['host']!r}, since {since}"
    return ConcurrentRunError(f"another run is at the same step of this thread ({whose}): {_SENT_NOTHING}")
