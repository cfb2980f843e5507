"""Makes selectors over one index, again when the catalog changes."""

from __future__ import annotations

import ctypes
import logging
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from callsheet.graphs import Catalog, CatalogError, Loaded, Taxonomy, default_taxonomy
from callsheet.graphs.dependencies import ObservationLog, OutcomeLog, Seen, following
from callsheet.retrievers.capabilities.capability_index import CapabilityIndex
from callsheet.retrievers.index.chroma_index import ChromaIndex
from callsheet.retrievers.index.embedding.providers import Embedder
from callsheet.retrievers.index.lexical_index import LexicalIndex
from callsheet.retrievers.index.node_texts import RECIPE, nodes_of
from callsheet.retrievers.index.protocols import Changes, Progress, VectorIndex
from callsheet.retrievers.index.rows import IN_MEMORY, default_folder, default_place, is_url
from callsheet.retrievers.inference import with_inferred
from callsheet.retrievers.selection.reranking import Reranker
from callsheet.retrievers.selection.select_settings import SelectSettings
from callsheet.retrievers.selection.selector import Selector

_LOG = logging.getLogger(__name__)


@runtime_checkable
class ForkableIndex(Protocol):
    """An index that can be updated in a copy, so that searches do not wait."""

    def fork(self) -> VectorIndex:
        """A copy over the same storage; its ``sync`` does not change the results of the original."""
        ...


@dataclass(slots=True)
class Assembly:
    """Makes selectors over one index.

    Attributes:
        embeddings: The embedder, if the index does not name its own.
        taxonomy: The capabilities that tools can have.
        learned: Whether observations of earlier runs are used.
        source: The catalog as it was loaded, without inferred dependencies.
        making: Held while a selector is made.
    """

    index: VectorIndex
    embeddings: Embedder
    settings: SelectSettings | None
    reranker: Reranker | None
    taxonomy: Taxonomy
    learned: bool = False
    source: Catalog = field(default_factory=Catalog, init=False)
    _searching: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    making: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    def first(self, loaded: Loaded, progress: Progress | None = None) -> tuple[Selector, Changes]:
        """A selector over a catalog; embeds its new texts and infers its dependencies."""
        return self._made(self.index, loaded, progress)

    @property
    def place(self) -> str | Path | None:
        """Where the vectors are stored; None if unknown or in memory."""
        return getattr(self.index, "where", None)

    @property
    def _cache(self) -> Path | None:
        """The folder for what was inferred, beside the vectors or on this machine; None if these are in memory."""
        if not (place := self.place):
            return None
        return (default_folder() if is_url(place) else Path(place)) / "inferred"

    @contextmanager
    def next(self, loaded: Loaded, progress: Progress | None = None) -> Iterator[tuple[Selector, Changes]]:
        """The selector for a new state of the catalog, to replace the old one within the block.

        Meanwhile, searches use the old state; they wait only if the index cannot be forked.
        """
        with self.making:
            if isinstance(self.index, ForkableIndex):
                index = self.index.fork()
                yield self._made(index, loaded, progress)
                self.index = index
            else:
                with self._searching:
                    yield self._made(self.index, loaded, progress)

    @contextmanager
    def searching(self) -> Iterator[None]:
        """Protects a search from an update of the same index."""
        if isinstance(self.index, ForkableIndex):
            yield
        else:
            with self._searching:
                yield

    def _made(self, index: VectorIndex, loaded: Loaded, progress: Progress | None) -> tuple[Selector, Changes]:
        made = self._assembled(index, loaded, progress)
        _return_freed_memory()
        return made

    def _assembled(self, index: VectorIndex, loaded: Loaded, progress: Progress | None) -> tuple[Selector, Changes]:
        self.source = catalog = loaded.catalog
        learned = self.learned and (self.settings is None or self.settings.learned)
        if self.settings is None or self.settings.proposed:
            seen = _seen() if learned else None
            catalog = with_inferred(catalog, rejected=loaded.rejected, cache=self._cache, seen=seen)
        nodes = nodes_of(loaded.catalog)  # after the inference, whose memory they reuse
        changes = index.sync(nodes, progress)
        names = [node.id for node in nodes]
        capabilities = CapabilityIndex(catalog, index, names, self.taxonomy, embeddings=self.embeddings)
        lexical = LexicalIndex(nodes)
        selector = Selector(
            catalog,
            index,
            lexical,
            self.settings,
            nodes=[node.bare for node in nodes],
            reranker=self.reranker,
            capabilities=capabilities,
            outcomes=following(OutcomeLog(), loaded.catalog) if learned else dict,
        )
        return selector, changes


def _return_freed_memory() -> None:
    """Gives back to the system what making a selector took and freed, where glibc keeps it; elsewhere, nothing."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)


def _seen() -> Mapping[Seen, int]:
    try:
        return ObservationLog().read()
    except CatalogError as error:
        _LOG.warning("observed dependencies are not used: %s", error)
        return {}


def assembly_of(
    loaded: Loaded,
    embedder: Embedder,
    *,
    index: str | Path | VectorIndex | None = None,
    settings: SelectSettings | None = None,
    reranker: Reranker | None = None,
    taxonomy: Taxonomy | None = None,
) -> Assembly:
    """The assembly for a loaded catalog; the arguments are those of ``from_catalog``.

    Raises:
        SettingsError: The index cannot be opened.
    """
    if not isinstance(index, VectorIndex):
        place = (default_place() if loaded.label else None) if index is None else index
        where = None if place == IN_MEMORY else place
        index = ChromaIndex(embedder, catalog=loaded.label, recipe=RECIPE, where=where)
    return Assembly(index, embedder, settings, reranker, taxonomy or default_taxonomy(), learned=bool(loaded.label))
