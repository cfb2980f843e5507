"""A file of counts by tool, which runs add to and a person can delete."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.storage import DatabaseError, StoredFile, file_named, state_file


class CountFile(ABC):
    """Base class of files of counts.

    Args:
        file: The file or its path; by default ``name`` in the shared store, or else in the user's data folder. The
            first count creates it.
    """

    name: str
    tools: int
    """How many ids of tools a key begins with."""

    def __init__(self, file: str | Path | StoredFile | None = None) -> None:
        self.file = state_file(self.name) if file is None else file_named(file)

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
        with self.file.locked():
            counts = self.read()
            kept = {
                key: count
                for key, count in counts.items()
                if not any(fnmatchcase(tool, pattern) for tool in key[: self.tools])
            }
            if len(kept) < len(counts):
                self._write(kept)
        return self._entries(counts) - self._entries(kept)

    def remove(self) -> int:
        """Removes the file, also one that cannot be read; returns the number of entries that it had."""
        try:
            known = self._entries(self.read())
        except CatalogError:
            known = 0
        self.file.remove()
        return known

    def _entries(self, counts: Mapping[Any, Any]) -> int:
        return len(counts)

    @abstractmethod
    def _write(self, counts: Mapping[Any, Any]) -> None: ...

    def _document(self) -> Any:
        """The parsed file; None if there is none yet."""
        try:
            return json.loads(self.file.text())
        except FileNotFoundError:
            return None
        except DatabaseError as error:
            raise CatalogError(f"the counts in {self.file} cannot be read: {error}") from error
        except (OSError, ValueError, RecursionError) as error:
            raise CatalogError(f"{self.file}: cannot be read: {error}: remove the file to count anew") from error

    def _replace(self, document: dict[str, Any]) -> None:
        self.file.replace(json.dumps(document, ensure_ascii=False, indent=0).encode())
