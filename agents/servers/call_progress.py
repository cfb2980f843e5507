"""Progress of a call, passed from its server to whoever waits for it."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Protocol


class Progress(Protocol):
    """Receives the progress of a call."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Takes the progress so far, the total if it is known, and a message."""


PROGRESS: ContextVar[Progress | None] = ContextVar("callsheet_progress", default=None)
"""Receives the progress of the calls in this context."""


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
