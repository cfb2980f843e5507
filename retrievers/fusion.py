"""Joining rankings: reciprocal rank fusion, plain and weighted by type, and the blend of scores."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from callsheet.retrievers.index import Hit

RRF_K = 60


def weighted_rrf(merged: Sequence[str], weight: Callable[[str], float], *, k: int = RRF_K) -> list[Hit]:
    """Type-specific weighted reciprocal rank fusion over one merged list of agents and tools.

    Source: Agent-as-a-Graph, section 3.2, Eq. 3::

        s(e) = alpha_type(e) / (k + r(e))

    where r(e), counted from 1, is the rank of node e in the merged list, not within its type.

    Args:
        merged: Ids of agents and tools, by similarity, best first.
        weight: alpha of a node: that of its type.
        k: Damps the difference between high ranks.

    Returns:
        The nodes with their scores, best first; nodes of equal score keep their order.
    """
    scored = [Hit(node, weight(node) / (k + rank)) for rank, node in enumerate(merged, 1)]
    return sorted(scored, key=lambda hit: -hit.score)


def reciprocal_rank_fusion(rankings: Iterable[Sequence[str]], *, k: int = RRF_K) -> list[Hit]:
    """Several rankings of the same nodes as one.

    Source: Cormack, Clarke and Buettcher, Reciprocal Rank Fusion (SIGIR 2009)::

        s(e) = sum over rankings of 1 / (k + r(e))

    Returns:
        The nodes with their scores, best first; nodes of equal score in the order of their first appearance.
    """
    scores: dict[str, float] = defaultdict(float)
    for ranking in rankings:
        for rank, node in enumerate(ranking, 1):
            scores[node] += 1 / (k + rank)
    return sorted((Hit(node, score) for node, score in scores.items()), key=lambda hit: -hit.score)


def blend(dense: Sequence[Hit], lexical: Sequence[Hit], *, weight: float, coverage: float) -> list[Hit]:
    """Cosine plus what the words add.

    ::

        s(t) = cos(q, t) + weight * sqrt(coverage) * BM25(q, t) / max BM25(q, .)

    Args:
        dense: Nodes by cosine, best first.
        lexical: Nodes by BM25, best first; one that is not in ``dense`` counts with its lowest cosine.
        weight: What a perfect word match is worth, in cosine.
        coverage: Share of the query's words that the best match by words holds, 0 to 1; it keeps the
            noise down where hardly a word fits.

    Returns:
        The nodes of both, best first; nodes of equal score in dense order.
    """
    floor = dense[-1].score if dense else 0.0
    scores = {hit.id: hit.score for hit in dense}
    top = lexical[0].score if lexical else 1.0
    for hit in lexical:
        scores[hit.id] = scores.get(hit.id, floor) + weight * math.sqrt(coverage) * hit.score / top
    return sorted((Hit(node, score) for node, score in scores.items()), key=lambda hit: -hit.score)


def log_sum_exp(scores: Sequence[float], *, sharpness: float) -> float:
    """A smooth maximum: ``log(sum(exp(sharpness * s))) / sharpness``; minus infinity of nothing."""
    if not scores:
        return -math.inf
    top = max(scores)
    return top + math.log(sum(math.exp(sharpness * (score - top)) for score in scores)) / sharpness
