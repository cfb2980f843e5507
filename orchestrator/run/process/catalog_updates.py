"""Keeps searches up to date with the catalog: new tools are embedded in the background."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from callsheet.agents import ToolRegistry
from callsheet.graphs import CallsheetError, Loaded
from callsheet.graphs.storage import Database, listen
from callsheet.retrievers import AgentGraphRetriever

_LOG = logging.getLogger("callsheet")
_CATALOG = ("pins/", "listings/")  # the stored files that a catalog is made of
_SETTLED, _LONGEST_PAUSE, _RETRY = 0.2, 60.0, 5.0


class Following:
    """Keeps a retriever in step with a registry, whose catalog changes with the servers' listings.

    The registry applies a change at once; searches find new tools after these are embedded, in a thread. A retriever
    over another catalog than the registry's is not changed.
    """

    def __init__(self, retriever: AgentGraphRetriever, registry: ToolRegistry) -> None:
        self._retriever = retriever
        self._lock = threading.Lock()
        self._waiting: Loaded | None = None
        self._thread: threading.Thread | None = None
        if retriever.is_over(registry.catalog):
            registry.watch(self.follow)

    def follow(self, loaded: Loaded) -> None:
        """Applies a new state of the catalog in the background; of several pending ones, only the last."""
        with self._lock:
            self._waiting = loaded
            if self._thread is None:
                self._thread = threading.Thread(target=self._catch_up, name="callsheet-following", daemon=True)
                self._thread.start()

    def settled(self, seconds: float | None = None) -> None:
        """Waits until searches use the new state."""
        if (thread := self._thread) is not None:
            thread.join(seconds)

    def _catch_up(self) -> None:
        while True:
            with self._lock:
                loaded, self._waiting = self._waiting, None
                if loaded is None:
                    self._thread = None
                    return
            try:
                _LOG.info("the catalog has changed: %s", self._retriever.follow(loaded))
            except Exception:  # noqa: BLE001 an embedder may raise anything; the old state stays in use
                _LOG.exception("the index could not follow the catalog")


def follow_every(
    seconds: float, registry: ToolRegistry, read: Callable[[], Loaded], *, at_once: bool = False
) -> threading.Event:
    """Reloads a catalog periodically in a thread, for servers that do not announce changes.

    Args:
        seconds: Interval; 0 for no further reload.
        registry: Gets the catalog; a ``Following`` updates the index.
        read: Loads the catalog.
        at_once: Also reloads now, for a catalog that was loaded from stored listings.

    Returns:
        An event that stops it when set.
    """
    stop = threading.Event()

    def again() -> None:
        if at_once:
            _reload(registry, read)
        while seconds and not stop.wait(seconds):
            _reload(registry, read)

    threading.Thread(target=again, name="callsheet-reading", daemon=True).start()
    return stop


def follow_store(database: Database, registry: ToolRegistry, read: Callable[[], Loaded]) -> threading.Event:
    """Reloads a catalog when another process changes pins or listings in the shared store, in a thread.

    While the database does not answer, the last known catalog stays in use. What could not be reloaded is tried again
    after five seconds at most.

    Returns:
        An event that stops it when set.
    """
    changed = threading.Event()
    stop = listen(database, lambda name: changed.set() if name.startswith(_CATALOG) or not name else None)

    def again() -> None:
        pause, last, failed = _SETTLED, 0.0, False
        while not stop.is_set():
            if changed.wait(_SETTLED):
                # Changes come together. A server that says something else each time must not keep all machines busy.
                longest = _RETRY if failed else _LONGEST_PAUSE
                pause = min(2 * pause, longest) if time.monotonic() - last < 4 * pause else _SETTLED
                stop.wait(pause)
                changed.clear()
                failed = not _reload(registry, read)
                if failed:
                    changed.set()  # such as when the database answers the listener, but not the reader yet
                last = time.monotonic()

    threading.Thread(target=again, name="callsheet-reading", daemon=True).start()
    return stop


def _reload(registry: ToolRegistry, read: Callable[[], Loaded]) -> bool:
    """Whether the catalog was reloaded."""
    try:
        registry.follow(read())
    except (CallsheetError, OSError) as error:
        _LOG.warning("the catalog was not reloaded: %s", error)
        return False
    return True
