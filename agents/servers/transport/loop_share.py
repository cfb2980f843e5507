"""Shares the event loop of all sessions fairly among servers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

_SLICE, _PAUSE = 0.002, 3.0
_MANY, _LONG = 1_000, 65_536  # values, and characters of a text
Result = TypeVar("Result")


async def beside_if_large(act: Callable[[Any], Result], value: Any) -> Result:
    """Applies a function to a JSON value; in a thread if the value is large, so that the loop is not blocked."""
    return await asyncio.to_thread(act, value) if _is_large(value) else act(value)


def _is_large(value: Any) -> bool:
    left, waiting = _MANY, [value]
    while waiting and left > 0:
        match waiting.pop():
            case str() as text:
                left -= 1 + len(text) * _MANY // _LONG
            case dict() as found:
                left -= 1 + len(found)
                waiting += found.values() if left > 0 else ()
            case list() as found:
                left -= 1 + len(found)
                waiting += found if left > 0 else ()
    return left <= 0


class Share:
    """Limits one server to a quarter of the loop's time, in slices of milliseconds."""

    def __init__(self) -> None:
        self._used = 0.0

    @contextmanager
    def used(self) -> Iterator[None]:
        """Counts processor time for the server; the block must not await."""
        began = time.thread_time()
        try:
            yield
        finally:
            self._used += time.thread_time() - began

    async def turn(self) -> None:
        """Gives other tasks a turn after a slice is used up."""
        if self._used >= _SLICE:
            used, self._used = self._used, 0.0
            await asyncio.sleep(used * _PAUSE)
