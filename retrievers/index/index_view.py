"""Some rows of an index, as an index of their own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from callsheet.retrievers.index.protocols import Changes, Node, Progress, Span, VectorIndex


class PartOfIndex:
    """What a user may see of an index: a ``VectorIndex`` with only these rows, over the same vectors.

    Args:
        whole: The index, which goes on to be kept up to date by itself.
        rows: Which of its rows, in this order.
    """

    def __init__(self, whole: VectorIndex, rows: Sequence[int]) -> None:
        self._whole = whole
        self._rows = np.asarray(rows, np.intp)

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        """Changes nothing: what is seen in part is filled as a whole."""
        return Changes()

    def scores(self, query: str, spans: Sequence[Span] = ()) -> NDArray[np.float32]:
        """As in ``VectorIndex``, for these rows."""
        return self._whole.scores(query, spans)[:, self._rows]
