"""Intervals, paired differences and folds, all by group: related queries stay together."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

SEED = 20_260_101
DRAWS = 2_000
FOLDS = 5
Chosen = TypeVar("Chosen")
Values = Sequence[float] | np.ndarray


class Interval(NamedTuple):
    """A mean over queries with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


def cell(value: Interval | Mapping[str, float], form: str = ".3f") -> str:
    """``.812 [.770, .850]``."""
    mean, low, high = (short(one, form) for one in (value if isinstance(value, Interval) else Interval(**value)))
    return f"{mean} [{low}, {high}]"


def short(value: float, form: str = ".3f") -> str:
    """``.812`` for 0.812."""
    return format(value, form).replace("0.", ".", 1) if abs(value) < 1 else format(value, form)


class Bootstrap:
    """Resamples the groups of queries with replacement, the same draws for every method: differences are paired.

    Source: Efron and Tibshirani, *An Introduction to the Bootstrap* (1993), the percentile interval; whole
    groups are drawn because the queries of one task are not independent.
    """

    def __init__(self, groups: Sequence[str]) -> None:
        names = {name: row for row, name in enumerate(dict.fromkeys(groups))}
        self._rows = np.array([names[group] for group in groups])
        self._sizes = np.bincount(self._rows, minlength=len(names)).astype(float)
        even = np.full(len(names), 1 / len(names))
        self._weights = np.random.default_rng(SEED).multinomial(len(names), even, size=DRAWS).astype(float)

    def mean(self, values: Values) -> Interval:
        """The mean of one value a query, and its interval."""
        return _interval(float(np.mean(values)), (self._weights @ self._sums(values)) / (self._weights @ self._sizes))

    def ratio(self, above: Values, below: Values) -> Interval:
        """The sum of some values, one a query, by that of others, as precision is; 0 where there is nothing."""
        over, under = self._sums(above), self._sums(below)
        drawn = self._weights @ over / np.maximum(self._weights @ under, 1.0)
        return _interval(float(over.sum() / max(under.sum(), 1.0)), drawn)

    def auroc(self, above: Values, below: Values) -> Interval:
        """How often a value of the first, one a query, is above one of the second, over all pairs, ties half.

        Source: the Wilcoxon-Mann-Whitney statistic; Hanley and McNeil, *Radiology* 143 (1982).
        """
        a, b = np.asarray(above, float)[:, None], np.asarray(below, float)[None, :]
        member = np.eye(len(self._sizes))[self._rows]
        wins = member.T @ ((a > b) + 0.5 * (a == b)) @ member
        drawn = np.einsum("dg,dg->d", self._weights @ wins, self._weights) / (self._weights @ self._sizes) ** 2
        return _interval(float(wins.sum() / len(self._rows) ** 2), drawn)

    def difference(self, ours: Values, theirs: Values) -> Interval:
        """The mean of ours minus theirs, query by query; an interval that holds 0 is no difference."""
        return self.mean(np.subtract(ours, theirs))

    def _sums(self, values: Values) -> np.ndarray:
        return np.bincount(self._rows, weights=np.asarray(values, float), minlength=len(self._sizes))


def _interval(value: float, drawn: np.ndarray) -> Interval:
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Interval(value, float(low), float(high))


def folds(groups: Sequence[str]) -> list[list[int]]:
    """The places of all queries in five parts of about equal numbers of groups (fewer if there are), none in two."""
    names = sorted(set(groups))
    random.Random(SEED).shuffle(names)
    count = min(FOLDS, len(names))
    part = {name: place % count for place, name in enumerate(names)}
    return [[i for i, group in enumerate(groups) if part[group] == fold] for fold in range(count)]


def cross_validated(groups: Sequence[str], fit: Callable[[Sequence[int]], Chosen]) -> tuple[list[Chosen], list[Chosen]]:
    """What is chosen for each query without seeing its fold, and the choice of each fold.

    ``fit`` chooses from the places of the queries to learn from.
    """
    of_query, choices = dict[int, Chosen](), list[Chosen]()
    for held_out in folds(groups):
        rest = sorted(set(range(len(groups))).difference(held_out))
        choices.append(fit(rest or held_out))
        of_query |= dict.fromkeys(held_out, choices[-1])
    return [of_query[place] for place in range(len(groups))], choices
