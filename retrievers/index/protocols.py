"""The protocols of indexes, and their values."""

from __future__ import annotations

import hashlib
import uuid
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from langchain_core.vectorstores import VectorStore

    from callsheet.retrievers.index.embedding.providers import Embedder

Span = tuple[int, int]
"""Start and end of a part of a query, in characters."""
_FROM_STORE, _PAGE = 200, 1_000

Progress = Callable[[int, int], None]
"""Called with the number of embedded texts and the number of all texts."""


@dataclass(frozen=True, slots=True)
class Node:
    """An agent, a tool or a skill in an index.

    Attributes:
        id: Its id in the catalog.
        kind: ``agent``, ``tool`` or ``skill``.
        owner: Id of the owner of a tool; the own id of an agent or a skill.
        text: Text to embed.
        words: Text for search by words.
        views: More texts to embed, each with its weight; ``text`` has the rest of the weight, up to 1.
    """

    id: str
    kind: Literal["agent", "tool", "skill"]
    owner: str
    text: str
    words: str
    views: tuple[tuple[str, float], ...] = ()

    @property
    def bare(self) -> Node:
        """The same node without its texts, which only the building of an index needs."""
        return replace(self, text="", words="", views=())


@dataclass(frozen=True, slots=True)
class Changes:
    """The numbers of nodes that an update changed."""

    added: int = 0
    updated: int = 0
    removed: int = 0


@runtime_checkable
class VectorIndex(Protocol):
    """Searches nodes by the meaning of their texts."""

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        """Updates the index to exactly these nodes; embeds only new texts.

        If it is interrupted, the old state remains searchable, and the next call resumes.
        """
        ...

    def scores(self, query: str, spans: Sequence[Span] = ()) -> NDArray[np.float32]:
        """The similarity of every node to the query, and to these parts of it.

        Args:
            query: The whole query.
            spans: Start and end of each part, in characters.

        Returns:
            ``(1 + len(spans), n)`` cosines, columns in the order of the nodes. An index that does not compare all
            nodes returns the lowest cosine for the others.
        """
        ...


@runtime_checkable
class VectorProducts(Protocol):
    """An index that multiplies its vectors with others; other indexes are searched text by text."""

    embeddings: Embedder

    def products(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosines ``(m, n)`` of vectors of the same embedder, ``(m, d)``, with those of every node."""
        ...


class VectorStoreIndex:
    """A LangChain ``VectorStore`` as an index.

    The id of a document is made of the node's id and text, so that several processes can share a store: what one of
    them has added, no other embeds again, and a search passes over what is not of its own catalog.

    Args:
        store: A store for this catalog only; it uses its own embedder.
    """

    def __init__(self, store: VectorStore) -> None:
        # Cosines below 0 are as they should be; the warning holds all texts.
        warnings.filterwarnings("ignore", "Relevance scores must be between 0 and 1")
        self._store = store
        self._nodes: dict[str, str] = {}  # the nodes of the catalog by the ids of their documents

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        """As in ``VectorIndex``. A store cannot list its documents: only those that this object knew are deleted."""
        wanted = {_document_id(node): node for node in nodes}
        missing = self._missing([row for row in wanted if row not in self._nodes])
        for start in range(0, len(missing), _PAGE):
            page = {row: wanted[row] for row in missing[start : start + _PAGE]}
            self._store.add_texts(
                [node.text for node in page.values()],
                metadatas=[{"node": node.id, "kind": node.kind, "row": row} for row, node in page.items()],
                ids=list(page),
            )
            if progress:
                progress(start + len(page), len(missing))
        if gone := [row for row in self._nodes if row not in wanted]:
            self._store.delete(gone)
        before, after = set(self._nodes.values()), {node.id for node in nodes}
        updated = sum(wanted[row].id in before for row in missing)
        self._nodes = {row: node.id for row, node in wanted.items()}
        return Changes(len(missing) - updated, updated, len(before - after))

    def scores(self, query: str, spans: Sequence[Span] = ()) -> NDArray[np.float32]:
        """As in ``VectorIndex``, with the store's relevance scores, or its plain scores if it has no others."""
        column = {row: i for i, row in enumerate(self._nodes)}
        scores = np.zeros((1 + len(spans), len(column)), np.float32)
        for i, text in enumerate((query, *(query[start:end] for start, end in spans))):
            hits = self._similar(text, min(len(column), _FROM_STORE))
            scores[i] = min((score for _, score in hits), default=0.0)
            for row, score in hits:
                if row in column:
                    scores[i, column[row]] = score
        return scores

    def _missing(self, rows: Sequence[str]) -> list[str]:
        """Those of these documents that the store does not have, in their order."""
        there: set[str | None] = set()
        with suppress(NotImplementedError):  # a store without ``get_by_ids``: they are added again under the same ids
            for start in range(0, len(rows), _PAGE):
                there |= {document.id for document in self._store.get_by_ids(rows[start : start + _PAGE])}
        return [row for row in rows if row not in there]

    def _similar(self, text: str, k: int) -> list[tuple[str, float]]:
        if k == 0:
            return []
        try:
            hits = self._store.similarity_search_with_relevance_scores(text, k=k)
        except NotImplementedError:
            hits = self._store.similarity_search_with_score(text, k=k)
        return [(str(document.metadata.get("row")), float(score)) for document, score in hits]


def _document_id(node: Node) -> str:
    """A UUID, which every store takes."""
    return str(uuid.UUID(bytes=hashlib.sha256(f"{node.id}\0{node.text}".encode()).digest()[:16]))


class PartOfIndex:
    """The part of an index that a user may see: a ``VectorIndex`` of these rows over the same vectors.

    Args:
        whole: The whole index, which is updated separately.
        rows: The visible rows, in this order.
    """

    def __init__(self, whole: VectorIndex, rows: Sequence[int]) -> None:
        self._whole = whole
        self._rows = np.asarray(rows, np.intp)

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        """Changes nothing: only the whole index is updated."""
        return Changes()

    def scores(self, query: str, spans: Sequence[Span] = ()) -> NDArray[np.float32]:
        """As in ``VectorIndex``, for these rows."""
        return self._whole.scores(query, spans)[:, self._rows]
