"""Vectors by the ids of their rows, in this process only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from callsheet.retrievers.index.matrix import Vectors, precision


class MemoryRows:
    """The same rows as ``ChromaRows``, in a dictionary that ends with its owner.

    A collection of Chroma in memory takes 2.7 MB, which Chroma keeps until the process ends.

    Attributes:
        where, folder: None, as for ``ChromaRows`` without a folder.
    """

    where = folder = None

    def __init__(self) -> None:
        self._rows: dict[str, tuple[Vectors, int, Mapping[str, str]]] = {}  # an array and the place in it

    def held(self, metadata: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
        """The rows with these values among their metadata: id -> all of their metadata."""
        return {row: told for row, (_, _, told) in [*self._rows.items()] if metadata.items() <= told.items()}

    def count(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def ids(self) -> Iterator[str]:
        """The ids of all rows."""
        return iter([*self._rows])

    def missing(self, ids: Sequence[str]) -> list[str]:
        """Those of these ids that there is no row of, in their order."""
        return [row for row in ids if row not in self._rows]

    def add(self, ids: Sequence[str], vectors: Vectors, metadatas: Sequence[Mapping[str, str]] | None = None) -> None:
        """Adds rows; of an id that is there already the old row stays."""
        own: Vectors = vectors.astype(precision(len(self._rows)))
        for place, (row, told) in enumerate(zip(ids, metadatas or [{}] * len(ids), strict=True)):
            self._rows.setdefault(row, (own, place, told))

    def metadata(self, ids: Sequence[str]) -> list[Mapping[str, Any]]:
        """The metadata of these rows, in the order of the ids; all of them must be there."""
        return [self._rows[row][2] for row in ids]

    def delete(self, ids: Sequence[str]) -> None:
        """Deletes rows."""
        for row in ids:
            self._rows.pop(row, None)

    def vectors(self, ids: Sequence[str], metadata: Mapping[str, str] | None = None) -> Vectors:
        """The vectors of these rows as ``(n, d)``, in the order of the ids; all of them must be there."""
        if not ids:
            return np.zeros((0, 1), np.float32)
        vectors: Vectors = np.empty((len(ids), self._rows[ids[0]][0].shape[1]), precision(len(ids)))
        for place, row in enumerate(ids):  # held once, as part of what is returned
            array, old, told = self._rows[row]
            vectors[place] = array[old]
            self._rows[row] = (vectors, place, told)
        return vectors

    def writing(self) -> AbstractContextManager[None]:
        """No other process writes here."""
        return nullcontext()
