"""Finding nodes by their words: BM25."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

import bm25s
import numpy as np
import Stemmer

from callsheet.retrievers.index import Hit, Node
from callsheet.retrievers.texts import fold

_WORD = re.compile(r"[^\W_]+")
_CJK = re.compile(r"([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+)")
STOP_WORDS = frozenset(
    "a an and any are as at be by can do for from get give has have how i if in into is it its me my of on or our "
    "please show so that the their them then there these this to tool use used using want was we what when where "
    "which who will with would you your".split()
)


class LexicalIndex:
    """BM25 over the words of the nodes, rebuilt in memory whenever they change.

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009), by bm25s.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._ids = [node.id for node in nodes]
        corpus = [tokens(node.words) for node in nodes]
        self._bm25 = bm25s.BM25() if any(corpus) else None
        if self._bm25:
            self._bm25.index(corpus, show_progress=False)

    def search(self, query: str, k: int) -> Sequence[Hit]:
        """The nodes that share words with the query, best first, at most ``k``; scores are BM25's own."""
        words = [w for w in dict.fromkeys(tokens(query)) if self._bm25 and w in self._bm25.vocab_dict]
        if self._bm25 is None or not words or k <= 0:
            return []
        scores = np.asarray(self._bm25.get_scores(words), np.float32)
        best = np.argsort(-scores, kind="stable")[:k]
        return [Hit(self._ids[i], float(scores[i])) for i in best if scores[i] > 0]


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
