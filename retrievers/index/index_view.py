"""A view of some rows of an index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from callsheet.retrievers.index.protocols import Changes, Node, Progress, Span, VectorIndex


class PartOfIndex:
    """The part of an index that a user may see: a ``VectorIndex`` of these rows over the same vectors.

    Args:
        whole: The whole index, which is updated separately.
        rows: The visible rows, in this order.
    """

    def __init__(self, whole: VectorIndex, rows: Sequence[int]) -> None:
        self._whole = whole
        self._rows = np.asarray(rows, np.intp)

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        """Changes nothing: only the whole index is updated."""
        return Changes()

    def scores(self, query: str, spans: Sequence[Span] = ()) -> NDArray[np.float32]:
        """As in ``VectorIndex``, for these rows."""
        return self._whole.scores(query, spans)[:, self._rows]
