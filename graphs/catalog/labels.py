"""Computes the keys of a catalog and of its sources, which do not depend on the order of the sources."""

from __future__ import annotations

import hashlib
from pathlib import Path

from callsheet.graphs.catalog.formats.server_config import is_address


def catalog_key(label: str) -> str:
    """Returns a key that names files about a catalog; it does not depend on the order of the sources."""
    return _key("\n".join(sorted(_names(label))))


def source_keys(label: str) -> frozenset[str]:
    """Returns a key for each source of a catalog; none for a catalog in memory."""
    return frozenset(_key(name) for name in _names(label))


def _names(label: str) -> set[str]:
    """Returns the sources that a label names, paths as absolute ones."""
    return {name if is_address(name) else str(Path.cwd() / name) for name in label.splitlines()}


def _key(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
