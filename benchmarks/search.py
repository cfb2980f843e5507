"""Plain search over plain texts, exact cosine and BM25, with one embedder for all methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property

import bm25s
import numpy as np

from callsheet.graphs import Agent, Catalog, KnowledgeGraph, Tool, knowledge_graph, split_name
from callsheet.retrievers import MiniLMEmbeddings

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


def plain_tool(tool: Tool) -> str:
    """A tool as the papers embed it: its name and its description as they stand."""
    return f"{tool.name}: {tool.description}"


def plain_agent(agent: Agent) -> str:
    """An agent as the papers embed it: its name and its description as they stand."""
    return f"{agent.name or agent.id}: {agent.description}"


class Corpus:
    """Texts by id, searched by meaning and by words."""

    def __init__(self, texts: Mapping[str, str], vectors: SharedVectors) -> None:
        self.ids = list(texts)
        self._texts = list(texts.values())
        self._vectors = vectors

    def dense(self, query: str) -> list[str]:
        """All ids by cosine, best first; ties in the order of the texts."""
        return [self.ids[i] for i in np.argsort(-self.cosines(query), kind="stable")]

    def cosines(self, query: str) -> np.ndarray:
        """The cosine of each text with the query, ``(n,) float32``."""
        scores: np.ndarray = self._matrix @ self._vectors.encode([query])[0]
        return scores

    def bm25(self, query: str) -> list[str]:
        """The ids that share a word with the query, by BM25, best first."""
        known = [word for word in _words([query])[0] if word in self._bm25.vocab_dict]
        if not known:
            return []
        scores = np.asarray(self._bm25.get_scores(known))
        return [self.ids[i] for i in np.argsort(-scores, kind="stable") if scores[i] > 0]

    @cached_property
    def _matrix(self) -> np.ndarray:
        return self._vectors.encode(self._texts)

    @cached_property
    def _bm25(self) -> bm25s.BM25:
        index = bm25s.BM25()
        index.index(_words(self._texts), show_progress=False)
        return index


def _words(texts: Sequence[str]) -> list[list[str]]:
    """bm25s's own tokens, identifiers split into words: lower case, English stop words left out, no stemming."""
    found = bm25s.tokenize(list(map(split_name, texts)), stopwords="en", return_ids=False, show_progress=False)
    return [list(map(str, words)) for words in found]


class World:
    """What the methods on one catalog share: its texts, indexed once in each form, our embedder and the baselines'."""

    def __init__(self, catalog: Catalog, vectors: SharedVectors, published: SharedVectors | None = None) -> None:
        self.catalog, self.vectors, self.published = catalog, vectors, published or vectors
        self._agents = {agent.id: plain_agent(agent) for agent in catalog.agents}
        self._tools = {tool.id: plain_tool(tool) for tool in catalog.tools.values()}

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

    @cached_property
    def nodes(self) -> Corpus:
        """Agents and tools in one index."""
        return Corpus(self._agents | self._tools, self.published)
