"""The vectors of all nodes in memory, and their products with a query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.floating[Any]]
"""``(n, d)`` in single or half precision."""
LARGE = 20_000
"""Number of rows above which vectors in memory have half precision, and products are estimated first."""
_DIRECTIONS, _EXACT, _BLOCK = 96, 1_000, 8_192
_GROUP = 64


def precision(rows: int) -> type[np.float32] | type[np.float16]:
    """The type of so many vectors in memory: half precision beyond 20,000, where it changes cosines by about 1e-5."""
    return np.float32 if rows <= LARGE else np.float16


def among_best(values: NDArray[np.float32], most: int) -> NDArray[np.intp]:
    """Rows, in order, that include those of the best ``most`` values; few more if there are many values.

    It does not sort all values. The best ``most`` maxima of groups of 64 are as many values, so what is below the least
    of them is not among the best.
    """
    if len(values) <= most:
        return np.arange(len(values))
    groups = len(values) // _GROUP
    maxima = values[: groups * _GROUP].reshape(groups, _GROUP).max(axis=1) if groups > most else values
    return np.flatnonzero(values >= np.partition(maxima, -most)[-most])


class Matrix:
    """Products of all rows with a query: exact up to 20,000 rows, above that exact for the best rows.

    Of a large matrix, the products are first estimated in the 96 directions in which its rows differ most (the leading
    eigenvectors of their second moments), which takes a quarter of the time. Then at least the best 1,000 rows are
    multiplied; the others keep the estimate. A query takes one thread (``vecdot``): a product by the threads of a BLAS
    waits for all of them, up to a hundred times as long where the processors are busy.

    Args:
        rows: ``(n, d)``, as ``precision`` says.
    """

    def __init__(self, rows: Vectors) -> None:
        self.rows = rows
        self._directions: NDArray[np.float32] | None = None
        if len(rows) > LARGE and rows.shape[1] > _DIRECTIONS:
            moments = np.zeros((rows.shape[1], rows.shape[1]), np.float32)
            for block in self._blocks():
                moments += block.T @ block
            _, vectors = np.linalg.eigh(moments)
            self._directions = np.ascontiguousarray(vectors[:, -_DIRECTIONS:], np.float32)
            self._projected = np.concatenate([block @ self._directions for block in self._blocks()])

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def dimensions(self) -> int:
        """Length of each row."""
        return int(self.rows.shape[1])

    def products(self, queries: NDArray[np.float32]) -> NDArray[np.float32]:
        """The products of all rows with these queries ``(q, d)``, as ``(q, n) float32``."""
        if self._directions is not None:
            return np.stack([self._estimated(query, self._directions) for query in queries])
        if self.rows.dtype == np.float32:
            return np.stack([np.vecdot(self.rows, query) for query in queries])
        return np.concatenate([block @ queries.T for block in self._blocks()]).T

    def _blocks(self) -> Iterator[NDArray[np.float32]]:
        for start in range(0, len(self.rows), _BLOCK):
            block: NDArray[np.float32] = self.rows[start : start + _BLOCK].astype(np.float32, copy=False)
            yield block

    def _estimated(self, query: NDArray[np.float32], directions: NDArray[np.float32]) -> NDArray[np.float32]:
        products: NDArray[np.float32] = np.vecdot(self._projected, query @ directions)
        best = among_best(products, _EXACT)
        products[best] = np.vecdot(np.asarray(self.rows[best], np.float32), query)
        return products
