"""Makes the selector over an index, and makes a new one when the catalog changes."""

from __future__ import annotations

import ctypes
import logging
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from callsheet.graphs import Catalog, CatalogError, Loaded, SettingsError, Taxonomy, read_taxonomy
from callsheet.graphs.dependencies import ObservationLog, OutcomeLog, Seen, following
from callsheet.retrievers.capabilities.capability_index import CapabilityIndex
from callsheet.retrievers.index.embedding import Embedder
from callsheet.retrievers.index.indexes import ChromaIndex, LexicalIndex, VectorStoreIndex
from callsheet.retrievers.index.node_texts import RECIPES, Changes, Progress, Texts, VectorIndex, nodes_of
from callsheet.retrievers.index.rows import IN_MEMORY, default_place, is_url
from callsheet.retrievers.inference import with_inferred
from callsheet.retrievers.selection.copies import Copies, find_copies
from callsheet.retrievers.selection.decision import ToolJudge
from callsheet.retrievers.selection.select_settings import SelectSettings
from callsheet.retrievers.selection.selector import Selector

if TYPE_CHECKING:
    from langchain_core.vectorstores import VectorStore

_LOG = logging.getLogger(__name__)
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")


@dataclass(slots=True)
class SelectorFactory:
    """Makes selectors over the same index.

    Attributes:
        embeddings: The embedder, if the index does not name its own.
        learned: Whether observations of earlier runs are used.
        source: The catalog as it was loaded, without inferred dependencies.
        making: Held while a selector is made.
    """

    index: VectorIndex
    embeddings: Embedder
    settings: SelectSettings
    judge: ToolJudge | None
    taxonomy: Taxonomy
    learned: bool = False
    source: Catalog = field(default_factory=Catalog, init=False)
    _searching: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    making: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    @property
    def place(self) -> str | Path | None:
        """Returns where the vectors are stored; None if that is unknown or in memory."""
        return getattr(self.index, "where", None)

    @property
    def _cache(self) -> Path | None:
        """The folder for what was inferred, beside the vectors or on this machine; None if these are in memory."""
        place = self.place
        if not place:
            return None
        return (default_place() if is_url(place) else Path(place)) / "inferred"

    @contextmanager
    def next(self, loaded: Loaded, progress: Progress | None = None) -> Iterator[tuple[Selector, Changes]]:
        """Yields the selector for a new state of the catalog, which replaces the old one at the end of the block.

        Meanwhile, searches use the old state. They wait only if the index has no ``fork()``, so that no copy of it can
        be updated.
        """
        with self.making, self.searching():
            fork: Callable[[], VectorIndex] | None = getattr(self.index, "fork", None)
            index = fork() if fork else self.index
            yield self.made(loaded, progress, index)
            self.index = index

    def searching(self) -> AbstractContextManager[object]:
        """Runs a search in the block while the index is not updated."""
        return nullcontext() if hasattr(self.index, "fork") else self._searching

    def made(
        self, loaded: Loaded, progress: Progress | None = None, index: VectorIndex | None = None
    ) -> tuple[Selector, Changes]:
        """Makes a selector over a catalog; embeds its new texts and infers its dependencies."""
        index = self.index if index is None else index
        catalog = loaded.catalog
        self.source = catalog
        learned = self.learned and self.settings.learned
        if self.settings.proposed:
            cache = self._cache
            seen = _seen() if learned else None
            catalog = with_inferred(catalog, rejected=loaded.rejected, trusted=loaded.trusted, cache=cache, seen=seen)
        nodes = nodes_of(loaded.catalog, self.settings.texts)  # after the inference, whose memory they reuse
        changes = index.sync(nodes, progress)
        names = [node.id for node in nodes]
        bare = [node.bare for node in nodes]
        lexical = LexicalIndex(nodes)
        capabilities = CapabilityIndex(catalog, index, names, self.taxonomy, embeddings=self.embeddings)
        vectors = index.in_memory if isinstance(index, ChromaIndex) else None
        of_tools = None if vectors is None else vectors[[n for n, node in enumerate(nodes) if node.kind == "tool"]]
        copies = Copies() if self.settings.texts != "full" else find_copies(loaded, of_tools)
        outcomes = following(OutcomeLog(), loaded.catalog) if learned else dict
        more: dict[str, Any] = {"judge": self.judge, "capabilities": capabilities, "outcomes": outcomes}
        selector = Selector(catalog, index, lexical, self.settings, nodes=bare, copies=copies, **more)
        del nodes, vectors, of_tools
        _return_freed_memory()
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


def selector_factory(
    loaded: Loaded,
    embedder: Embedder,
    *,
    index: str | Path | VectorIndex | VectorStore | None = None,
    settings: SelectSettings | None = None,
    judge: ToolJudge | None = None,
    taxonomy: Taxonomy | str | Path | None = None,
) -> SelectorFactory:
    """Returns the factory for a loaded catalog; the arguments are those of ``from_catalog``."""
    settings = settings or SelectSettings()
    opened = _opened(index, loaded.label, embedder, settings.texts)
    return SelectorFactory(opened, embedder, settings, judge, read_taxonomy(taxonomy), learned=bool(loaded.label))


def _opened(
    index: str | Path | VectorIndex | VectorStore | None, label: str, embedder: Embedder, texts: Texts
) -> VectorIndex:
    if texts != "full" and (not isinstance(index, str | Path | None) or _REFERENCE.fullmatch(str(index))):
        index = IN_MEMORY  # the user's own index holds the full texts
    if isinstance(index, str) and _REFERENCE.fullmatch(index):
        try:
            index = resolve_name(index)
        except (ImportError, AttributeError) as error:
            raise SettingsError(f"the index {index} cannot be imported: {error}") from error
    match index:
        case VectorIndex():
            return index
        case str() | Path() | None:
            place = (default_place() if label else None) if index is None else index
            where = None if place == IN_MEMORY else place
            return ChromaIndex(embedder, catalog=label, recipe=RECIPES[texts], where=where)
        case _ if hasattr(index, "similarity_search_with_relevance_scores"):  # without an import that takes a second
            return VectorStoreIndex(index)
    raise SettingsError(f"an index is a place, a VectorIndex or a VectorStore of LangChain, not {type(index).__name__}")
