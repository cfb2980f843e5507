"""The vectors of an index in one plain file, for Chroma costs a second to import and to open."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs.storage import replace_bytes

FORMAT = 1


class Snapshot:
    """Vectors of certain rows, whole or not at all.

    An id of a row stands for its content for ever, so whoever wants exactly these rows may have these vectors,
    whatever another process has done to the index meanwhile. The file is a line of JSON (format, shape, SHA-256 of
    the ids and of what follows), then the vectors as little-endian float32. It is put in place in one go.

    Args:
        file: Where it is; made when it is first written.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self, rows: Sequence[str]) -> NDArray[np.float32] | None:
        """The vectors ``(n, d)`` of these rows in this order; None if the file is damaged, or of other rows."""
        try:
            head, _, body = self._file.read_bytes().partition(b"\n")
            said = json.loads(head)
            if said["format"] != FORMAT or said["rows"] != _digest_of(rows):
                return None
            if said["sha256"] != hashlib.sha256(body).hexdigest():
                return None
            return np.frombuffer(body, "<f4").reshape(said["shape"])
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, rows: Sequence[str], vectors: NDArray[np.float32]) -> None:
        """Keeps the vectors of these rows, in this order. Where nothing can be written, the index works without."""
        body = np.ascontiguousarray(vectors, "<f4").tobytes()
        head = {
            "format": FORMAT,
            "shape": vectors.shape,
            "rows": _digest_of(rows),
            "sha256": hashlib.sha256(body).hexdigest(),
        }
        with suppress(OSError):
            replace_bytes(self._file, json.dumps(head).encode() + b"\n" + body)


def _digest_of(rows: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()
