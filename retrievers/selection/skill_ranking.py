"""Which skills fit a query: those that fit a unit of it about as well as the best tool does."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from callsheet.retrievers.selection.scoring import Rows, Scores
from callsheet.retrievers.selection.select_settings import SelectSettings

NEAR = 0.1
"""Minimum odds of a skill against the best tool."""
OWN = 1.5
"""Score of an agent with one tool, in scores of this tool, if its own node has the same score."""


def fitting_skills(
    scored: Sequence[Scores],
    best_tools: Sequence[float],
    skills: Rows,
    settings: SelectSettings,
    named: Collection[int] = (),
) -> tuple[tuple[int, float], ...]:
    """The skills that fit a unit of the query, best first.

    A skill is scored as if it were the only tool of an agent of its own, and fits if this holds for a unit u::

        s(k, u) = (1 + context * OWN) * s(u, k)
        exp((s(k, u) - max over tools t of s(t, u)) / T) >= NEAR    and    s(u, k) >= threshold

    Args:
        scored: For each unit, the score of every node, ``(n,)``.
        best_tools: For each unit, the best score of a tool, its agent's share included.
        skills: The rows of the skills.
        settings: Their ``context``, ``temperature`` (T) and ``threshold``.
        named: Rows of skills that the query names; they fit in any case, and come first.

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
