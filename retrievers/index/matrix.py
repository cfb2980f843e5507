"""The vectors of all nodes in memory, and their products with a query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PROJECTED_FROM = 20_000
_DIRECTIONS, _EXACT = 64, 1_000


class Matrix:
    """Products of all rows with a query: exact up to 20,000 rows, above that exact for the best rows.

    Of a large matrix, the products are first estimated in the 64 directions in which its rows differ most (the leading
    eigenvectors of their second moments), which takes a sixth of the time. Then the best 1,000 rows are multiplied
    exactly; the others keep the estimate.

    Args:
        rows: ``(n, d) float32``.
    """

    def __init__(self, rows: NDArray[np.float32]) -> None:
        self.rows = rows
        self._directions: NDArray[np.float32] | None = None
        if len(rows) > PROJECTED_FROM and rows.shape[1] > _DIRECTIONS:
            _, vectors = np.linalg.eigh(rows.T @ rows)
            self._directions = np.ascontiguousarray(vectors[:, -_DIRECTIONS:], np.float32)
            self._projected = rows @ self._directions

    def products(self, queries: NDArray[np.float32]) -> NDArray[np.float32]:
        """The products of all rows with these queries ``(q, d)``, as ``(q, n) float32``."""
        if self._directions is None:
            return np.stack([self.rows @ query for query in queries])
        return np.stack([self._estimated(query, self._directions) for query in queries])

    def _estimated(self, query: NDArray[np.float32], directions: NDArray[np.float32]) -> NDArray[np.float32]:
        products = (self._projected @ (query @ directions)).astype(np.float32, copy=False)
        best = np.argpartition(products, -_EXACT)[-_EXACT:]
        products[best] = self.rows[best] @ query
        return products
