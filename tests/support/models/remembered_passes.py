"""The embedded model in tests: what it says of a batch is computed once in a process, and by one thread."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnxruntime

from callsheet.retrievers.index.embedding import minilm
from callsheet.retrievers.index.embedding.minilm import MiniLM

REAL = (MiniLM._run, MiniLM._encoded_spans)
"""Nine of ten passes of the tests are over a batch, or a query, that another test had: the catalogs are the same."""


class _OneThread(onnxruntime.SessionOptions):  # type: ignore[misc]
    """As many processes of tests run as there are processors: threads of theirs would only wait for each other."""

    def __init__(self) -> None:
        super().__init__()
        self.intra_op_num_threads = 1


@contextmanager
def remembered() -> Iterator[None]:
    """While the same batch, and the same parts of the same query, go through the model only once."""
    options, onnxruntime.SessionOptions = onnxruntime.SessionOptions, _OneThread
    MiniLM._run, MiniLM._encoded_spans = _once(REAL[0]), _once(REAL[1])  # type: ignore[method-assign]
    try:
        yield
    finally:
        onnxruntime.SessionOptions = options
        MiniLM._run, MiniLM._encoded_spans = REAL  # type: ignore[method-assign]
        minilm._shared_session.cache_clear()


def _once(real: Callable[..., np.ndarray]) -> Any:
    known: dict[tuple[Any, bytes], np.ndarray] = {}

    def once(self: MiniLM, *given: Any) -> np.ndarray:
        key = self._weights, hashlib.sha256(repr(given).encode()).digest()
        if key not in known:
            known[key] = real(self, *given)
        return known[key].copy()

    return once
