"""The small protocols that the retriever stands on, and the values that pass through them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
"""Called with how many texts are embedded and how many there are."""


@dataclass(frozen=True, slots=True)
class Node:
    """An agent or a tool, as it is indexed.

    Attributes:
        id: Its id in the catalog.
        kind: ``agent`` or ``tool``.
        owner: Id of the agent: of the tool's owner, or its own.
        text: What is embedded.
        words: What is searched by words.
        views: More texts that are embedded, each with its weight; ``text`` has what is left of 1.
    """

    id: str
    kind: Literal["agent", "tool"]
    owner: str
    text: str
    words: str
    views: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """What an indexing did, in nodes."""

    added: int = 0
    updated: int = 0
    removed: int = 0


@runtime_checkable
class VectorIndex(Protocol):
    """Finds nodes by the meaning of their texts."""

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        """Makes the index hold just these nodes; embeds only texts that it does not hold yet.

        Interrupted at any point, what was searchable before stays so, and the next call goes on from there.
        """
        ...

    def scores(self, query: str, spans: Sequence[Span] = ()) -> NDArray[np.float32]:
        """How similar every node is to the query, and to each of these parts of it.

        Args:
            query: The whole query.
            spans: Start and end of each part, in characters.

        Returns:
            ``(1 + len(spans), n)`` cosines, columns in the order of the nodes. An index that does not compare all
            gives the others the lowest that it found.
        """
        ...


@runtime_checkable
class VectorProducts(Protocol):
    """An index whose vectors can be multiplied with others; one that cannot is asked by texts, one by one.

    Attributes:
        embeddings: What made its vectors.
    """

    embeddings: Embedder

    def products(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosines of vectors of the same embedder, ``(m, d)``, with those of every node: ``(m, n)``."""
        ...


class VectorStoreIndex:
    """Any LangChain ``VectorStore`` as an index; its rows get the nodes' ids.

    Args:
        store: An empty store, or one that this class filled; it embeds with its own embedder.
    """

    def __init__(self, store: VectorStore) -> None:
        self._store = store
        self._texts: dict[str, str] = {}

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        """As in ``VectorIndex``; what this object put in before is compared, a store cannot be asked."""
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
        """As in ``VectorIndex``; scores are the store's relevance scores, or its plain ones where it has no others."""
        rows = {node: row for row, node in enumerate(self._texts)}
        found = np.zeros((1 + len(spans), len(rows)), np.float32)
        for i, text in enumerate((query, *(query[start:end] for start, end in spans))):
            hits = self._similar(text, min(len(rows), _FROM_STORE))
            found[i] = min((score for _, score in hits), default=0.0)
            for node, score in hits:
                if node in rows:
                    found[i, rows[node]] = score
        return found

    def _similar(self, text: str, k: int) -> list[tuple[str, float]]:
        if k == 0:
            return []
        try:
            found = self._store.similarity_search_with_relevance_scores(text, k=k)
        except NotImplementedError:
            found = self._store.similarity_search_with_score(text, k=k)
        return [(document.metadata["node"], float(score)) for document, score in found]
