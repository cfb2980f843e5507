"""The protocols of indexes, and their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from langchain_core.vectorstores import VectorStore

    from callsheet.retrievers.index.embedding.providers import Embedder

Span = tuple[int, int]
"""Start and end of a part of a query, in characters."""
_FROM_STORE = 200

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


@runtime_checkable
class RestrictedIndex(Protocol):
    """An index that does not compare all nodes, but can be told which ones matter."""

    def scores_of(
        self,
        rows: NDArray[np.intp] | None,
        query: str,
        spans: Sequence[Span] = (),
        also: Iterable[NDArray[np.intp]] = (),
    ) -> NDArray[np.float32]:
        """As ``VectorIndex.scores``, for some nodes.

        Args:
            rows: The rows to search, so that nodes that a user may not see do not displace them; None: all rows.
            query: The whole query.
            spans: Start and end of each part, in characters.
            also: For the query and each part, rows whose cosines are wanted, for example the best by words.

        Returns:
            ``(1 + len(spans), len(rows))``.
        """
        ...


class VectorStoreIndex:
    """A LangChain ``VectorStore`` as an index; node ids become the ids of its documents.

    Args:
        store: A store that is empty or was filled by this class; it uses its own embedder.
    """

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._texts: dict[str, str] = {}

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        """As in ``VectorIndex``. Compares with the texts that this object added, as a store cannot list its own."""
        wanted = {node.id: node.text for node in nodes}
        changed = [node for node in nodes if self._texts.get(node.id) != node.text]
        updated = [node.id for node in changed if node.id in self._texts]
        removed = [node_id for node_id in self._texts if node_id not in wanted]
        if updated or removed:
            self._store.delete([*updated, *removed])
        if changed:
            self._store.add_texts(
                [node.text for node in changed],
                metadatas=[{"node": node.id, "kind": node.kind} for node in changed],
                ids=[node.id for node in changed],
            )
        if progress:
            progress(len(changed), len(changed))
        self._texts = wanted
        return Changes(len(changed) - len(updated), len(updated), len(removed))

    def scores(self, query: str, spans: Sequence[Span] = ()) -> NDArray[np.float32]:
        """As in ``VectorIndex``, with the store's relevance scores, or its plain scores if it has no others."""
        rows = {node: row for row, node in enumerate(self._texts)}
        scores = np.zeros((1 + len(spans), len(rows)), np.float32)
        for i, text in enumerate((query, *(query[start:end] for start, end in spans))):
            hits = self._similar(text, min(len(rows), _FROM_STORE))
            scores[i] = min((score for _, score in hits), default=0.0)
            for node, score in hits:
                if node in rows:
                    scores[i, rows[node]] = score
        return scores

    def _similar(self, text: str, k: int) -> list[tuple[str, float]]:
        if k == 0:
            return []
        try:
            hits = self._store.similarity_search_with_relevance_scores(text, k=k)
        except NotImplementedError:
            hits = self._store.similarity_search_with_score(text, k=k)
        return [(document.metadata["node"], float(score)) for document, score in hits]


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
        return self.scores_of(None, query, spans)

    def scores_of(
        self,
        rows: NDArray[np.intp] | None,
        query: str,
        spans: Sequence[Span] = (),
        also: Iterable[NDArray[np.intp]] = (),
    ) -> NDArray[np.float32]:
        """As in ``RestrictedIndex``; rows are places among these rows."""
        own = self._rows if rows is None else self._rows[rows]
        if isinstance(self._whole, RestrictedIndex):
            return self._whole.scores_of(own, query, spans, (self._rows[more] for more in also))
        return self._whole.scores(query, spans)[:, own]
