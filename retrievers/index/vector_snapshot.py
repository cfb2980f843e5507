"""The vectors of an index in one plain file, because Chroma takes a second to import and to open."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from callsheet.graphs.storage import replace_bytes
from callsheet.retrievers.index.matrix import Vectors, precision

FORMAT = 1


class Snapshot:
    """A file with the vectors of a set of rows.

    The id of a row is a hash of its content, so the vectors of the same ids are always valid, even if another process
    has changed the index. The file has one line of JSON (format, shape, type, SHA-256 of the ids and of the vectors),
    then the vectors, little-endian. It is replaced atomically.

    Args:
        file: Path of the file; ``write`` creates it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self, rows: Sequence[str]) -> Vectors | None:
        """The vectors ``(n, d)`` of these rows in this order; None if the file is damaged or has other rows."""
        try:
            line, _, body = self._file.read_bytes().partition(b"\n")
            head = json.loads(line)
            if head["format"] != FORMAT or head["rows"] != _digest_of(rows):
                return None
            if head["sha256"] != hashlib.sha256(body).hexdigest():
                return None
            vectors = np.frombuffer(body, head.get("type", "<f4")).reshape(head["shape"])
            return vectors.astype(precision(len(vectors)), copy=False)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, rows: Sequence[str], vectors: Vectors) -> None:
        """Stores the vectors of these rows, in this order; errors are ignored, because the index works without it."""
        kind = "<f4" if vectors.dtype == np.float32 else "<f2"
        body = np.ascontiguousarray(vectors, kind).tobytes()
        head = {
            "format": FORMAT,
            "shape": vectors.shape,
            "type": kind,
            "rows": _digest_of(rows),
            "sha256": hashlib.sha256(body).hexdigest(),
        }
        with suppress(OSError):
            replace_bytes(self._file, json.dumps(head).encode() + b"\n" + body)


def _digest_of(rows: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()
