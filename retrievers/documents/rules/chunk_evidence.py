"""The evidence for each chunk, by words and by meaning, that the rules use."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from callsheet.retrievers.documents.indexing.document_index import DocumentIndex
from callsheet.retrievers.documents.indexing.keyword_index import rarity
from callsheet.retrievers.documents.rules.phrases import plain

Scores = NDArray[np.floating[Any]]
_COUNTED = 2


@dataclass(frozen=True, slots=True)
class Words:
    """The occurrences of keywords.

    Attributes:
        keys: The keywords, plain.
        rarity: ``(keys,)``, 1 for a keyword in one chunk, near 0 for one in nearly all chunks, 0 for one in none.
        held: ``(chunks, keys)``, number of occurrences in each chunk, up to 2, divided by 2.
        title: ``(chunks, keys)``, the share of the keyword in the chunk's title.
    """

    keys: tuple[str, ...]
    rarity: Scores
    held: Scores
    title: Scores

    def coverage(self, keys: Collection[str]) -> Scores:
        """``(chunks,)``, a chunk's share of these keywords, each weighted by its rarity, 0 to 1."""
        weights = np.where([key in keys for key in self.keys], self.rarity, 0.0)
        share: Scores = ((self.held > 0) @ weights / max(float(weights.sum()), 1e-9)).astype(np.float32)
        return share

    def titled(self, keys: Collection[str]) -> Scores:
        """``(chunks,)``, the share of the rarest of these keywords in a title, 0 to 1."""
        weights = np.where([key in keys for key in self.keys], self.rarity, 0.0)
        return _largest(self.title * weights)

    def linked(self, keys: Collection[str], *, title: float, mention: float, power: float) -> Scores:
        """``(chunks,)``, how far a chunk concerns the rarest of these keywords, by its title and its text."""
        weights = np.where([key in keys for key in self.keys], self.rarity**power, 0.0)
        return _largest((title * self.title + mention * self.held) * weights)


def words_of(index: DocumentIndex, keywords: Sequence[str]) -> Words:
    """The occurrences of these keywords in the chunks of ``index.lexicon.ids``."""
    keys = tuple(dict.fromkeys(filter(None, map(plain, keywords))))
    chunks = len(index.lexicon.ids)
    counts: Scores = np.zeros((chunks, len(keys)), np.float32)
    title: Scores = np.zeros((chunks, len(keys)), np.float32)
    occurrences = index.lexicon.occurrences(keys)
    for column, key in enumerate(keys):
        places = occurrences[key]
        counts[places.rows, column] = np.minimum(places.counts, _COUNTED) / _COUNTED
        title[places.rows, column] = places.titles
    rarities = [rarity(len(occurrences[key].rows), chunks) for key in keys]
    return Words(keys, np.array(rarities, np.float32), counts, title)


def meaning_of(index: DocumentIndex, query: str, ids: Sequence[str]) -> tuple[Scores, Scores]:
    """``(chunks,)`` twice: the cosine of each chunk's best sentence with a query, and the mean over its sentences."""
    similar = index.similar(query)
    place = {chunk: i for i, chunk in enumerate(similar.chunks)}
    best, mean = np.zeros(len(ids), np.float32), np.zeros(len(ids), np.float32)
    if not similar.chunks:
        return best, mean
    means = np.add.reduceat(similar.sentences, similar.starts[:-1]) / np.diff(similar.starts)
    for row, chunk in enumerate(ids):
        if (i := place.get(chunk)) is not None:
            best[row], mean[row] = similar.scores[i], means[i]
    return best, mean


def _largest(values: Scores) -> Scores:
    """The largest value of each row; 0 for rows without any."""
    if not values.shape[1]:
        return np.zeros(len(values), np.float32)
    largest: Scores = values.max(axis=1).astype(np.float32)
    return largest
