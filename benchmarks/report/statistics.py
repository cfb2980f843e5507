"""Intervals, paired differences and folds, all by group: related queries stay together."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

SEED = 20_260_101
DRAWS = 2_000
FOLDS = 5
Chosen = TypeVar("Chosen")


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over queries with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


class Bootstrap:
    """Resamples groups with replacement, the same draws for every method, so differences are paired.

    Source: Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), the percentile interval; whole
    groups are drawn because the queries of one task are not independent.

    Args:
        groups: The group of each query.
        draws: How many resamples.
        seed: Of the draws.
    """

    def __init__(self, groups: Sequence[str], *, draws: int = DRAWS, seed: int = SEED) -> None:
        names = {name: row for row, name in enumerate(dict.fromkeys(groups))}
        self._rows = np.array([names[group] for group in groups])
        self._sizes = np.bincount(self._rows, minlength=len(names)).astype(float)
        even = np.full(len(names), 1 / len(names))
        self._weights = np.random.default_rng(seed).multinomial(len(names), even, size=draws).astype(float)

    def mean(self, values: Sequence[float]) -> Interval:
        """The mean of one value a query, and its interval."""
        sums = np.bincount(self._rows, weights=np.asarray(values, float), minlength=len(self._sizes))
        means = (self._weights @ sums) / (self._weights @ self._sizes)
        low, high = np.percentile(means, [2.5, 97.5])
        return Interval(float(np.mean(values)), float(low), float(high))

    def ratio(self, above: Sequence[float], below: Sequence[float]) -> Interval:
        """The sum of some values by the sum of others, as precision is, and its interval; 0 where there is nothing.

        Args:
            above: One value a query.
            below: The same, of the same queries.
        """
        sums = [
            np.bincount(self._rows, weights=np.asarray(v, float), minlength=len(self._sizes)) for v in (above, below)
        ]
        drawn = self._weights @ sums[0] / np.maximum(self._weights @ sums[1], 1.0)
        low, high = np.percentile(drawn, [2.5, 97.5])
        return Interval(float(sums[0].sum() / max(sums[1].sum(), 1.0)), float(low), float(high))

    def auroc(self, above: Sequence[float], below: Sequence[float]) -> Interval:
        """How often a value of the first is above one of the second, over all pairs, ties half.

        Source: the Wilcoxon-Mann-Whitney statistic; Hanley and McNeil, *Radiology* 143 (1982).

        Args:
            above: One value a query.
            below: The same, of the same queries.
        """
        a, b = np.asarray(above, float)[:, None], np.asarray(below, float)[None, :]
        member = np.eye(len(self._sizes))[self._rows]
        wins = member.T @ ((a > b) + 0.5 * (a == b)) @ member
        drawn = np.einsum("dg,dg->d", self._weights @ wins, self._weights) / (self._weights @ self._sizes) ** 2
        low, high = np.percentile(drawn, [2.5, 97.5])
        return Interval(float(wins.sum() / len(self._rows) ** 2), float(low), float(high))

    def difference(self, ours: Sequence[float], theirs: Sequence[float]) -> Interval:
        """The mean of ours minus theirs, query by query; an interval that holds 0 is no difference."""
        return self.mean(np.subtract(ours, theirs).tolist())


def folds(groups: Sequence[str], *, count: int = FOLDS, seed: int = SEED) -> list[list[int]]:
    """The places of all queries in so many parts of about equal numbers of groups, no group in two.

    Args:
        groups: The group of each query.
        count: How many parts; fewer where there are fewer groups.
        seed: Of the dealing.
    """
    names = sorted(set(groups))
    random.Random(seed).shuffle(names)
    part = {name: place % min(count, len(names)) for place, name in enumerate(names)}
    return [[i for i, group in enumerate(groups) if part[group] == fold] for fold in range(min(count, len(names)))]


def cross_validated(
    groups: Sequence[str], fit: Callable[[Sequence[int]], Chosen], score: Callable[[Chosen, int], float]
) -> tuple[list[float], list[Chosen]]:
    """One value a query, each under what was chosen without seeing its fold.

    Args:
        groups: The group of each query.
        fit: From the places of the queries to learn from, to a choice.
        score: From a choice and the place of a query, to that query's value.

    Returns:
        The values in the order of the queries, and the choice of each fold.
    """
    values = [0.0] * len(groups)
    choices: list[Chosen] = []
    for held_out in folds(groups):
        hidden = set(held_out)
        rest = [place for place in range(len(groups)) if place not in hidden]
        choices.append(fit(rest or held_out))
        for place in held_out:
            values[place] = score(choices[-1], place)
    return values, choices
