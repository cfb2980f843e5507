"""The key of a catalog, the same for the same sources in whatever order they are named; and commands about it."""

from __future__ import annotations

import hashlib
import shlex
from pathlib import Path

from callsheet.graphs.catalog.formats.server_config import is_address


def catalog_key(label: str) -> str:
    """Returns a key of a catalog for files about it; the same sources have the same key, in whatever order."""
    names = set[str]()
    for name in label.splitlines():
        names.add(name if is_address(name) else str(Path.cwd() / name))
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()[:16]


def command_about(label: str, *words: str) -> str:
    """Returns a command of ``callsheet`` with the catalogs of a label, which runs as it is printed.

    A catalog in memory has no name, so that its user must give one.
    """
    catalogs = [part for name in label.splitlines() for part in ("--catalog", name)]
    return shlex.join(["callsheet", *words, *catalogs])
