"""The catalog of this process, with one index and one registry, and the threads that update it."""

from __future__ import annotations

import atexit
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from queue import SimpleQueue
from typing import Any
from weakref import WeakSet

from callsheet.agents import ToolRegistry
from callsheet.agents.servers.catalogs.listings import UNHEARD
from callsheet.agents.servers.in_process import in_thread
from callsheet.graphs import CallsheetError, Loaded, load, shown
from callsheet.graphs.catalog.formats.manifests import SERVER_TROUBLE
from callsheet.graphs.storage import SharedStore, shared_store
from callsheet.orchestrator.run.process.environment import Environment
from callsheet.retrievers import AgentGraphRetriever

_LOCK = threading.Lock()
_LOG = logging.getLogger("callsheet")
_LOOK_SECONDS = 2.0
_LONGEST_PAUSE = 60.0
_CALM = 3
_LOOK_AGAIN = 60.0
_LONGEST_LOOK = 3_600.0
_LAST_UPDATE = 10.0
_UPDATING: WeakSet[threading.Thread] = WeakSet()


@dataclass(frozen=True, slots=True)
class Served:
    """A catalog that the process serves; ``read`` loads it again with the options of ``load``, if that is possible."""

    loaded: Loaded
    retriever: AgentGraphRetriever
    registry: ToolRegistry
    read: Callable[..., Loaded] | None = None


def served_catalog() -> Served:
    """Returns the catalog that the environment names; it is loaded and indexed on the first call.

    Raises:
        CatalogError: The catalog cannot be read.
        SettingsError: The index or the policy cannot be opened.
        TrustError: A command of the catalog has no consent, or its pins cannot be used.
    """
    with _LOCK:
        return _opened()


@cache
def _opened() -> Served:
    environment = Environment()
    loaded = load(*environment.catalog)
    for problem in loaded.problems:
        _LOG.warning("%s: %s", problem.word, shown(str(problem)))
    retriever = AgentGraphRetriever.from_catalog(loaded, embeddings=environment.embeddings, index=environment.index)
    registry = ToolRegistry.from_catalog(loaded)
    read = partial(load, *environment.catalog)
    ServerUpdates(registry, read, seconds=environment.sync_seconds, anew=bool(loaded.remembered))
    store = shared_store()
    if store is not None:
        follow_store(store, registry, read)
    return Served(loaded, retriever, registry, read)


class CatalogSync:
    """Updates a retriever when the catalog of a registry changes.

    The registry uses a change at once; searches find new tools after they are embedded, in a thread. A retriever over
    another catalog is not updated.
    """

    def __init__(self, retriever: AgentGraphRetriever, registry: ToolRegistry) -> None:
        self._retriever = retriever
        self._lock = threading.Lock()
        self._waiting: Loaded | None = None
        self._thread: threading.Thread | None = None
        if retriever.is_over(registry.catalog):
            registry.watch(self.follow)

    def follow(self, loaded: Loaded) -> None:
        """Applies a new state of the catalog in the background; if several are pending, only the last one."""
        with self._lock:
            self._waiting = loaded
            if self._thread is None:
                self._thread = threading.Thread(target=self._catch_up, name="callsheet-following", daemon=True)
                _UPDATING.add(self._thread)
                self._thread.start()

    def settled(self, seconds: float | None = None) -> None:
        """Waits until searches use the latest state."""
        with self._lock:  # a thread that is not started yet cannot be joined
            thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def _catch_up(self) -> None:
        while True:
            with self._lock:
                loaded = self._waiting
                self._waiting = None
                if loaded is None:
                    self._thread = None
                    return
            try:
                _LOG.info("the catalog has changed: %s", self._retriever.follow(loaded))
            except Exception:  # noqa: BLE001 an embedder may raise anything; the old state stays in use
                _LOG.exception("the index could not follow the catalog")


