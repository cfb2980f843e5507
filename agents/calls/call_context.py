"""What a session learns about a call: what is called, for whom, and who waits for its progress."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from callsheet.graphs.catalog.formats.server_config import ServerConfig

T = TypeVar("T")
Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Asks the person behind a call: message and JSON Schema of a form; returns an ``ElicitResult`` in wire form."""
Permit = Callable[[], str]
"""Called after the server was listed, right before a call is sent: why it must not be sent; empty if it may."""


class Progress(Protocol):
    """Receives the progress of a call."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Takes the progress so far, the total if it is known, and a message."""


PROGRESS: ContextVar[Progress | None] = ContextVar("callsheet_progress", default=None)
"""Receives the progress of the calls in this context."""
ASK: ContextVar[Ask | None] = ContextVar("callsheet_ask", default=None)
"""Asks the person behind the calls in this context."""
USER: ContextVar[str] = ContextVar("callsheet_user", default="")
"""Id of the user for whom calls in this context are made; empty for an anonymous one."""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """One call; the fields are those of ``SessionPool.call``.

    Attributes:
        progress: Receives its progress.
        ask: Asks the person behind it; None if nobody can be asked.
        user: The user's id, by default that of the context; empty for an anonymous one.
    """

    run_id: str
    agent_id: str
    server: ServerConfig
    tool: str
    args: Mapping[str, Any]
    repeatable: bool
    permit: Permit
    reads: bool = False
    progress: Progress | None = None
    ask: Ask | None = None
    user: str = field(default_factory=USER.get)


def progress_of_caller() -> Progress | None:
    """The receiver in this context, for use on any event loop; it is called on the loop of this task."""
    receive = PROGRESS.get()
    if receive is None:
        return None
    loop = asyncio.get_running_loop()

    async def pass_on(progress: float, total: float | None, message: str | None) -> None:
        # Not awaited: a slow receiver must not delay the answer of the call.
        asyncio.run_coroutine_threadsafe(receive(progress, total, message), loop)

    return pass_on


def ask_of_caller() -> Ask | None:
    """``ASK`` of this context, for use on any event loop; it runs on the loop of this task."""
    ask = ASK.get()
    if ask is None:
        return None
    loop = asyncio.get_running_loop()

    async def pass_on(message: str, form: dict[str, Any]) -> dict[str, Any]:
        asked: Any = ask(message, form)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asked, loop))

    return pass_on


def asked_by(ask: Ask) -> AbstractContextManager[None]:
    """Passes the questions of servers in the calls of this block to ``ask``."""
    return _within(ASK, ask)


def for_user(user: str) -> AbstractContextManager[None]:
    """Makes the calls of this block for a user."""
    return _within(USER, user)


def reporting_to(receive: Progress) -> AbstractContextManager[None]:
    """Reports the progress of the calls of this block."""
    return _within(PROGRESS, receive)


@contextmanager
def _within(variable: ContextVar[T], value: T) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
