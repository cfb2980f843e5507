"""Each server's share of the loop that all servers' sessions live on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

_SLICE, _PAUSE = 0.002, 3.0


class Share:
    """Lets one server have a quarter of the loop's time at most, in slices of milliseconds."""

    def __init__(self) -> None:
        self._used = 0.0

    @contextmanager
    def used(self) -> Iterator[None]:
        """Counts what is done for the server; nothing may be waited for meanwhile."""
        began = time.thread_time()
        try:
            yield
        finally:
            self._used += time.thread_time() - began

    async def turn(self) -> None:
        """Lets the others have theirs once a slice is used up."""
        if self._used >= _SLICE:
            used, self._used = self._used, 0.0
            await asyncio.sleep(used * _PAUSE)
