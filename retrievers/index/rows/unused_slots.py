"""Removes from Chroma's files what was in memory before: hnswlib writes the slots that hold no vector as they are.

Such a slot is memory that the process used for something else, which may be a secret.
"""

from __future__ import annotations

import struct
from pathlib import Path

_HEADER = struct.Struct("<4xQQQQ")
"""The beginning of ``header.bin``, after its version: an offset, and the numbers of slots, vectors and bytes a slot."""
_LENGTH = 4
_ZEROS = bytes(1_048_576)


def clear_unused_slots(folder: Path) -> None:
    """Overwrites the unused slots of all HNSW files of a folder of Chroma with zeros; they are never read.

    Args:
        folder: A folder that nobody writes to at the same time.

    Raises:
        OSError: A file cannot be written.
    """
    for header in folder.glob("*/header.bin"):
        content = header.read_bytes()
        if len(content) < _HEADER.size:
            continue
        _, _, vectors, size = _HEADER.unpack_from(content)
        for name, each in (("data_level0.bin", size), ("length.bin", _LENGTH)):
            if (file := header.with_name(name)).is_file():
                _clear(file, vectors * each)


def _clear(file: Path, start: int) -> None:
    with file.open("r+b") as content:
        content.seek(start)
        while piece := content.read(len(_ZEROS)):
            if any(piece):
                content.seek(-len(piece), 1)
                content.write(_ZEROS[: len(piece)])
