"""The key of a catalog: the same for the same sources, in whatever order they are named."""

from __future__ import annotations

import hashlib
from pathlib import Path

from callsheet.graphs.catalog.formats.server_config import is_address


def catalog_key(label: str) -> str:
    """Returns a key of a catalog for files about it; the same sources have the same key, in whatever order."""
    names = set[str]()
    for name in label.splitlines():
        names.add(name if is_address(name) else str(Path.cwd() / name))
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]
