"""The context of calls: their limits of time, size and number, and the event loop on which they run."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from callsheet.agents.calls.credentials import Caller
from callsheet.agents.calls.refusal import Refusal
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.errors import SettingsError

_PREFIX = "CALLSHEET_LIMIT_"
_SHARED = frozenset(("calls", "starts", "failures", "pause", "warm"))


class Limits(BaseSettings):
    """Limits for exchanges with tools; each is a variable ``CALLSHEET_LIMIT_`` with its name in capitals.

    A server may have its own, ``"callsheet": {"limits": {"call": 120}}`` in its entry of an ``mcp.json``, except for
    the common ones: ``calls``, ``starts``, ``failures``, ``pause`` and ``warm``.

    Attributes:
        start: Seconds for a server to start and initialize.
        list: Seconds for listing its tools.
        call: Seconds for one call, and from each of its reports of progress to the next.
        longest_call: Maximum seconds for a call that reports progress, or that its server works on as a task.
        output: Characters of a result for a model; the rest is stored as a file.
        message: Maximum bytes of one message; a longer one ends the session.
        tools: Maximum tools of a server; a server with more is not used.
        calls: Maximum concurrent calls over all servers; further calls wait.
        server_calls: Maximum concurrent calls per server.
        starts: Maximum servers that are started at once.
        idle: Seconds without a call after which a session is closed.
        warm: Maximum number of servers that keep running after a run, for the next run of the same user; 0: none.
        failures: Consecutive failures after which a server is not called for a while.
        pause: Seconds for which a server is not called after these failures.
        fresh: Maximum seconds for which the last tools of a server are used to load a catalog, one day by default, and
            less if the server says so; with 0, the server is asked every time. It is also asked when a session with it
            opens, before any call.

    Raises:
        SettingsError: A value is not a number, or is out of range; the message names it.
    """

    model_config = SettingsConfigDict(env_prefix=_PREFIX, extra="forbid", frozen=True)

    start: float = Field(default=60.0, gt=0)
    list: float = Field(default=15.0, gt=0)
    call: float = Field(default=60.0, gt=0)
    longest_call: float = Field(default=600.0, gt=0)
    output: int = Field(default=256_000, ge=100)
    message: int = Field(default=5_000_000, ge=10_000)
    tools: int = Field(default=10_000, ge=1)
    calls: int = Field(default=64, ge=1)
    server_calls: int = Field(default=8, ge=1)
    starts: int = Field(default=32, ge=1)
    idle: float = Field(default=300.0, gt=0)
    warm: int = Field(default=8, ge=0)
    failures: int = Field(default=3, ge=1)
    pause: float = Field(default=60.0, ge=0)
    fresh: float = Field(default=86_400.0, ge=0)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(map(str, first["loc"]))
            raise SettingsError(
                f"limit {name!r} ({_PREFIX}{name.upper()}): {first['msg']}, not {first['input']!r}"
            ) from error

    def own(self, values: Mapping[str, float]) -> Limits:
        """Returns these limits with the values of one server or tool; a ``SettingsError`` for an invalid value."""
        shared = sorted(set(values) & _SHARED)
        if shared:
            raise SettingsError(
                f"limit {', '.join(map(repr, shared))} holds for all servers together: "
                f"set {', '.join(_PREFIX + name.upper() for name in shared)}"
            )
        return Limits(**{**self.model_dump(), **values}) if values else self


T = TypeVar("T")
Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""A function that asks the person behind a call: message and JSON Schema of a form; returns an ``ElicitResult``."""
Asks = Literal["", "later", "now"]
"""When a person can be asked for a server: while its call waits, or later by a question of the run; or never."""
Progress = Callable[[float | None, float | None, str | None], Coroutine[object, object, None]]
"""A callback for the progress of a call: the amount done and the total, each None if unknown, and a message."""
Permit = Callable[[], Refusal | None]
"""A function called right before a call is sent: returns the reason why it must not be sent, or None."""


ReadsAnswer = Callable[..., Any]
"""A function that makes the outcome of a request to read: agent, name, raw answer, limits, and where media are kept."""
PROGRESS: ContextVar[Progress | None] = ContextVar("callsheet_progress", default=None)
"""The callback that receives the progress of all calls in this context."""
ASK: ContextVar[Ask | None] = ContextVar("callsheet_ask", default=None)
"""The function that asks the person behind the calls in this context."""
CALLER: ContextVar[Caller] = ContextVar("callsheet_caller", default=Caller())  # noqa: B039 (it is frozen)
"""The user for whom calls in this context are made."""


