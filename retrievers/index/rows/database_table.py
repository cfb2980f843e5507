"""The table in which a large catalog is searched inside Postgres."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, LiteralString

import numpy as np

from callsheet.graphs.storage import Connections, Database, DatabaseError
from callsheet.retrievers.index.matrix import Vectors
from callsheet.retrievers.index.rows.database_search import SETTINGS, VALID, DatabaseSearch

if TYPE_CHECKING:
    from psycopg import Connection

_LOG = logging.getLogger(__name__)
_PART: tuple[LiteralString, ...] = (
    "CREATE TABLE searched (name text PRIMARY KEY, dimensions int NOT NULL, generation int NOT NULL)",
)
_COLUMNS = (
    "id uuid NOT NULL, born int NOT NULL, gone int NOT NULL DEFAULT 2147483647, gone_at timestamptz, "
    "vector halfvec({dimensions}) NOT NULL, PRIMARY KEY (id, born)"
)
_NEEDED, _MAX_DIMENSIONS = (0, 8), 4_000
_PAGE, _MAX_MEMORY = 4_096, 4_000_000_000
_HEADER, _END = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"


class DatabaseTable:
    """The table of one catalog in one collection, with the half-precision vectors of its rows and an HNSW index."""

    def __init__(self, database: Database, name: str) -> None:
        self._database = database
        self._table = f"searched_{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        self._connections = Connections(database, SETTINGS)

    def search(self, ids: Sequence[str], vectors: Callable[[Sequence[str]], Vectors]) -> DatabaseSearch | None:
        """The search of exactly these rows, as a new generation of the table if it has others; one process at a time.

        If it is interrupted, the generation of before remains.

        Args:
            ids: Ids of the rows, 32 hexadecimal digits each.
            vectors: Returns the vectors of rows, which it is asked for in pages.

        Returns:
            None if pgvector cannot be used; a warning tells why.

        Raises:
            DatabaseError: The database does not answer, or refuses.
        """
        dimensions = vectors(ids[:1]).shape[1]
        if why := self._unusable(dimensions):
            _LOG.warning("%s: %s, so the %d vectors of a catalog are compared in memory", self._database, why, len(ids))
            return None
        self._database.migrate("searched", _PART)
        with self._database.connect() as connection:
            with connection.transaction():
                generation = self._generation(connection, ids, vectors, dimensions)
            connection.execute(f"ANALYZE {self._table}".encode())
            mean = f"SELECT avg(vector)::text FROM {self._table} WHERE {VALID}"  # noqa: S608
            ((told,),) = connection.execute(mean.encode(), {"generation": generation}).fetchall()
        rows = np.frombuffer(bytes.fromhex("".join(ids)), "S16")
        means = np.array(json.loads(told), np.float32)
        return DatabaseSearch(self._connections, self._table, generation, rows, np.argsort(rows), means)

    def _unusable(self, dimensions: int) -> str:
        if dimensions > _MAX_DIMENSIONS:
            return f"pgvector indexes at most {_MAX_DIMENSIONS} dimensions, not {dimensions}"
        with suppress(DatabaseError), self._database.locked("extensions") as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        with self._database.transaction() as connection:
            found = connection.execute(
                "SELECT extversion FROM pg_extension WHERE extname = 'vector' AND to_regtype('halfvec') IS NOT NULL"
            ).fetchone()
        if found is None:
            return "it has no extension vector in the schema public"
        there, needed = found[0], ".".join(map(str, _NEEDED))
        return "" if tuple(map(int, there.split(".")[:2])) >= _NEEDED else f"pgvector {there} is older than {needed}"

    def _generation(
        self,
        connection: Connection[Any],
        ids: Sequence[str],
        vectors: Callable[[Sequence[str]], Vectors],
        dimensions: int,
    ) -> int:
        """The number of the generation with exactly these rows."""
        query = "SELECT dimensions, generation FROM searched WHERE name = %s"
        made, generation = connection.execute(query, [self._table]).fetchone() or (None, 0)
        if made != dimensions:
            connection.execute(f"DROP TABLE IF EXISTS {self._table}".encode())
            connection.execute(f"CREATE TABLE {self._table} ({_COLUMNS.format(dimensions=dimensions)})".encode())
        live = f"SELECT encode(uuid_send(id), 'hex') FROM {self._table} WHERE gone = 2147483647"  # noqa: S608
        held = {row for (row,) in connection.execute(live.encode())}
        missing = [row for row in ids if row not in held]
        if not missing and len(held) == len(ids):
            return int(generation)
        generation += 1
        self._drop(connection, held - set(ids), generation)
        for start in range(0, len(missing), _PAGE):
            page = missing[start : start + _PAGE]
            self._copy(connection, page, vectors(page), generation)
        if made != dimensions:
            self._index(connection, len(ids), dimensions)
        connection.execute(
            "INSERT INTO searched VALUES (%s, %s, %s) ON CONFLICT (name) DO UPDATE "
            "SET dimensions = EXCLUDED.dimensions, generation = EXCLUDED.generation",
            [self._table, dimensions, generation],
        )
        return int(generation)

    def _drop(self, connection: Connection[Any], ids: set[str], generation: int) -> None:
        """Ends the rows with this generation, and deletes those that no process can need any more."""
        old = f"DELETE FROM {self._table} WHERE gone_at < now() - interval '1 hour'"  # noqa: S608
        connection.execute(old.encode())
        ended = f"UPDATE {self._table} SET gone = %s, gone_at = now() WHERE id = ANY(%s::uuid[]) AND gone = 2147483647"  # noqa: S608
        connection.execute(ended.encode(), [generation, list(ids)])

    def _copy(self, connection: Connection[Any], ids: Sequence[str], vectors: Vectors, generation: int) -> None:
        dimensions = vectors.shape[1]
        row = np.dtype(
            [("n", ">i2"), ("id#", ">i4"), ("id", "V16"), ("born#", ">i4"), ("born", ">i4"), ("vector#", ">i4"),
             ("dimensions", ">i2"), ("unused", ">i2"), ("vector", ">f2", (dimensions,))]
        )  # fmt: skip
        rows = np.zeros(len(ids), row)
        rows["n"], rows["id#"], rows["born#"], rows["vector#"] = 3, 16, 4, 4 + 2 * dimensions
        rows["id"] = np.frombuffer(bytes.fromhex("".join(ids)), "V16")
        rows["born"], rows["dimensions"], rows["vector"] = generation, dimensions, vectors
        statement = f"COPY {self._table} (id, born, vector) FROM STDIN (FORMAT binary)"
        with connection.cursor() as cursor, cursor.copy(statement.encode()) as copy:
            copy.write(_HEADER + rows.tobytes() + _END)

    def _index(self, connection: Connection[Any], count: int, dimensions: int) -> None:
        memory = min(_MAX_MEMORY, 100_000_000 + count * (3 * dimensions + 400)) // 1_000
        connection.execute("SELECT set_config('maintenance_work_mem', %s, true)", [f"{memory}kB"])
        index = f"CREATE INDEX ON {self._table} USING hnsw (vector halfvec_ip_ops) WITH (m = 16, ef_construction = 64)"
        connection.execute(index.encode())
