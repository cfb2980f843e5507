"""Searches follow the catalog: what is new in it is embedded in the background and swapped in at once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from callsheet.agents import ToolRegistry
from callsheet.graphs import CallsheetError, Loaded
from callsheet.retrievers import AgentGraphRetriever

_LOG = logging.getLogger("callsheet")


class Following:
    """Keeps a retriever in step with a registry, whose catalog follows what the servers say in their sessions.

    What is new is refused or callable from that moment on; searches meet it once it is embedded, in a thread of its
    own. A retriever over another catalog than the registry's is left as it is.

    Args:
        retriever: Is brought up to date.
        registry: Is listened to.
    """

    def __init__(self, retriever: AgentGraphRetriever, registry: ToolRegistry) -> None:
        self._retriever = retriever
        self._lock = threading.Lock()
        self._waiting: Loaded | None = None
        self._thread: threading.Thread | None = None
        if retriever.is_over(registry.catalog):
            registry.watch(self.follow)

    def follow(self, loaded: Loaded) -> None:
        """Takes over another state of the catalog, in the background; of several that come meanwhile the last."""
        with self._lock:
            self._waiting = loaded
            if self._thread is None:
                self._thread = threading.Thread(target=self._catch_up, name="callsheet-following", daemon=True)
                self._thread.start()

    def settled(self, seconds: float | None = None) -> None:
        """Waits until searches meet what was taken over."""
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
            except Exception:  # noqa: BLE001 an embedder raises errors of its own; the state before stays in use
                _LOG.exception("the index could not follow the catalog")


def follow_every(
    seconds: float, registry: ToolRegistry, read: Callable[[], Loaded], *, at_once: bool = False
) -> threading.Event:
    """Reads a catalog anew again and again, in a thread, for servers that say nothing of their changes.

    Args:
        seconds: Between two readings; 0 for no second one.
        registry: Takes over what was read; a ``Following`` of it has the index follow.
        read: Gives the catalog as it is now.
        at_once: Reads it a first time now, for one that was read by what servers said before.

    Returns:
        What ends it when it is set.
    """
    stop = threading.Event()

    def once() -> None:
        try:
            registry.follow(read())
        except CallsheetError as error:
            _LOG.warning("the catalog was not read anew: %s", error)

    def again() -> None:
        if at_once:
            once()
        while seconds and not stop.wait(seconds):
            once()

    threading.Thread(target=again, name="callsheet-reading", daemon=True).start()
    return stop
