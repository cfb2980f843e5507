"""The arithmetic of the ranking, on arrays: one small function an equation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]
Rows = NDArray[np.intp]


def node_scores(cosines: Scores, bm25: Scores, *, coverage: float, weight: float) -> Scores:
    """Cosine plus what the words add.

    ::

        s(t) = cos(u, t) + weight * sqrt(coverage) * BM25(u, t) / max BM25(u, .)

    Args:
        cosines: ``(n,)``, of every node to the unit u.
        bm25: ``(n,)``, of every node for the words of u.
        coverage: Share of u's words that the best match by words holds, 0 to 1; it keeps the noise down where hardly
            a word fits.
        weight: What a perfect word match is worth, in cosine.
    """
    top = float(bm25.max(initial=0.0))
    if top <= 0:
        return cosines
    return (cosines + np.float32(weight * math.sqrt(coverage) / top) * bm25).astype(np.float32, copy=False)


def agent_scores(
    scores: Scores, owners: Rows, is_agent: NDArray[np.bool_], *, sharpness: float = 20.0, own: float = 0.5
) -> Scores:
    """An agent by the smooth maximum of its tools' scores, and its own node's.

    ::

        s(A) = log(sum over tools t of A of exp(sharpness * s(t))) / sharpness + own * s(node of A)

    Args:
        scores: ``(n,)``, of every node.
        owners: ``(n,)``, the row among the agents of each node's owner.
        is_agent: ``(n,)``; the agents' own nodes in the order of their rows.
        sharpness: The higher, the more the best tool alone decides.
        own: Weight of the agent's own node.

    Returns:
        ``(a,)``; an agent without tools counts with the lowest score of all.
    """
    itself = scores[is_agent]
    floor = np.float32(scores.min(initial=0.0))
    powers = np.where(is_agent, 0.0, np.exp(sharpness * (scores - floor)))
    sums = np.bincount(owners, powers, len(itself))
    smooth = floor + np.log(np.maximum(sums, 1.0)) / sharpness
    return (smooth + own * itself).astype(np.float32)


def best_rows(scores: Scores, most: int) -> Rows:
    """The rows of the best scores, best first, at most ``most``; equal scores in the order of their rows."""
    if len(scores) > most:
        edge = np.partition(scores, -most)[-most]
        rows = np.flatnonzero(scores >= edge)
    else:
        rows = np.arange(len(scores))
    return rows[np.argsort(-scores[rows], kind="stable")][:most]


def share(scores: Scores, *, temperature: float, most: int) -> tuple[Rows, Scores]:
    """How likely each of the best is the one that is meant: a softmax over the best ``most``.

    ::

        p(t) = exp(s(t) / T) / sum over the best of exp(s(.) / T)

    Returns:
        Their rows, best first, and their shares, which sum to 1; equal scores in the order of their rows.
    """
    rows = best_rows(scores, most)
    powers = np.exp((scores[rows] - scores[rows[0]]) / temperature) if len(rows) else scores[rows]
    return rows, (powers / powers.sum()).astype(np.float32) if len(rows) else powers


def expected_use(
    shares: Sequence[tuple[Rows, Scores]],
    weights: Sequence[float],
    closures: Mapping[int, Mapping[int, float]] | None = None,
) -> tuple[dict[int, float], dict[int, int]]:
    """How often each tool is expected to be needed, over all that a query asks for.

    ::

        E(t) = sum over units u of weight(u) * sum over candidates c of p(c | u) * W(c -> t)

    where W(c -> t) is 1 for c itself, and for what it depends on the product of the weights of the edges on the
    strongest path. Clauses and dependencies are one sum: a unit spreads its weight over its candidates, a candidate
    passes its share on to what it needs.

    Args:
        shares: For each unit, the rows of its candidates with their shares.
        weights: For each unit, how much it counts.
        closures: Row of a candidate -> rows that it needs with W, itself left out; candidates without any may be
            missing.

    Returns:
        E by row, in the order in which rows were first met; and the candidate that gives each row the most.
    """
    use: dict[int, float] = {}
    largest: dict[int, tuple[float, int]] = {}
    for (rows, parts), weight in zip(shares, weights, strict=True):
        for candidate, part in zip(rows.tolist(), parts.tolist(), strict=True):
            needed = closures.get(candidate, {}) if closures else {}
            for row, passed in ((candidate, 1.0), *needed.items()):
                gain = weight * part * passed
                use[row] = use.get(row, 0.0) + gain
                if gain > largest.get(row, (0.0, row))[0]:
                    largest[row] = (gain, candidate)
    return use, {row: candidate for row, (_, candidate) in largest.items()}
