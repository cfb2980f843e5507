"""Copies of the vectors of a store."""

from __future__ import annotations

from pathlib import Path

from callsheet.graphs.storage import LOCAL, is_address
from callsheet.retrievers.index.rows import default_folder, rows_of
from callsheet.retrievers.index.rows.chroma_rows import ChromaRows
from callsheet.retrievers.index.rows.postgres_rows import PostgresRows

_PAGE = 1_024


def copy_rows(source: str, target: str) -> int:
    """Copies the vectors that the target does not have; returns their number.

    Args:
        source: ``local``, a folder that was a ``CALLSHEET_HOME``, or the address of a database.
        target: The same.

    Raises:
        SettingsError: A place cannot be opened.
    """
    where, there = _index(source), _index(target)
    names = PostgresRows.collections(str(where)) if is_address(str(where)) else ChromaRows.collections(Path(where))
    copied = 0
    for name in names:
        old, new = rows_of(name, where), rows_of(name, there)
        with new.writing():
            missing = new.missing([*old.ids()])
            for start in range(0, len(missing), _PAGE):
                page = missing[start : start + _PAGE]
                new.add(page, old.vectors(page), old.metadata(page))
            copied += len(missing)
    return copied


def _index(place: str) -> str | Path:
    if is_address(place):
        return place
    return default_folder() if place == LOCAL else Path(place).expanduser() / "index"
