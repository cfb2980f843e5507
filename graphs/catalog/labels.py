"""Computes the key of a catalog, which does not depend on the order of its sources."""

from __future__ import annotations

import hashlib
from pathlib import Path

from callsheet.graphs.catalog.formats.server_config import is_address


def catalog_key(label: str) -> str:
    """Returns a key that names files about a catalog; it does not depend on the order of the sources."""
    names = set[str]()
    for name in label.splitlines():
        names.add(name if is_address(name) else str(Path.cwd() / name))
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]
