"""The searches of the literature from which the published methods start, by meaning, by words, or by both."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from callsheet.retrievers.papers.rank_fusion import reciprocal_rank_fusion

Search = Literal["dense", "bm25", "hybrid", "weighted_hybrid"]
FUSED = 100
"""Number of rows of each ranking that are fused."""
ALPHA = 0.8
"""Weight of meaning in ``weighted_hybrid``, as in Graph RAG-Tool Fusion, table 2."""


def first_search(
    search: Search, cosines: NDArray[np.float32], bm25: NDArray[np.float32]
) -> tuple[list[int], NDArray[np.float32]]:
    """Returns the rows that a search finds, best first, and the score of every row.

    Rows with equal scores keep their order.

    ``dense`` finds every row, ``bm25`` those that share a word with the query. ``hybrid`` is plain reciprocal rank
    fusion of the first 100 of both. ``weighted_hybrid`` is the convex combination of Bruch, Gai and Ingber, An Analysis
    of Fusion Functions for Hybrid Retrieval (TOIS 2023)::

        s(e) = alpha * unit(cos(e)) + (1 - alpha) * unit(BM25(e)),    unit(x) = (x - min x) / (max x - min x)

    ``cosines`` and ``bm25`` are those of each text with the query, ``(n,)``; BM25 is 0 without a common word.
    """
    by_meaning = _descending(cosines)
    by_words = [row for row in _descending(bm25) if bm25[row] > 0]
    match search:
        case "dense":
            return by_meaning, cosines
        case "bm25":
            return by_words, bm25
        case "hybrid":
            hits = reciprocal_rank_fusion([[*map(str, by_meaning[:FUSED])], [*map(str, by_words[:FUSED])]])
            by_row = {int(hit.id): hit.score for hit in hits}
            return [*by_row], np.array([by_row.get(row, 0.0) for row in range(len(cosines))], np.float32)
        case "weighted_hybrid":
            scores = (ALPHA * _unit(cosines) + (1 - ALPHA) * _unit(bm25)).astype(np.float32)
            return _descending(scores), scores


def _descending(scores: NDArray[np.float32]) -> list[int]:
    rows: list[int] = np.argsort(-scores, kind="stable").tolist()
    return rows


def _unit(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    low = scores.min(initial=np.inf)
    high = scores.max(initial=-np.inf)
    return (scores - low) / (high - low) if high > low else np.zeros_like(scores)
