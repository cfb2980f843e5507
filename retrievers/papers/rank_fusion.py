"""Reciprocal rank fusion, plain and weighted by type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

RRF_K = 60


@dataclass(frozen=True, slots=True)
class Hit:
    """A node in a ranking, with its score there; higher is better."""

    id: str
    score: float


def weighted_rrf(merged: Sequence[str], weight: Callable[[str], float], *, k: int = RRF_K) -> list[Hit]:
    """Type-specific weighted reciprocal rank fusion over one merged list of agents and tools.

    Source: Agent-as-a-Graph, section 3.2, Eq. 3::

        s(e) = alpha_type(e) / (k + r(e))

    where r(e), counted from 1, is the rank of node e in the merged list, not within its type.

    Args:
        merged: Ids of agents and tools, by similarity, best first.
        weight: alpha of a node: that of its type.
        k: Reduces the difference between high ranks.

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
