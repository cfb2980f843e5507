"""The learned model of dependencies: how likely one tool's result is an input of another."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
NEED = ("required", "default", "closed", "number", "nested", "rare", "shared", "says_id")
"""Features of an input alone."""
PAIR = (
    "field", "name", "bare_name", "in_name", "same_name", "text", "field_text", "listed", "alike", "same_agent",
    "elsewhere", "echo", "echo_listed", "inputs", "foreign", "other_type", "named",
)  # fmt: skip
"""Features of an input and a tool that may be its source."""
PLACE = ("score", "rank", "gap", "rivals")
"""Features of a candidate in comparison with the other candidates of the same input."""
WEIGHTS = Path(__file__).with_name("edge_weights.json")
_RANKS = 6
_TOLD = 2


@dataclass(frozen=True)
class EdgeModel:
    """Two logistic regressions: of a pair by itself, and of its place among the candidates of the same input.

    ::

        score = bias + weights . features + sum of the weights of its words
        p     = 1 / (1 + exp(-(place . (score, rank, gap, rivals) + place_bias)))

    where the words are those of the input's name (``n:date``) and of the other tool's (``t:search``), the rank counts
    from 0 to 6, the gap is that to the best score, and rivals is log(1 + the candidates within 1 of the best).

    Attributes:
        weights: The weights of ``NEED`` and ``PAIR``.
        words: The weights of words that are in several training sets.
        catalogs: Number of APIs that ``counts`` come from.
        counts: Word -> number of APIs that have it in the name of a field; rare words are left out.
    """

    weights: Mapping[str, float]
    words: Mapping[str, float]
    bias: float
    place: Mapping[str, float]
    place_bias: float
    catalogs: int
    counts: Mapping[str, int]

    def rarity(self, word: str) -> float:
        """Returns 0 for a word that every API uses in names of fields, up to 1 for a word that none uses."""
        return self._rarities.get(word, 1.0)

    @cached_property
    def _rarities(self) -> Mapping[str, float]:
        return {word: 1 - math.log1p(count) / math.log1p(self.catalogs) for word, count in self.counts.items()}

    @cached_property
    def of_need(self) -> Floats:
        """Returns the weights of the features of an input, ``(len(NEED),)``."""
        return np.array([self.weights[name] for name in NEED])

    @cached_property
    def of_pair(self) -> Floats:
        """Returns the weights of the features of a pair, ``(len(PAIR),)``."""
        return np.array([self.weights[name] for name in PAIR])

    def words_of(self, role: str, words: Sequence[str]) -> float:
        """Returns the sum of the weights of different words in a role, ``n`` or ``t``."""
        return sum(self.words.get(f"{role}:{word}", 0.0) for word in {*words})

    @cached_property
    def _most(self) -> float:
        """The most that the features and the words of a candidate add to a score."""
        told = sorted((weight for word, weight in self.words.items() if word.startswith("t:")), reverse=True)
        return float(np.maximum(self.of_pair, 0).sum() + sum(weight for weight in told[:_TOLD] if weight > 0))

    def bound(self, need: Floats, words: float, *, named: bool) -> float:
        """Returns the highest confidence that any candidate for an input with these features can have."""
        most = self.bias + float(need @ self.of_need) + words + self._most
        most -= 0.0 if named else max(0.0, self.weights["named"])
        alone = self.place["score"] * most + self.place["rivals"] * math.log1p(1) + self.place_bias
        return 1 / (1 + math.exp(-alone))

    def confidences(self, scores: Floats) -> Floats:
        """Returns the probability of each candidate of one input, ``(n,)``, from their scores."""
        place = np.array([self.place[name] for name in PLACE])
        found: Floats = 1 / (1 + np.exp(-(places(scores) @ place + self.place_bias)))
        return found


def places(scores: Floats) -> Floats:
    """Returns the features ``PLACE`` of the candidates of one input, ``(n, len(PLACE))``, from their scores."""
    rank = np.empty(len(scores))
    rank[np.argsort(-scores, kind="stable")] = np.arange(len(scores))
    best = scores.max(initial=-np.inf)
    rivals = np.full(len(scores), np.log1p((scores > best - 1).sum()))
    return np.stack([scores, np.minimum(rank, _RANKS), scores - best, rivals], axis=1)


@lru_cache(maxsize=1)
def edge_model() -> EdgeModel:
    """Returns the trained model of this package; ``benchmarks/measurements/dependencies.py`` trains it."""
    return EdgeModel(**json.loads(WEIGHTS.read_bytes()))
