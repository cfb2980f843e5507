"""One embedder for all methods, each text embedded once in a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from callsheet.retrievers import MiniLMEmbeddings

_AT_ONCE = 256


class SharedVectors(MiniLMEmbeddings):
    """The embedded MiniLM, which remembers what it has embedded.

    Args:
        tuned: Whether it is the one that Callsheet trained further; otherwise the published one, as for all baselines.
    """

    def __init__(self, *, tuned: bool = True) -> None:
        super().__init__(tuned=tuned)
        self._known: dict[str, np.ndarray] = {}
        self._parts: dict[tuple[str, tuple[tuple[int, int], ...]], np.ndarray] = {}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """As in ``MiniLMEmbeddings``; only texts that are new cost anything."""
        missing = sorted({text for text in texts if text not in self._known}, key=lambda text: (len(text), text))
        for start in range(0, len(missing), _AT_ONCE):
            batch = missing[start : start + _AT_ONCE]
            self._known.update(zip(batch, super().encode(batch), strict=True))
        return np.stack([self._known[text] for text in texts]) if texts else super().encode([])

    def encode_spans(self, text: str, spans: Sequence[tuple[int, int]]) -> np.ndarray:
        """As in ``MiniLMEmbeddings``; only what was not asked before costs anything."""
        key = (text, tuple(spans))
        if key not in self._parts:
            self._parts[key] = super().encode_spans(text, spans)
        return self._parts[key]

    def __len__(self) -> int:
        return len(self._known)


@cache
def vectors_of_this_run(*, tuned: bool = True) -> SharedVectors:
    """The one embedder of this process, of either kind."""
    return SharedVectors(tuned=tuned)
