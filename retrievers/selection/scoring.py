"""The equations of the ranking, one function for each."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from callsheet.retrievers.index.rows import among_best
from callsheet.retrievers.selection.select_settings import SelectSettings

Scores = NDArray[np.float32]
Rows = NDArray[np.intp]


def node_scores(cosines: Scores, bm25: Scores, *, coverage: float, weight: float) -> Scores:
    """Returns the score of every node for a unit u of the query, ``(n,)``: its cosine plus a share for common words.

    The share for words is smaller if the best match has few of the words of the query.

    ::

        s(t) = cos(u, t) + weight * sqrt(coverage) * BM25(u, t) / max BM25(u, .)
    """
    top = float(bm25.max(initial=0.0))
    if top <= 0:
        return cosines
    return (cosines + np.float32(weight * math.sqrt(coverage) / top) * bm25).astype(np.float32, copy=False)


SHARPNESS = 20.0
"""Sharpness of the smooth maximum of the scores of an agent's tools; the higher, the more the best tool decides."""
OWN_NODE = 0.5
"""Weight of an agent's own node in its score."""


def agent_scores(scores: Scores, owners: Rows, is_agent: NDArray[np.bool_]) -> Scores:
    """Returns the score of each agent: the smooth maximum of its tools' scores, plus a share of its own node's score.

    ::

        s(A) = log(sum over tools t of A of exp(SHARPNESS * s(t))) / SHARPNESS + OWN_NODE * s(node of A)

    Args:
        scores: ``(n,)``, of every node.
        owners: ``(n,)``, the row among the agents of each node's owner.
        is_agent: ``(n,)``; the agents' own nodes in the order of their rows.

    Returns:
        ``(a,)``; for tools, an agent without any gets the lowest score of all nodes.
    """
    itself = scores[is_agent]
    floor = np.float32(scores.min(initial=0.0))
    powers = np.where(is_agent, 0.0, np.exp(SHARPNESS * (scores - floor)))
    sums = np.bincount(owners, powers, len(itself))
    smooth = floor + np.log(np.maximum(sums, 1.0)) / SHARPNESS
    return (smooth + OWN_NODE * itself).astype(np.float32)


def best_rows(scores: Scores, most: int) -> Rows:
    """Returns the rows of the best scores, best first, at most ``most``; equal scores in the order of their rows."""
    rows = among_best(scores, most)
    if len(rows) > most:
        edge = np.partition(scores[rows], -most)[-most]
        above = rows[scores[rows] > edge]
        equal = rows[scores[rows] == edge]
        rows = np.sort(np.concatenate([above, equal[: most - len(above)]]))
    return rows[np.argsort(-scores[rows], kind="stable")][:most]


def outcome_shift(done: int, failed: int, *, temperature: float, least: float = 0.1) -> float:
    """Returns what the outcomes of earlier calls add to a tool's score: nothing, or a small amount below 0.

    ::

        T * log(max(least, (done + 2) / (done + failed + 2)))

    With it, a share is the share without outcomes times the posterior mean of the tool's reliability, whose prior is
    two calls that succeeded. It never exceeds ``T * log(1 / least)``, so it decides only between tools that fit about
    equally well. The score of the tool's agent falls with it.
    """
    return temperature * math.log(max(least, (done + 2) / (done + failed + 2)))


def share(scores: Scores, *, temperature: float, most: int) -> tuple[Rows, Scores]:
    """Returns the probability of each of the best ``most`` candidates, by softmax.

    ::

        p(t) = exp(s(t) / T) / sum over the best of exp(s(.) / T)

    Returns:
        Their rows, best first, and their shares, which sum to 1; equal scores in the order of their rows.
    """
    rows = best_rows(scores, most)
    powers = np.exp((scores[rows] - scores[rows[0]]) / temperature) if len(rows) else scores[rows]
    return rows, (powers / powers.sum()).astype(np.float32) if len(rows) else powers


