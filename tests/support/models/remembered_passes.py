"""The embedded model in tests: what it says of a batch is computed once in a run, and by one thread."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from callsheet.retrievers.index import embedding as minilm
from callsheet.retrievers.index.embedding import MiniLM

REAL = (MiniLM._run, MiniLM.encode_spans)
"""Nine of ten passes of the tests are over a batch, or a query, that another test had: the catalogs are the same."""
REMEMBERED: list[Path] = []
"""The folders of those that are remembered now; programs that tests start use the last one."""


class _OneThread(onnxruntime.SessionOptions):  # type: ignore[misc]
    """As many processes of tests run as there are processors: threads of theirs would only wait for each other."""

    def __init__(self) -> None:
        super().__init__()
        self.intra_op_num_threads = 1


@contextmanager
def remembered(folder: Path) -> Iterator[None]:
    """While the same batch, and the same parts of the same query, go through the model only once.

    Args:
        folder: Where the processes of one run share what they computed.
    """
    folder.mkdir(exist_ok=True)
    REMEMBERED.append(folder)
    options, onnxruntime.SessionOptions = onnxruntime.SessionOptions, _OneThread
    MiniLM._run, MiniLM.encode_spans = _once(REAL[0], folder), _once(REAL[1], folder)  # type: ignore[method-assign]
    try:
        yield
    finally:
        REMEMBERED.pop()
        onnxruntime.SessionOptions = options
        MiniLM._run, MiniLM.encode_spans = REAL  # type: ignore[method-assign]
        minilm._shared_session.cache_clear()


def _once(real: Callable[..., np.ndarray], folder: Path) -> Any:
    known: dict[str, np.ndarray] = {}

    def once(self: MiniLM, *given: Any) -> np.ndarray:
        key = hashlib.sha256(repr((real.__name__, self.name, given)).encode()).hexdigest()
        if key not in known:
            file = folder / f"{key}.npy"
            known[key] = np.load(file) if file.exists() else _kept(real(self, *given), file)
        return known[key].copy()

    return once


def _kept(values: np.ndarray, file: Path) -> np.ndarray:
    new = file.with_suffix(f".{os.getpid()}.{threading.get_ident()}.npy")
    np.save(new, values)
    new.replace(file)
    return values
