"""Storage of vectors by the ids of their rows: in Chroma, in Postgres, or in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from callsheet.graphs.catalog.errors import SettingsError
from callsheet.graphs.storage import cache_folder, is_address, store_address
from callsheet.retrievers.index.matrix import Matrix
from callsheet.retrievers.index.rows.chroma_rows import ChromaRows, is_chroma_server
from callsheet.retrievers.index.rows.database_search import DatabaseSearch
from callsheet.retrievers.index.rows.memory_rows import MemoryRows
from callsheet.retrievers.index.rows.postgres_rows import PostgresRows

IN_MEMORY = ":memory:"
IN_MEMORY_NODES = 200_000
"""Number of nodes of a catalog above which a database with pgvector searches, unless ``CALLSHEET_IN_MEMORY`` says."""


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


def searched(
    rows: ChromaRows | PostgresRows | MemoryRows, ids: Sequence[str], metadata: Mapping[str, str]
) -> Matrix | DatabaseSearch:
    """The products of these rows with queries: in memory, or of a large catalog inside a database that can search.

    Args:
        rows: The rows of a collection.
        ids: Ids of rows, all of which are there.
        metadata: Values that all of these rows have, and no others.

    Raises:
        SettingsError: The rows cannot be read, or ``CALLSHEET_IN_MEMORY`` is not a number.
    """
    if isinstance(rows, PostgresRows) and len(ids) > _most_in_memory() and (found := rows.search(ids, metadata)):
        return found
    return Matrix(rows.vectors(ids, metadata))


def _most_in_memory() -> int:
    told = os.environ.get("CALLSHEET_IN_MEMORY", "").strip() or str(IN_MEMORY_NODES)
    if not told.isdecimal():
        raise SettingsError(f"CALLSHEET_IN_MEMORY must be a number of nodes, not {told!r}")
    return int(told)


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
    "DatabaseSearch",
    "MemoryRows",
    "PostgresRows",
    "default_folder",
    "default_place",
    "is_url",
    "rows_of",
    "searched",
]
