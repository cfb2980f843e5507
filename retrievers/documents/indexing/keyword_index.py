"""The words of all chunks: where keywords stand, each looked for once."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from callsheet.retrievers.documents.indexing.chunk_store import TextStore
from callsheet.retrievers.documents.rules.phrases import first_line, plain

HELD = 16_000_000
"""Characters of a folder's texts up to which they are held in memory as words are compared."""
_MOST_KEYS = 4_096


@dataclass(frozen=True, slots=True)
class PlainChunk:
    """A chunk as words are compared (``plain``).

    Attributes:
        id: Its id.
        title: Its first sentence, or the heading that it begins with.
        text: All of it.
    """

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The chunks that hold one keyword.

    Attributes:
        rows: ``(found,)`` their places among all chunks, rising.
        counts: ``(found,)`` how often each holds it.
        titles: ``(found,)`` the share of each one's title that the keyword is, 0 where it is not in the title.
    """

    rows: NDArray[np.int64]
    counts: NDArray[np.int64]
    titles: NDArray[np.float64]


class Lexicon:
    """The chunks of one state of an index, as words are compared.

    Args:
        store: The texts.
    """

    def __init__(self, store: TextStore) -> None:
        self._store = store
        self._held: list[PlainChunk] | None = None
        self._found: dict[str, Occurrences] = {}

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The ids of all chunks, in order."""
        return self._store.ids()

    def chunks(self) -> Iterator[PlainChunk]:
        """All chunks in order; those of a small folder are held in memory from the second time on."""
        if self._held is not None:
            yield from self._held
            return
        held, size = [], 0
        for chunk in self._store.chunks():
            item = PlainChunk(chunk.id, plain(first_line(chunk.passage.sentences[0])), plain(chunk.text))
            size += len(item.text)
            if size <= HELD:
                held.append(item)
            yield item
        if size <= HELD:
            self._held = held

    def occurrences(self, keys: Sequence[str]) -> Mapping[str, Occurrences]:
        """Where these keywords, plain, stand: ``rows`` are places in ``ids``."""
        known = self._found if len(self._found) < _MOST_KEYS else {}
        if missing := [key for key in dict.fromkeys(keys) if key not in known]:
            known = {**known, **_occurrences(missing, self.chunks())}
            self._found = known
        return {key: known[key] for key in keys}

    def shares(self, keywords: Sequence[str]) -> Mapping[str, float]:
        """Id of a chunk -> the share of these keywords that it holds, each weighed by its rarity; of those with any."""
        keys = list(dict.fromkeys(filter(None, map(plain, keywords))))
        found = self.occurrences(keys)
        held = np.zeros(len(self.ids))
        rarities = {key: rarity(len(found[key].rows), len(held)) for key in keys}
        for key in keys:
            held[found[key].rows] += rarities[key]
        total = sum(rarities.values())
        return {self.ids[row]: float(held[row] / total) for row in np.flatnonzero(held).tolist()}


def rarity(found: int, chunks: int) -> float:
    """Inverse document frequency of a word of so many chunks, divided by that of a word of one chunk alone."""
    if not found:
        return 0.0
    return math.log1p((chunks - found + 0.5) / (found + 0.5)) / math.log1p((chunks - 0.5) / 1.5)


def _occurrences(keys: Sequence[str], chunks: Iterable[PlainChunk]) -> Mapping[str, Occurrences]:
    """Looks for keywords in one pass over all chunks."""
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
