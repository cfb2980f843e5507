"""Folders of documents as agents: one line among the servers of an ``mcp.json``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.model import Record

KEY = "documents"


class FolderConfig(Record):
    """A folder of documents that is an agent.

    Attributes:
        documents: The folder; its full path, without links, once it was read.
        description: What is in it; the headings of its documents where nothing is said.
    """

    documents: Path
    description: str = ""


def read_folders(document: Mapping[str, Any], path: Path) -> dict[str, FolderConfig]:
    """The entries ``"name": {"documents": "folder/"}`` of an ``mcp.json``; disabled ones are left out.

    Args:
        document: The parsed file.
        path: The file; folders are relative to where it lies.

    Raises:
        CatalogError: An entry has another field than ``documents`` and ``description``, or one of the wrong type.
    """
    servers = document.get("mcpServers", document.get("servers"))
    found: dict[str, FolderConfig] = {}
    for name, entry in servers.items() if isinstance(servers, dict) else ():
        if is_folder(entry) and entry.get("disabled") is not True:
            fields = {key: value for key, value in entry.items() if key != "disabled"}
            try:
                config = FolderConfig(**fields)
                folder = (path.parent / config.documents.expanduser()).resolve()
            except (CatalogError, OSError, RuntimeError, ValueError) as error:
                raise CatalogError(f"{path}: {name!r} is a folder of documents, but: {error}") from error
            found[name] = config.model_copy(update={KEY: folder})
    return found


def is_folder(entry: object) -> bool:
    """Whether an entry among the servers of an ``mcp.json`` is a folder of documents."""
    return isinstance(entry, dict) and KEY in entry
