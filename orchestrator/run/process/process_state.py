"""The state of this process: one catalog with one index and one registry, created on first use."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from callsheet.agents import ToolRegistry
from callsheet.graphs import Loaded, load, shown
from callsheet.graphs.storage import shared_store
from callsheet.orchestrator.run.process.catalog_updates import follow_every, follow_store
from callsheet.orchestrator.run.process.environment import Environment
from callsheet.retrievers import AgentGraphRetriever

_LOCK = threading.Lock()
_LOG = logging.getLogger("callsheet")


@dataclass(frozen=True, slots=True)
class Served:
    """A served catalog.

    Attributes:
        retriever: Searches it.
        registry: Makes its tools callable, and knows which agents fail.
        read: Loads the catalog again, with every server listed anew if true; None: it cannot be loaded again.
    """

    loaded: Loaded
    retriever: AgentGraphRetriever
    registry: ToolRegistry
    read: Callable[[bool], Loaded] | None = None


def served() -> Served:
    """The catalog that the environment names; loaded and indexed on the first call only.

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
    loaded = load(*environment.catalogs())
    for problem in loaded.problems:
        _LOG.warning("left out: %s", shown(str(problem)))
    retriever = AgentGraphRetriever.from_catalog(loaded, embeddings=environment.embeddings, index=environment.index)
    registry = ToolRegistry.from_catalog(loaded)
    if environment.sync_seconds or loaded.remembered:
        follow_every(
            environment.sync_seconds,
            registry,
            lambda: load(*environment.catalogs(), anew=True),
            at_once=bool(loaded.remembered),
        )
    if (store := shared_store()) is not None:
        follow_store(store, registry, lambda: load(*environment.catalogs()))
    return Served(loaded, retriever, registry, lambda anew: load(*environment.catalogs(), anew=anew))
