"""The small protocols that the retriever stands on, and the values that pass through them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from langchain_core.vectorstores import VectorStore

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
    """

    id: str
    kind: Literal["agent", "tool"]
    owner: str
    text: str
    words: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A node that a search found, with its score in that search; higher is better."""

    id: str
    score: float


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

    def search(self, query: str, k: int) -> Sequence[Hit]:
        """The nodes most similar to the query, best first, at most ``k``; scores are cosines."""
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

    def search(self, query: str, k: int) -> Sequence[Hit]:
        """As in ``VectorIndex``; scores are the store's relevance scores, or its plain ones where it has no others."""
        if k <= 0:
            return []
        try:
            found = self._store.similarity_search_with_relevance_scores(query, k=k)
        except NotImplementedError:
            found = self._store.similarity_search_with_score(query, k=k)
        return [Hit(document.metadata["node"], float(score)) for document, score in found]
