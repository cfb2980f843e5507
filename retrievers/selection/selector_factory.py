"""What a selector is made of, so that another one can be made when the catalog has changed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from callsheet.graphs import Catalog, Loaded, Taxonomy, default_taxonomy
from callsheet.retrievers.capabilities.capability_index import CapabilityIndex
from callsheet.retrievers.index.chroma_index import ChromaIndex
from callsheet.retrievers.index.chroma_rows import IN_MEMORY, default_place
from callsheet.retrievers.index.embedding.providers import Embedder
from callsheet.retrievers.index.lexical_index import LexicalIndex
from callsheet.retrievers.index.node_texts import RECIPE, nodes_of
from callsheet.retrievers.index.protocols import Changes, Progress, VectorIndex
from callsheet.retrievers.selection.reranking import Reranker
from callsheet.retrievers.selection.select_settings import SelectSettings
from callsheet.retrievers.selection.selector import Selector


@runtime_checkable
class ForkableIndex(Protocol):
    """An index that can be brought up to date beside itself, so that nobody who searches it has to wait."""

    def fork(self) -> VectorIndex:
        """Another one over the same place; ``sync`` of it leaves what this one finds as it is."""
        ...


@dataclass(slots=True)
class Assembly:
    """Makes selectors over one index.

    Attributes:
        index: Holds the vectors.
        embeddings: What embeds, where the index does not say.
        settings: Settings of the selection.
        reranker: What takes a second look at the first tools.
        taxonomy: The capabilities that tools may have.
    """

    index: VectorIndex
    embeddings: Embedder
    settings: SelectSettings | None
    reranker: Reranker | None
    taxonomy: Taxonomy
    _searching: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)
    _making: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def first(self, catalog: Catalog, progress: Progress | None = None) -> tuple[Selector, Changes]:
        """A selector over a catalog, whose texts are embedded as far as they are not yet."""
        return self._made(self.index, catalog, progress)

    @property
    def place(self) -> str | Path | None:
        """Where the vectors are kept; None where that is not known, or memory."""
        return getattr(self.index, "where", None)

    @contextmanager
    def next(self, catalog: Catalog, progress: Progress | None = None) -> Iterator[tuple[Selector, Changes]]:
        """The selector for another state of the catalog, to be put in the place of the one before within the block.

        Searches go on meanwhile over the state before; only an index that cannot be forked makes them wait.
        """
        with self._making:
            if isinstance(self.index, ForkableIndex):
                index = self.index.fork()
                yield self._made(index, catalog, progress)
                self.index = index
            else:
                with self._searching:
                    yield self._made(self.index, catalog, progress)

    @contextmanager
    def searching(self) -> Iterator[None]:
        """While an index is searched that may be rewritten under the search."""
        if isinstance(self.index, ForkableIndex):
            yield
        else:
            with self._searching:
                yield

    def _made(self, index: VectorIndex, catalog: Catalog, progress: Progress | None) -> tuple[Selector, Changes]:
        nodes = nodes_of(catalog)
        changes = index.sync(nodes, progress)
        names = [node.id for node in nodes]
        capabilities = CapabilityIndex(catalog, index, names, self.taxonomy, embeddings=self.embeddings)
        lexical = LexicalIndex(nodes)
        selector = Selector(
            catalog, index, lexical, self.settings, nodes=nodes, reranker=self.reranker, capabilities=capabilities
        )
        return selector, changes


def assembly_of(
    loaded: Loaded,
    embedder: Embedder,
    *,
    index: str | Path | VectorIndex | None = None,
    settings: SelectSettings | None = None,
    reranker: Reranker | None = None,
    taxonomy: Taxonomy | None = None,
) -> Assembly:
    """What makes selectors over a catalog as it was loaded; the arguments are those of ``from_catalog``.

    Raises:
        SettingsError: The index cannot be opened.
    """
    if not isinstance(index, VectorIndex):
        place = (default_place() if loaded.label else None) if index is None else index
        where = None if place == IN_MEMORY else place
        index = ChromaIndex(embedder, catalog=loaded.label, recipe=RECIPE, where=where)
    return Assembly(index, embedder, settings, reranker, taxonomy or default_taxonomy())
