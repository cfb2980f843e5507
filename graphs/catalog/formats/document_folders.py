"""Folders of documents as agents: entries among the servers of an ``mcp.json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.record import Record

KEY = "documents"


class FolderConfig(Record):
    """A folder of documents that acts as an agent.

    Attributes:
        documents: The folder; ``read_folders`` resolves it to an absolute path.
        description: What the folder contains; by default, the headings of its documents.
    """

    documents: Path
    description: str = ""


def read_folders(document: Mapping[str, Any], path: Path) -> dict[str, FolderConfig]:
    """The entries ``"name": {"documents": "folder/"}`` of an ``mcp.json``, without disabled ones.

    Args:
        document: The parsed file.
        path: Path of the file; relative folders start at its folder.

    Raises:
        CatalogError: An entry has another field than ``documents`` and ``description``, or one of the wrong type.
    """
    servers = document.get("mcpServers", document.get("servers"))
    folders: dict[str, FolderConfig] = {}
    for name, entry in servers.items() if isinstance(servers, dict) else ():
        if is_folder(entry) and entry.get("disabled") is not True:
            fields = {key: value for key, value in entry.items() if key != "disabled"}
            try:
                config = FolderConfig(**fields)
                folder = (path.parent / config.documents.expanduser()).resolve()
            except (CatalogError, OSError, RuntimeError, ValueError) as error:
                raise CatalogError(f"{path}: {name!r} is a folder of documents, but: {error}") from error
            folders[name] = config.model_copy(update={KEY: folder})
    return folders


def is_folder(entry: object) -> bool:
    """Whether an entry among the servers of an ``mcp.json`` is a folder of documents."""
    return isinstance(entry, dict) and KEY in entry