@dataclass(frozen=True, slots=True)
class TaskCall:
    """Says that the caller itself keeps the id of the task by which a server answers a call.

    Such a call ends when the server has answered, with ``Outcome.task``; a second one with that id waits for the end.

    Attributes:
        id: The server's id of the task; nothing is sent but requests for its state. Empty for a call that is sent.
        interval: Seconds until the server wants to be asked about it for the first time.
        waits: Whether to wait for the end of the task; otherwise its state is read once.
        asks: Whether the caller asks a person the questions of the server, which it gets with the outcome.
        answers: Answers to such questions, by their keys, which the server gets with this call.
        answered: Keys of questions that were answered before.
        state: The ``requestState`` with which the server has asked.
    """

    id: str = ""
    interval: float = 0.0
    waits: bool = True
    asks: bool = False
    answers: Mapping[str, object] = field(default_factory=dict)
    answered: Collection[str] = ()
    state: str = ""

    @property
    def params(self) -> dict[str, object]:
        """Returns the parameters by which a call that is sent again answers the questions of the server."""
        if not self.answers:
            return {}
        return {"inputResponses": dict(self.answers), **({"requestState": self.state} if self.state else {})}


TASK: ContextVar[TaskCall | None] = ContextVar("callsheet_task", default=None)
"""How the calls in this context deal with a task; None: a call waits for the end of its task by itself."""


def progress_of_caller() -> Progress | None:
    """Returns the ``PROGRESS`` of this context for use on any event loop; it is not awaited."""
    receive = PROGRESS.get()
    if receive is None:
        return None
    loop = asyncio.get_running_loop()

    async def pass_on(progress: float | None, total: float | None, message: str | None) -> None:
        # Not awaited: a slow receiver must not delay the answer of the call.
        if not loop.is_closed():
            asyncio.run_coroutine_threadsafe(receive(progress, total, message), loop)

    return pass_on


def ask_of_caller() -> Ask | None:
    """Returns the ``ASK`` of this context for use on any event loop; it runs on the loop of this task."""
    ask = ASK.get()
    if ask is None:
        return None
    loop = asyncio.get_running_loop()

    async def pass_on(message: str, form: dict[str, Any]) -> dict[str, Any]:
        asked: Any = ask(message, form)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asked, loop))

    return pass_on


@dataclass(frozen=True, slots=True)
class CallRequest:
    """One call of this context; the fields are those of ``SessionPool.call``.

    If ``ask`` is None, no person can be asked.
    """

    run_id: str
    agent_id: str
    server: ServerConfig
    tool: str
    args: Mapping[str, Any]
    repeatable: bool
    permit: Permit
    reads: ReadsAnswer | None = None
    progress: Progress | None = field(default_factory=progress_of_caller)
    ask: Ask | None = field(default_factory=ask_of_caller)
    caller: Caller = field(default_factory=CALLER.get, repr=False)
    harmless: bool = False
    task: TaskCall | None = field(default_factory=TASK.get)

    @property
    def asks(self) -> Asks:
        """Returns when a person can be asked for the server."""
        if self.ask is not None:
            return "now"
        return "later" if self.task is not None and self.task.asks else ""

    @property
    def circuit(self) -> str:
        """Returns the name under which failures are counted; those of one user's own key count for nobody else."""
        return f"{self.agent_id}\0{self.caller.key}" if self.caller.personal else self.agent_id


@contextmanager
def within(variable: ContextVar[T], value: T) -> Iterator[None]:
    """Sets a context variable within the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


_THREADS = 256
"""Many, because blocking tools in these threads may wait for work of this loop that needs a thread too."""


class BackgroundLoop:
    """An event loop in a daemon thread, for work that outlives the loops of its callers, and for blocking callers.

    The thread starts with the first work and runs until the process ends.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0

    @property
    def started(self) -> bool:
        """Returns whether the thread has been started."""
        return self._loop is not None and self._process == os.getpid()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Submits work to the loop; safe from any thread and any loop."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    async def awaited(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs work on this loop and awaits it on the caller's loop; if one is cancelled, both are."""
        if not self._is_here:
            return await asyncio.wrap_future(self.submit(work))
        task = asyncio.create_task(work)
        try:
            # As from another loop: whoever is cancelled, even repeatedly, cancels the work once and does not wait.
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise

    def blocking(self, work: Coroutine[Any, Any, T], seconds: float | None = None) -> T:
        """Runs work on this loop and blocks the calling thread; an interrupt cancels it.

        Raises:
            TimeoutError: It took longer than this many seconds.
            RuntimeError: The calling thread is the thread of this loop, so the loop would wait for itself.
        """
        if self._is_here:
            work.close()
            raise RuntimeError(
                "the event loop of the sessions cannot block on itself: await the asynchronous method instead"
            )
        future = self.submit(work)
        try:
            return future.result(seconds)
        except BaseException:
            future.cancel()
            raise

    @property
    def _is_here(self) -> bool:
        return self.started and self._thread is threading.current_thread()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            # A forked process inherits the loop but not its thread.
            if self._loop is None or self._process != os.getpid():
                self._loop = asyncio.new_event_loop()
                self._process = os.getpid()
                self._loop.set_default_executor(ThreadPoolExecutor(_THREADS, self._name))
                self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
                self._thread.start()
            return self._loop


LOOP = BackgroundLoop("callsheet")
"""The background loop that the whole process shares."""