@atexit.register
def finish_updates() -> None:
    """Waits up to ten seconds for each index that is being updated.

    The embedded model is native code: if Python ended while a daemon thread runs it, the process would abort.
    """
    for thread in list(_UPDATING):
        thread.join(_LAST_UPDATE)


class ServerUpdates:
    """Asks the servers of a catalog in a thread; each answer is used at once, even if other servers never answer.

    A server that failed is asked again after a pause that grows with each failure (``LastListings``).

    Args:
        registry: Gets the catalog; a ``CatalogSync`` updates the index.
        read: Loads the catalog, with the keywords of ``load``.
        seconds: Interval at which all servers are asked; 0: only those that failed are asked again.
        due: Whether servers are asked at the start if a new command would ask them.
        anew: Whether all servers are asked at the start.

    Attributes:
        stop: Ends it when set.
        complete: Set when each server has answered or failed once.
    """

    def __init__(
        self,
        registry: ToolRegistry,
        read: Callable[..., Loaded],
        *,
        seconds: float = 0.0,
        due: bool = False,
        anew: bool = False,
    ) -> None:
        self._registry = registry
        self._read = read
        self._seconds = seconds
        self.complete = threading.Event()
        self.stop = _in_background(lambda stop: self._run(stop, due=due, anew=anew))

    def _run(self, stop: threading.Event, *, due: bool, anew: bool) -> None:
        pause = _LOOK_AGAIN
        if due or anew:
            self._ask(stop, anew=anew)
        self.complete.set()
        while self._seconds or any(one.kind in SERVER_TROUBLE for one in self._registry.loaded.problems):
            if stop.wait(self._seconds or pause):
                return
            self._ask(stop, anew=bool(self._seconds))
            pause = min(2 * pause, _LONGEST_LOOK)

    def _ask(self, stop: threading.Event, *, anew: bool) -> None:
        news: SimpleQueue[Any] = SimpleQueue()
        loading = in_thread(lambda: self._read(anew=anew, heard=lambda: news.put(None)))
        loading.add_done_callback(news.put)
        last = None
        while last is not loading:
            last = news.get()
            while last is None and not news.empty():
                last = news.get()
            if stop.is_set():
                return
            _reload(self._registry, partial(self._read, known=True) if last is None else loading.result)
            if not any(one.kind == UNHEARD.kind for one in self._registry.loaded.problems):
                self.complete.set()


def follow_store(store: SharedStore, registry: ToolRegistry, read: Callable[[], Loaded]) -> threading.Event:
    """Reloads a catalog in a thread whenever another process has changed pins or listings in the shared store.

    The version of the catalog is checked every two seconds, and less often after three changes in a row. While the
    store does not answer, the last known catalog stays in use. A reload that failed is tried again.

    Returns:
        An event that stops it when set.
    """

    def again(stop: threading.Event) -> None:
        seen = None
        changes = 0
        pause = 0.0
        warned = False
        while not stop.wait(pause):
            try:
                version = store.catalog_version()
                warned = False
            except CallsheetError as error:
                if not warned:
                    _LOG.warning("changes by other processes are not seen: %s", error)
                version = seen
                warned = True
            changes = changes + 1 if version != seen and _reload(registry, read) else 0
            seen = version if changes else seen
            # A server that says something else each time must not keep all machines busy.
            pause = min(_LONGEST_PAUSE, _LOOK_SECONDS * 2 ** max(0, changes - _CALM))

    return _in_background(again)


def _in_background(work: Callable[[threading.Event], None]) -> threading.Event:
    stop = threading.Event()
    threading.Thread(target=work, args=[stop], name="callsheet-reading", daemon=True).start()
    return stop


def _reload(registry: ToolRegistry, read: Callable[[], Loaded]) -> bool:
    """Returns whether the catalog was reloaded."""
    try:
        registry.follow(read())
    except (CallsheetError, OSError) as error:
        _LOG.warning("the catalog was not reloaded: %s", error)
        return False
    return True
