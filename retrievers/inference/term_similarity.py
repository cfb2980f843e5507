"""Similarity of names by their words, with more weight for rare words."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from callsheet.retrievers.index.lexical_index import inverse_frequency
from callsheet.retrievers.inference.word_roles import GENERIC

_GENERIC_WEIGHT, _EXTRA = 0.35, 0.4
Floats = NDArray[np.float32]


class Terms:
    """Weights of words: higher for rare words, lower for generic ones.

    ::

        weight(w) = (log(1 + (N - n(w) + .5) / (n(w) + .5)) * (.35 if w is generic else 1)) ** power

    Args:
        documents: The words of each of the N texts.
        power: 1 for names; less for texts, whose common words count too.
    """

    def __init__(self, documents: Sequence[Iterable[str]], power: float = 1.0) -> None:
        self._count, self._power = len(documents), power
        self._frequency = Counter(word for words in documents for word in set(words))

    def weight(self, word: str) -> float:
        """The weight of one word."""
        rarity = inverse_frequency(self._frequency[word], self._count)
        return float((rarity * (_GENERIC_WEIGHT if word in GENERIC else 1.0)) ** self._power)

    def mass(self, words: Iterable[str]) -> float:
        """The sum of the squared weights."""
        return sum(self.weight(word) ** 2 for word in words)


class Postings:
    """Sets of words for comparison with other sets."""

    def __init__(self, sets: Sequence[frozenset[str]], terms: Terms) -> None:
        self._terms = terms
        self._masses = np.array([terms.mass(words) for words in sets], np.float32)
        lengths = np.sqrt(self._masses)
        self._scales: Floats = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        rows: defaultdict[str, list[int]] = defaultdict(list)
        for row, words in enumerate(sets):
            for word in words:
                rows[word].append(row)
        self._rows: Mapping[str, NDArray[np.intp]] = {word: np.array(places, np.intp) for word, places in rows.items()}

    def shared(self, words: Iterable[str]) -> NDArray[np.bool_]:
        """``(n,)``: whether each set has one of these words."""
        found = np.zeros(len(self._masses), bool)
        for word in words:
            found[self._rows.get(word, [])] = True
        return found

    def fit(self, words: frozenset[str]) -> Floats:
        """How well each set matches these words.

        ::

            fit = shared / (shared + missing + .4 * extra), each the sum of squared weights

        Source: Tversky, Features of Similarity (1977), the ratio model with alpha = 1, beta = .4.

        Returns:
            ``(n,)``, 0 to 1.
        """
        shared = self._shared(words)
        whole = shared + (self._terms.mass(words) - shared) + _EXTRA * (self._masses - shared)
        fit: Floats = np.divide(shared, whole, out=np.zeros_like(shared), where=whole > 0)
        return fit

    def cosine(self, words: frozenset[str]) -> Floats:
        """The cosine of the weights of each set and of these words: ``(n,)``, 0 to 1."""
        shared = self._shared(words)
        shared *= self._scales / np.float32(math.sqrt(self._terms.mass(words)) or 1)
        return shared

    def _shared(self, words: frozenset[str]) -> Floats:
        shared = np.zeros(len(self._masses), np.float32)
        for word in words:
            if word in self._rows:
                shared[self._rows[word]] += np.float32(self._terms.weight(word) ** 2)
        return shared
