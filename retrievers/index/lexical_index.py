"""Search by words: BM25."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import bm25s
import numpy as np
from numpy.typing import NDArray

from callsheet.graphs.text.words import tokens
from callsheet.retrievers.index.node_texts import Node

logging.getLogger("bm25s").setLevel(logging.WARNING)  # bm25s sets DEBUG, which fills the logs of servers


@dataclass(frozen=True, slots=True)
class Matches:
    """BM25 of every node, ``(n,)``, and the share of the query's words in the best, weighted by rarity, 0 to 1."""

    scores: NDArray[np.float32]
    coverage: float = 0.0


class LexicalIndex:
    """BM25 over the words of the nodes, rebuilt in memory when they change.

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009), by bm25s.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._count = len(nodes)
        self._places: dict[str, int] = {}
        corpus = [[self._places.setdefault(word, len(self._places)) for word in tokens(node.words)] for node in nodes]
        self._bm25 = bm25s.BM25() if self._places else None
        self._rows: NDArray[np.intp] = np.arange(len(nodes))
        if self._bm25:
            self._bm25.index((corpus, self._places), create_empty_token=False, show_progress=False)

    def part(self, rows: Sequence[int]) -> LexicalIndex:
        """The index restricted to these rows, in this order; the rarity of words does not change."""
        part = copy.copy(self)
        part._rows = self._rows[np.asarray(rows, np.intp)]
        return part

    def scores(self, query: str) -> Matches:
        """BM25 of every node for the words of a query."""
        words = list(dict.fromkeys(tokens(query)))
        known = [word for word in words if word in self._places]
        if self._bm25 is None or not known or not len(self._rows):
            return Matches(np.zeros(len(self._rows), np.float32))
        scores = np.asarray(self._bm25.get_scores(known), np.float32)[self._rows]
        best = self._rows[scores.argmax()]
        rarity = {word: inverse_frequency(len(self._nodes_with(word)), self._count) for word in words}
        covered = sum(rarity[word] for word in known if best in self._nodes_with(word))
        return Matches(scores, covered / sum(rarity.values()))

    def _nodes_with(self, word: str) -> NDArray[np.int32]:
        """The rows of the nodes that have a word."""
        if self._bm25 is None or (place := self._places.get(word)) is None:
            return np.zeros(0, np.int32)
        start, end = self._bm25.scores["indptr"][place : place + 2]
        return np.asarray(self._bm25.scores["indices"][start:end])


def inverse_frequency(n: int, count: int) -> float:
    """Inverse document frequency of a word in n of N texts: ``log(1 + (N - n + .5) / (n + .5))``."""
    return math.log1p((count - n + 0.5) / (n + 0.5))


def keyword_score(keywords: Iterable[str], text: str) -> int:
    """The score of a text for distinct keywords in its case: the sum of ``count(k, T) * |k|``.

    Source: A-RAG (arXiv 2602.03442), Eq. 1; longer keywords have more weight.
    """
    return sum(text.count(word) * len(word) for word in keywords)
