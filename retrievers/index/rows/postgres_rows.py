"""Vectors by the ids of their rows, in one table of the shared database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from callsheet.graphs.catalog.errors import SettingsError, TrustError
from callsheet.graphs.storage import DatabaseError, database_at
from callsheet.retrievers.index.matrix import Vectors, precision
from callsheet.retrievers.index.rows.database_search import DatabaseSearch
from callsheet.retrievers.index.rows.database_table import DatabaseTable

if TYPE_CHECKING:
    from psycopg import Connection

_TABLE = (
    "CREATE TABLE vectors (collection text NOT NULL, id text NOT NULL, metadata jsonb NOT NULL, vector bytea NOT NULL, "
    "PRIMARY KEY (collection, id))",
    "CREATE INDEX vectors_metadata ON vectors USING gin (metadata jsonb_path_ops)",
)
_LOCK_SECONDS = 600
_PAGE = 4_096


class PostgresRows:
    """The same rows as ``ChromaRows``, each vector as little-endian float32.

    The database is opened when it is first used. It needs an extension only for ``search``.
    """

    folder = None

    def __init__(self, name: str, where: str) -> None:
        self._name = name
        self._database = database_at(where)
        self._writer: Connection[Any] | None = None  # holds the lock of ``writing``
        self.where = f"{where.partition('://')[0]}://{self._database}"
        self._tables: dict[str, DatabaseTable] = {}

    @classmethod
    def collections(cls, where: str) -> list[str]:
        """The names of all collections in a database."""
        with cls("", where)._connection() as connection:
            rows = connection.execute("SELECT DISTINCT collection FROM vectors ORDER BY collection").fetchall()
        return [name for (name,) in rows]

    def held(self, metadata: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
        """The rows with these values among their metadata: id -> all of their metadata."""
        from psycopg.types.json import Jsonb

        query = "SELECT id, metadata FROM vectors WHERE collection = %s AND metadata @> %s"
        with self._connection() as connection:
            return dict(connection.execute(query, [self._name, Jsonb(dict(metadata))]).fetchall())

    def count(self) -> int:
        """How many rows there are."""
        with self._connection() as connection:
            row = connection.execute("SELECT count(*) FROM vectors WHERE collection = %s", [self._name]).fetchone()
        return int(row[0]) if row else 0

    def ids(self) -> Iterator[str]:
        """The ids of all rows."""
        with self._connection() as connection:
            rows = connection.execute("SELECT id FROM vectors WHERE collection = %s", [self._name]).fetchall()
        return (row for (row,) in rows)

    def missing(self, ids: Sequence[str]) -> list[str]:
        """Those of these ids that there is no row of, in their order."""
        query = "SELECT id FROM vectors WHERE collection = %s AND id = ANY(%s)"
        with self._connection() as connection:
            there = {row for (row,) in connection.execute(query, [self._name, list(ids)]).fetchall()}
        return [row for row in ids if row not in there]

    def add(self, ids: Sequence[str], vectors: Vectors, metadatas: Sequence[Mapping[str, str]] | None = None) -> None:
        """Adds rows in one transaction; of an id that is there already the old row stays."""
        from psycopg.types.json import Jsonb

        told = metadatas or [{}] * len(ids)
        rows = zip(ids, told, np.ascontiguousarray(vectors, "<f4"), strict=True)
        with self._locked_connection() as connection, connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO vectors VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING",
                [(self._name, row, Jsonb(dict(metadata)), vector.tobytes()) for row, metadata, vector in rows],
            )

    def metadata(self, ids: Sequence[str]) -> list[Mapping[str, Any]]:
        """The metadata of these rows, in the order of the ids; all of them must be there."""
        query = "SELECT id, metadata FROM vectors WHERE collection = %s AND id = ANY(%s)"
        with self._connection() as connection:
            found = dict(connection.execute(query, [self._name, list(ids)]).fetchall())
        return [found[row] for row in ids]

    def delete(self, ids: Sequence[str]) -> None:
        """Deletes rows."""
        with self._locked_connection() as connection:
            connection.execute("DELETE FROM vectors WHERE collection = %s AND id = ANY(%s)", [self._name, list(ids)])

    def vectors(self, ids: Sequence[str], metadata: Mapping[str, str] | None = None) -> Vectors:
        """The vectors of these rows as ``(n, d)``, in the order of the ids; all of them must be there."""
        pages: list[Vectors] = [np.zeros((0, 1), np.float32)]
        query = "SELECT id, vector FROM vectors WHERE collection = %s AND id = ANY(%s)"
        with self._connection() as connection, connection.cursor(binary=True) as cursor:
            for start in range(0, len(ids), _PAGE):
                page = list(ids[start : start + _PAGE])
                found = dict(cursor.execute(query, [self._name, page]).fetchall())
                pages.append(self._stacked([found[row] for row in page]).astype(precision(len(ids)), copy=False))
        if len(widths := {page.shape[1] for page in pages[1:]}) > 1:
            raise self._mixed(widths)
        return np.concatenate(pages[1:] or pages)

    def search(self, ids: Sequence[str], metadata: Mapping[str, str]) -> DatabaseSearch | None:
        """The search of these rows inside the database, as in ``DatabaseTable``; None if it cannot search.

        Args:
            ids: All of them must be there.
            metadata: Values that all of these rows have, and no others.

        Raises:
            SettingsError: The database cannot be used.
        """
        name = "\0".join((self._name, *metadata.values()))
        table = self._tables.setdefault(name, DatabaseTable(self._database, name))
        widths: set[int] = set()

        def alike(page: Sequence[str]) -> Vectors:
            widths.add((vectors := self.vectors(page)).shape[1])
            if len(widths) > 1:
                raise self._mixed(widths)
            return vectors

        with settings_errors():
            return table.search(ids, alike)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keeps other processes from writing to the same collection. If the lock is lost, nothing more is written.

        Raises:
            SettingsError: Another one has been at it for ten minutes, or the database cannot be used.
        """
        with settings_errors():
            self._database.migrate("vectors", _TABLE)
            with self._database.exclusive(f"the index {self._name}", _LOCK_SECONDS) as connection:
                self._writer = connection
                try:
                    yield
                finally:
                    self._writer = None

    @contextmanager
    def _locked_connection(self) -> Iterator[Connection[Any]]:
        """The connection that holds the lock, in a transaction; outside of ``writing``, the shared one."""
        if self._writer is None:
            with self._connection() as connection:
                yield connection
        else:
            with self._writer.transaction():
                yield self._writer

    def _stacked(self, vectors: Sequence[bytes]) -> Vectors:
        if len(lengths := set(map(len, vectors))) > 1:
            raise self._mixed({length // 4 for length in lengths})
        return np.frombuffer(b"".join(vectors), "<f4").reshape(len(vectors), -1)

    def _mixed(self, widths: set[int]) -> SettingsError:
        return SettingsError(
            f"the index {self._name} at {self.where} has vectors of {' and '.join(map(str, sorted(widths)))} "
            "dimensions: an embedder with other dimensions needs another name, or another schema"
        )

    @contextmanager
    def _connection(self) -> Iterator[Connection[Any]]:
        with settings_errors():
            self._database.migrate("vectors", _TABLE)
            with self._database.transaction() as connection:
                yield connection


@contextmanager
def settings_errors() -> Iterator[None]:
    """Errors of the database as errors of the settings that name it."""
    try:
        yield
    except (DatabaseError, TrustError) as error:
        raise SettingsError(str(error)) from error
