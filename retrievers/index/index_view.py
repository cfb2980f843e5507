"""A view of some rows of an index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from callsheet.retrievers.index.protocols import Changes, Node, Progress, RestrictedIndex, Span, VectorIndex


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
        return self.scores_of(None, query, spans)

    def scores_of(
        self,
        rows: NDArray[np.intp] | None,
        query: str,
        spans: Sequence[Span] = (),
        also: Iterable[NDArray[np.intp]] = (),
    ) -> NDArray[np.float32]:
        """As in ``RestrictedIndex``; rows are places among these rows."""
        own = self._rows if rows is None else self._rows[rows]
        if isinstance(self._whole, RestrictedIndex):
            return self._whole.scores_of(own, query, spans, (self._rows[more] for more in also))
        return self._whole.scores(query, spans)[:, own]
