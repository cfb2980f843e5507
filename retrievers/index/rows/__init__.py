"""Storage of vectors by the ids of their rows: in Chroma, in Postgres, or in memory."""

from __future__ import annotations

from pathlib import Path

from callsheet.graphs.storage import cache_folder, is_address, store_address
from callsheet.retrievers.index.rows.chroma_rows import ChromaRows, is_chroma_server
from callsheet.retrievers.index.rows.memory_rows import MemoryRows
from callsheet.retrievers.index.rows.postgres_rows import PostgresRows

IN_MEMORY = ":memory:"


def rows_of(name: str, where: str | Path | None) -> ChromaRows | PostgresRows | MemoryRows:
    """The rows of a collection.

    Args:
        name: Name of the collection.
        where: A folder, an ``http(s)://`` address of ``chroma run``, ``postgresql://...``, or None for memory only.
    """
    if where is None:
        return MemoryRows()
    if is_address(str(where)):
        return PostgresRows(name, str(where))
    return ChromaRows(name, where)


def default_place() -> str | Path:
    """Where indexes are: ``CALLSHEET_STORE``, else a folder in ``CALLSHEET_HOME``, else in the user's cache."""
    return store_address() or default_folder()


def default_folder() -> Path:
    """The folder for indexes on this machine."""
    return cache_folder() / "index"


def is_url(where: str | Path) -> bool:
    """Whether a place is the address of a server rather than a folder."""
    return is_address(str(where)) or is_chroma_server(where)


__all__ = [
    "IN_MEMORY",
    "ChromaRows",
    "MemoryRows",
    "PostgresRows",
    "default_folder",
    "default_place",
    "is_url",
    "rows_of",
]
