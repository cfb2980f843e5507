"""Plain search over plain texts, exact cosine and BM25, with one embedder for all methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property

import numpy as np
from langchain_core.embeddings import Embeddings

from callsheet.graphs import Catalog, KnowledgeGraph, knowledge_graph, split_name
from callsheet.retrievers import (
    METHODS,
    AgentGraphRetriever,
    LexicalIndex,
    MiniLMEmbeddings,
    Node,
    embeddings_of,
    first_search,
)
from callsheet.retrievers.index.embedding import encode, encode_spans
from callsheet.retrievers.index.node_texts import Texts, plain_text
from callsheet.retrievers.papers.first_search import Search

Rank = Callable[[str], list[str]]
"""From a query to ids, best first."""
_AT_ONCE = 256


class SharedVectors(MiniLMEmbeddings):
    """The embedded MiniLM, tuned by Callsheet or as published, which remembers what it has embedded."""

    def __init__(self, *, tuned: bool = True) -> None:
        super().__init__(tuned=tuned)
        self._known: dict[str, np.ndarray] = {}
        self._parts: dict[tuple[str, tuple[tuple[int, int], ...]], np.ndarray] = {}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """As in ``MiniLMEmbeddings``; only texts that are new cost anything."""
        missing = sorted({text for text in texts if text not in self._known}, key=lambda text: (len(text), text))
        for start in range(0, len(missing), _AT_ONCE):
            batch = missing[start : start + _AT_ONCE]
            self._known.update(zip(batch, super().encode(batch), strict=True))
        return np.stack([self._known[text] for text in texts]) if texts else super().encode([])

    def encode_spans(self, text: str, spans: Sequence[tuple[int, int]]) -> np.ndarray:
        """As in ``MiniLMEmbeddings``; only what was not asked before costs anything."""
        key = (text, tuple(spans))
        if key not in self._parts:
            self._parts[key] = super().encode_spans(text, spans)
        return self._parts[key]


@cache
def vectors_of_this_run(*, tuned: bool = True) -> SharedVectors:
    """The one embedder of this process, of either kind."""
    return SharedVectors(tuned=tuned)


@cache
def embedder_of_this_run(name: str) -> Embeddings:
    """An embedder of LangChain by ``provider:model``, which remembers what it has embedded."""
    from langchain_classic.embeddings import CacheBackedEmbeddings
    from langchain_core.stores import InMemoryByteStore

    made, store = embeddings_of(name), InMemoryByteStore()
    return CacheBackedEmbeddings.from_bytes_store(
        made, store, namespace=name, query_embedding_cache=True, key_encoder="sha256"
    )


class Corpus:
    """Texts by id, searched by meaning and by words."""

    def __init__(self, texts: Mapping[str, str], vectors: Embeddings) -> None:
        self.ids, self._texts, self._vectors = list(texts), list(texts.values()), vectors

    def search(self, query: str, how: Search = "dense") -> list[str]:
        """The ids that a search of the literature finds, best first; ties in the order of the texts."""
        rows, _ = first_search(how, self.cosines(query), self._lexical.scores(query).scores)
        return [self.ids[row] for row in rows]

    def cosines(self, query: str) -> np.ndarray:
        """The cosine of each text with the query, ``(n,) float32``."""
        scores: np.ndarray = self._matrix @ encode_spans(self._vectors, query)[0]
        return scores

    @cached_property
    def _matrix(self) -> np.ndarray:
        return encode(self._vectors, self._texts)

    @cached_property
    def _lexical(self) -> LexicalIndex:
        texts = zip(self.ids, self._texts, strict=True)
        return LexicalIndex([Node(name, "tool", name, text, split_name(text)) for name, text in texts])


class World:
    """What the methods on one catalog share: its texts, indexed once in each form, our embedder and the baselines'.

    ``model`` is a chat model that reranks, if there is one.
    """

    def __init__(
        self, catalog: Catalog, vectors: Embeddings, published: Embeddings | None = None, model: str | None = None
    ) -> None:
        self.catalog, self.vectors, self.published, self.model = catalog, vectors, published or vectors, model
        self._literature: dict[Texts, AgentGraphRetriever] = {}
        self._agents = {agent.id: plain_text(agent) for agent in catalog.agents}
        self._tools = {tool.id: plain_text(tool) for tool in catalog.tools.values()}

    def literature(self, texts: Texts) -> AgentGraphRetriever:
        """Callsheet with the methods of the literature, over these texts and with the baselines' embedder."""
        if texts not in self._literature:
            settings = replace(METHODS["dense"], texts=texts)
            self._literature[texts] = AgentGraphRetriever.from_catalog(
                self.catalog, index=":memory:", embeddings=self.published, settings=settings
            )
        return self._literature[texts]

    @cached_property
    def graph(self) -> KnowledgeGraph:
        """Who owns what, and what it depends on."""
        return knowledge_graph(self.catalog)

    @cached_property
    def agents(self) -> Corpus:
        """Agents by name and description."""
        return Corpus(self._agents, self.published)

    @cached_property
    def tools(self) -> Corpus:
        """Tools by name and description."""
        return Corpus(self._tools, self.published)
