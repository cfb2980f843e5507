"""A file of counts by tool, which runs add to and a person can delete."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.storage import replace_text, state_folder


class CountFile(ABC):
    """Base class of files of counts.

    Args:
        path: The file; by default ``name`` in the state folder. The first count creates it.
    """

    name: str

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = state_folder() / self.name if path is None else Path(path)

    def remove(self) -> int:
        """Removes the file, also one that cannot be read; returns the number of entries that it had."""
        try:
            known = len(self._entries())
        except CatalogError:
            known = 0
        self.path.unlink(missing_ok=True)
        return known

    @abstractmethod
    def _entries(self) -> Collection[Any]:
        """What the file has counts of; a ``CatalogError`` if it cannot be read."""

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
