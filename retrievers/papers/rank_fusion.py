"""Reciprocal rank fusion, plain and weighted by type."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

RRF_K = 60


@dataclass(frozen=True, slots=True)
class RankedNode:
    """A node in a ranking, with its score there; higher is better."""

    id: str
    score: float


@dataclass(frozen=True, slots=True)
class RankContribution:
    """One term ``weight / (k + rank)`` of an agent's score.

    Attributes:
        node: The agent or the tool that brought the agent.
        rank: r, the rank of the node, from 1.
        weight: alpha of its type.
    """

    node: str
    rank: int
    weight: float
    k: int

    def __str__(self) -> str:
        """Returns the arithmetic for people, as ``1.5 / (60 + 4) by weather``."""
        return f"{self.weight:g} / ({self.k} + {self.rank}) by {self.node}"


@dataclass(frozen=True, slots=True)
class RankedAgent(RankedNode):
    """An agent in a ranking, with the terms of its score."""

    contributions: tuple[RankContribution, ...] = ()


def weighted_rrf(merged: Sequence[str], weight: Callable[[str], float], *, k: int = RRF_K) -> list[RankedNode]:
    """Ranks one merged list of agents and tools by reciprocal rank fusion with a weight for each type.

    Source: Agent-as-a-Graph, section 3.2, Eq. 3::

        s(e) = alpha_type(e) / (k + r(e))

    where r(e), counted from 1, is the rank of node e in the merged list, not within its type; ``weight`` gives alpha.
    Nodes of equal score keep their order.
    """
    scored = [RankedNode(node, weight(node) / (k + rank)) for rank, node in enumerate(merged, 1)]
    return sorted(scored, key=lambda hit: -hit.score)


def reciprocal_rank_fusion(
    rankings: Sequence[Sequence[str]], *, weights: Sequence[float] | None = None, k: int = RRF_K
) -> list[RankedNode]:
    """Merges several rankings of the same nodes into one.

    Source: Cormack, Clarke and Buettcher, Reciprocal Rank Fusion (SIGIR 2009); with weights, the standard weighted
    fusion of Agent-as-a-Graph, section 3.2, Eq. 2::

        s(e) = sum over rankings m of weight_m / (k + r_m(e))

    Nodes of equal score come in the order of their first appearance.
    """
    scores: dict[str, float] = defaultdict(float)
    for weight, ranking in zip(weights or [1.0] * len(rankings), rankings, strict=True):
        for rank, node in enumerate(ranking, 1):
            scores[node] += weight / (k + rank)
    return sorted((RankedNode(node, score) for node, score in scores.items()), key=lambda hit: -hit.score)
