"""A file of counts by tool, which runs add to and a person can delete."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.storage import locked, replace_text, state_folder


class CountFile(ABC):
    """Base class of files of counts.

    Args:
        path: The file; by default ``name`` in the state folder. The first count creates it.
    """

    name: str
    tools: int
    """How many ids of tools a key begins with."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = state_folder() / self.name if path is None else Path(path)

    @abstractmethod
    def read(self) -> Mapping[Any, Any]:
        """The counts so far; empty if there is no file yet.

        Raises:
            CatalogError: The file cannot be read, or has another format.
        """

    def forget(self, pattern: str = "*") -> int:
        """Removes the counts of tools whose ids match a pattern (``files/*``); returns the number of entries.

        Raises:
            CatalogError: As for ``read``.
            TrustError: The file cannot be written.
        """
        if not self.path.exists():
            return 0
        with locked(self.path):
            counts = self.read()
            kept = {
                key: count
                for key, count in counts.items()
                if not any(fnmatchcase(tool, pattern) for tool in key[: self.tools])
            }
            self._write(kept)
        return self._entries(counts) - self._entries(kept)

    def remove(self) -> int:
        """Removes the file, also one that cannot be read; returns the number of entries that it had."""
        try:
            known = self._entries(self.read())
        except CatalogError:
            known = 0
        self.path.unlink(missing_ok=True)
        return known

    def _entries(self, counts: Mapping[Any, Any]) -> int:
        return len(counts)

    @abstractmethod
    def _write(self, counts: Mapping[Any, Any]) -> None: ...

    def _document(self) -> Any:
        """The parsed file; None if there is none yet."""
        try:
            return json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            raise CatalogError(f"{self.path}: cannot be read: {error}: remove the file to count anew") from error

    def _replace(self, document: dict[str, Any]) -> None:
        replace_text(self.path, json.dumps(document, ensure_ascii=False, indent=0))
