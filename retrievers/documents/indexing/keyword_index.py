"""The occurrences of keywords in all chunks, with a cache."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from callsheet.retrievers.documents.indexing.chunk_store import TextStore
from callsheet.retrievers.documents.phrases import first_line, plain
from callsheet.retrievers.index.lexical_index import inverse_frequency

HELD = 16_000_000
"""Maximum number of characters of a folder's texts that stay in memory."""
_MOST_KEYS = 4_096


@dataclass(frozen=True, slots=True)
class PlainChunk:
    """A chunk in the form for comparing words (``plain``).

    Attributes:
        id: Its id.
        title: Its first sentence, or its heading.
        text: All of it.
    """

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The chunks that contain one keyword.

    Attributes:
        rows: ``(m,)`` their indexes among all chunks, ascending.
        counts: ``(m,)`` number of occurrences in each chunk.
        titles: ``(m,)`` the share of the keyword in the title of each chunk, 0 if it is not in the title.
    """

    rows: NDArray[np.int64]
    counts: NDArray[np.int64]
    titles: NDArray[np.float64]


class Lexicon:
    """The chunks of one state of an index, for comparing words.

    Args:
        store: The texts.
    """

    def __init__(self, store: TextStore) -> None:
        self._store = store
        self._chunks: list[PlainChunk] | None = None
        self._cache: dict[str, Occurrences] = {}

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of all chunks, in order."""
        return self._store.ids()

    def chunks(self) -> Iterator[PlainChunk]:
        """All chunks in order; those of a small folder stay in memory after the first iteration."""
        if self._chunks is not None:
            yield from self._chunks
            return
        chunks, size = [], 0
        for chunk in self._store.chunks():
            item = PlainChunk(chunk.id, plain(first_line(chunk.passage.sentences[0])), plain(chunk.text))
            size += len(item.text)
            if size <= HELD:
                chunks.append(item)
            yield item
        if size <= HELD:
            self._chunks = chunks

    def occurrences(self, keys: Sequence[str]) -> Mapping[str, Occurrences]:
        """The occurrences of these plain keywords; ``rows`` are indexes of ``ids``."""
        cache = self._cache if len(self._cache) < _MOST_KEYS else {}
        if missing := [key for key in dict.fromkeys(keys) if key not in cache]:
            cache = {**cache, **_occurrences(missing, self.chunks())}
            self._cache = cache
        return {key: cache[key] for key in keys}

    def shares(self, keywords: Sequence[str]) -> Mapping[str, float]:
        """Id of a chunk -> its share of these keywords, weighted by rarity; chunks without any are left out."""
        keys = list(dict.fromkeys(filter(None, map(plain, keywords))))
        occurrences = self.occurrences(keys)
        sums = np.zeros(len(self.ids))
        rarities = {key: rarity(len(occurrences[key].rows), len(sums)) for key in keys}
        for key in keys:
            sums[occurrences[key].rows] += rarities[key]
        total = sum(rarities.values())
        return {self.ids[row]: float(sums[row] / total) for row in np.flatnonzero(sums).tolist()}


def rarity(n: int, chunks: int) -> float:
    """Inverse document frequency of a word in n chunks, divided by that of a word in one chunk."""
    return inverse_frequency(n, chunks) / inverse_frequency(1, chunks) if n else 0.0


def _occurrences(keys: Sequence[str], chunks: Iterable[PlainChunk]) -> Mapping[str, Occurrences]:
    """Searches keywords in one pass over all chunks."""
    rows = {key: array("q") for key in keys}
    counts = {key: array("q") for key in keys}
    titles = {key: array("d") for key in keys}
    for row, chunk in enumerate(chunks):
        for key in keys:
            if count := chunk.text.count(key):
                rows[key].append(row)
                counts[key].append(count)
                titles[key].append(len(key) / max(len(chunk.title), 1) if key in chunk.title else 0.0)
    return {key: Occurrences(np.array(rows[key]), np.array(counts[key]), np.array(titles[key])) for key in keys}