GENERAL = 0.2
"""Maximum of ``general_weight``: the weight of tools that serve any subject, such as a search of the web."""
FIT_WIDTH = 0.05
"""Range of scores over which the weight of general tools falls."""
LEAST_WEIGHT = 0.002
"""A smaller weight of general tools counts as 0."""


def general_weight(best: float, *, even: float) -> float:
    """Returns the weight of general tools; the better a tool fits its best unit of the request, the smaller it is.

    ::

        weight = .2 / (1 + exp((max over u, t of s(t, u) - even) / .05))

    So they come behind what fits best, not instead of it.
    """
    return GENERAL * _logistic((even - best) / FIT_WIDTH)


def fit_probability(strength: float) -> float:
    """Returns the probability that something in a catalog does what is asked, from the best score of an agent.

    ::

        p = 1 / (1 + exp(-(4.26 s - 2.95)))

    Source: ours; logistic regression on the development half of MCP-Atlas (198 steps, once with the whole catalog and
    once without the agents that serve the step, so with even odds), with the embedded MiniLM.
    """
    return _logistic(4.26 * strength - 2.95)


def tool_probability(score: float, use: float) -> float:
    """Returns the probability that a tool is one of those that do what is asked, from its score and its expected use.

    ::

        p = 1 / (1 + exp(-(3.0 s + .29 log(E / (1 - E)) - 3.3)))

    Source: as for ``fit_probability``, on the ten tools of each selection.
    """
    use = min(max(use, 1e-6), 1 - 1e-6)
    return _logistic(3.0 * score + 0.29 * math.log(use / (1 - use)) - 3.3)


def _logistic(value: float) -> float:
    return 1 / (1 + math.exp(-min(max(value, -700.0), 700.0)))


def expected_use(
    shares: Sequence[tuple[Rows, Scores]],
    weights: Sequence[float],
    closures: Mapping[int, Mapping[int, float]] | None = None,
) -> tuple[dict[int, float], dict[int, int]]:
    """Returns the expected use of each tool: the probability that at least one unit of a query uses it.

    ::

        p(t | u) = sum over candidates c of p(c | u) * W(c -> t)
        E(t)     = 1 - product over units u of max(0, 1 - weight(u) * p(t | u))

    where W(c -> t) is 1 for c itself, and for its dependencies the product of the weights of the edges on the
    strongest path. A unit distributes its weight over its candidates, and a candidate passes its share on to its
    dependencies. A dependency that several units share gains less over the tools that need it than in a sum.

    Args:
        shares: For each unit, the rows of its candidates with their shares.
        weights: The probability that each unit is a step, 0 to 1.
        closures: Row of a candidate -> rows of its dependencies with W.

    Returns:
        E by row, in the order of the first occurrence; and for each row, the candidate that contributes the most.
    """
    unused: dict[int, float] = {}
    largest: dict[int, tuple[float, int]] = {}
    for (rows, parts), weight in zip(shares, weights, strict=True):
        use: dict[int, float] = {}
        for candidate, part in zip(rows.tolist(), parts.tolist(), strict=True):
            needed = closures.get(candidate, {}) if closures else {}
            for row, passed in ((candidate, 1.0), *needed.items()):
                gain = weight * part * passed
                use[row] = use.get(row, 0.0) + gain
                if gain > largest.get(row, (0.0, row))[0]:
                    largest[row] = (gain, candidate)
        for row, probability in use.items():
            unused[row] = unused.get(row, 1.0) * max(0.0, 1.0 - probability)
    return {row: 1.0 - rest for row, rest in unused.items()}, {row: source for row, (_, source) in largest.items()}


