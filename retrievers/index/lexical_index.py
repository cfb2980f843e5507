"""Finding nodes by their words: BM25."""

from __future__ import annotations

import copy
import logging
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import bm25s
import numpy as np
import Stemmer
from numpy.typing import NDArray

from callsheet.retrievers.index.node_texts import fold
from callsheet.retrievers.index.protocols import Node

logging.getLogger("bm25s").setLevel(logging.WARNING)  # it sets DEBUG, which lands in the log of every server

_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+)")
STOP_WORDS = frozenset(
    """
    a an and any are as at be by can do for from get give has have how i if in into is it its me my of on or
    our please show so that the their them then there these this to tool use used using want was we what when
    where which who will with would you your
    """.split()
)


@dataclass(frozen=True, slots=True)
class Matches:
    """What a search by words found.

    Attributes:
        scores: ``(n,)``, BM25 of every node; 0 where it shares no word with the query.
        coverage: Share of the query's words that the best of them holds, each weighed by its rarity, 0 to 1.
    """

    scores: NDArray[np.float32]
    coverage: float = 0.0


class LexicalIndex:
    """BM25 over the words of the nodes, rebuilt in memory whenever they change.

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009), by bm25s.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._count = len(nodes)
        corpus = [tokens(node.words) for node in nodes]
        self._words = [frozenset(words) for words in corpus]
        self._frequency = Counter(word for words in self._words for word in words)
        self._bm25 = bm25s.BM25() if any(corpus) else None
        self._rows: NDArray[np.intp] = np.arange(len(nodes))
        if self._bm25:
            self._bm25.index(corpus, show_progress=False)

    def part(self, rows: Sequence[int]) -> LexicalIndex:
        """Only these of its nodes, in this order; how rare a word is stays as it is in the whole."""
        part = copy.copy(self)
        part._rows = self._rows[np.asarray(rows, np.intp)]
        return part

    def scores(self, query: str) -> Matches:
        """BM25 of every node for the words of a query."""
        asked = list(dict.fromkeys(tokens(query)))
        known = [word for word in asked if word in self._frequency]
        if self._bm25 is None or not known or not len(self._rows):
            return Matches(np.zeros(len(self._rows), np.float32))
        scores = np.asarray(self._bm25.get_scores(known), np.float32)[self._rows]
        best = self._words[int(self._rows[scores.argmax()])]
        held = sum(self._rarity(word) for word in known if word in best)
        return Matches(scores, held / sum(self._rarity(word) for word in asked))

    def _rarity(self, word: str) -> float:
        """Inverse document frequency, ``log(1 + (N - n + .5) / (n + .5))``."""
        n = self._frequency[word]
        return math.log1p((self._count - n + 0.5) / (n + 0.5))


def tokens(text: str) -> list[str]:
    """The words of a text: folded, stemmed, without stop words; Chinese, Japanese and Korean in pairs of characters."""
    found: list[str] = []
    for word in _WORD.findall(fold(text)):
        for part in _CJK.split(word):
            if _CJK.fullmatch(part):
                found.extend(part[i : i + 2] for i in range(max(1, len(part) - 1)))
            elif part and part not in STOP_WORDS:
                found.append(_stem(part))
    return found


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    stem: str = Stemmer.Stemmer("english").stemWord(word)
    return stem


def keyword_score(keywords: Iterable[str], text: str) -> int:
    """How much a text is about keywords, by exact match.

    ::

        s(T) = sum over keywords k of count(k, T) * |k|

    Source: A-RAG (arXiv 2602.03442), Eq. 1; a longer keyword says more.

    Args:
        keywords: Each counted once, in the text's own case.
        text: The text.
    """
    return sum(text.count(word) * len(word) for word in keywords)
