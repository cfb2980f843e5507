"""The event loop in a daemon thread, for work that outlives the loops of its callers, and for blocking callers."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")
_THREADS = 256
"""Many, because blocking tools in these threads may wait for work of this loop that needs a thread too."""


class BackgroundLoop:
    """A loop that starts with the first work and runs until the process ends; ``name`` is the name of its thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process = 0

    @property
    def started(self) -> bool:
        """Whether it has had any work."""
        return self._loop is not None and self._process == os.getpid()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Submits work to the loop; safe from any thread and any loop."""
        return asyncio.run_coroutine_threadsafe(work, self._running())

    async def awaited(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs work on this loop and awaits it on the caller's loop, which may be this one.

        If the caller is cancelled, the work is cancelled too.
        """
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
            raise RuntimeError("the loop of the sessions cannot wait for itself: await this instead")
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
                self._loop, self._process = asyncio.new_event_loop(), os.getpid()
                self._loop.set_default_executor(ThreadPoolExecutor(_THREADS, self._name))
                self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
                self._thread.start()
            return self._loop


LOOP = BackgroundLoop("callsheet")
"""The loop of this process."""