SIBLING = 2.0
"""In a shortlist, the expected use of other tools of the best tool's agent is multiplied by this factor."""
FOUND = 0.0005
"""Minimum expected use, relative to the best tool, at which the search has found a tool."""
BEHIND_FOUND = 0.999
"""Maximum expected use of a tool that the search has not found, relative to the least of those that it has found."""
Uses = tuple[dict[int, float], dict[int, int]]
"""The result of ``expected_use``: by row, the expected use of a tool, and the candidate that contributes most to it."""


def siblings_raised(found: Uses, owners: Rows) -> Uses:
    """Raises the expected use of the other tools of the best tool's agent, for a shortlist.

    An agent rarely serves a request with one tool.

    ::

        E'(t) = min(E(best), SIBLING * E(t))  if t is another tool of the best tool's agent, otherwise E(t)
    """
    use, source = found
    best = max(use, key=lambda row: use[row])
    raised = {row: min(use[best], SIBLING * value) for row, value in use.items() if owners[row] == owners[best]}
    return use | raised, source


def found_first(uses: Uses, found: Uses, floor: float = 0.0) -> tuple[dict[int, float], dict[int, int], set[int]]:
    """Ranks tools that the search finds before tools that are only inferred dependencies of others.

    ``found`` ignores inferred dependencies, ``uses`` counts them. The search has found a tool if its use in ``found``
    is at least ``FOUND`` (or ``floor``) times the best; such a tool keeps that use. All others follow in the order of
    ``uses``, with uses below the least of the first.

    Returns:
        The uses and the sources by row, in this order for equal uses, and the rows that come first.
    """
    use, source = found
    bound = max(FOUND, floor) * max(use.values())
    first = {row: value for row, value in use.items() if value >= bound}
    most = BEHIND_FOUND * min(first.values())
    rest = sorted((row for row in uses[0] if row not in first), key=lambda row: -uses[0][row])
    behind = {row: min(uses[0][row], most) for row in rest}
    return first | behind, uses[1] | {row: source[row] for row in first}, set(first)


def ranks_of(scores: Scores, rows: Rows) -> list[int]:
    """Returns the ranks of these rows, from 1; equal scores share the better rank."""
    return [int(np.count_nonzero(scores > value)) + 1 for value in scores[rows]]


NEAR = 0.1
"""A skill fits if its odds are at least this share of the odds of the best tool."""
OWN = 1.5
"""Ratio of an agent's score to that of its only tool, if the agent's own node has the same score as the tool."""


def fitting_skills(
    scored: Sequence[Scores],
    best_tools: Sequence[float],
    skills: Rows,
    settings: SelectSettings,
    named: Collection[int] = (),
) -> tuple[tuple[int, float], ...]:
    """Returns the skills that fit a unit of the query, best first.

    A skill k is scored as if it were the only tool of an agent of its own. It fits if this holds for a unit u, where
    own(k, u) is the score of its node in ``scored``, and best(u) is in ``best_tools``::

        s(k, u) = (1 + context * OWN) * own(k, u)
        exp((s(k, u) - best(u)) / T) >= NEAR    and    own(k, u) >= threshold

    Args:
        scored: For each unit, the score of every node, ``(n,)``.
        best_tools: For each unit, the best score of a tool, its agent's share included.
        skills: The rows of the skills.
        settings: Their ``context``, ``temperature`` (T) and ``threshold``.
        named: Rows of skills that the query names; they always fit and come first.

    Returns:
        Rows with their scores for the best unit.
    """
    own = np.stack([scores[skills] for scores in scored])
    whole = (1 + settings.context * OWN) * own
    best = np.asarray(best_tools, np.float32)[:, None]
    fits = ((whole - best) / settings.temperature >= math.log(NEAR)) & (own >= settings.threshold)
    score = np.where(fits, whole, -np.inf).max(axis=0)
    score = np.where(np.isin(skills, list(named)), whole.max(axis=0), score)
    order = sorted(np.flatnonzero(np.isfinite(score)), key=lambda i: (skills[i] not in named, -score[i]))
    return tuple((int(skills[i]), float(score[i])) for i in order)
