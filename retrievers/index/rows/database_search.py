"""Search inside Postgres, by pgvector: the process holds no vectors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, LiteralString

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs.storage import Connections

if TYPE_CHECKING:
    from psycopg import Connection

    Hits = list[tuple[bytes, float]]

VALID = "born <= %(generation)s AND gone > %(generation)s"
"""The rows of a generation."""
SETTINGS: tuple[LiteralString, ...] = (
    "SET hnsw.ef_search = 1000",
    "SET hnsw.iterative_scan = relaxed_order",
    "SET hnsw.max_scan_tuples = 1000000",
    "SET hnsw.scan_mem_multiplier = 16",
)
"""For each connection that searches."""
_BEST, _PART, _PAGE = 400, 20_000, 4_096


@dataclass(frozen=True, slots=True)
class DatabaseSearch:
    """Products of the rows of a catalog with a query, found by an HNSW index (Malkov and Yashunin, 2018).

    A row of the table is valid from one generation to another, and never changes. So a search sees exactly the state
    that this object was made for, also while another process updates the table, and for an hour afterwards.

    Args:
        connections: The connections for searches.
        table: Name of the table.
        generation: The state.
        ids: ``(n,) S16``, the ids of the rows.
        order: ``(n,)``, the rows in the order of their ids.
        mean: ``(d,)``, the mean of the vectors.
    """

    connections: Connections
    table: str
    generation: int
    ids: NDArray[np.bytes_]
    order: NDArray[np.intp]
    mean: NDArray[np.float32]

    @property
    def dimensions(self) -> int:
        """Length of each vector."""
        return len(self.mean)

    def __len__(self) -> int:
        return len(self.ids)

    def best_products(
        self,
        queries: NDArray[np.float32],
        rows: NDArray[np.intp] | None = None,
        also: Iterable[NDArray[np.intp]] = (),
    ) -> NDArray[np.float32]:
        """The products of the best 400 rows with these queries ``(q, d)``; the others have that of the mean vector.

        Args:
            queries: Vectors.
            rows: The rows to search, all by default. Of at most 20,000, every product is computed; of more, so many of
                all rows are searched that about 400 of these are among them.
            also: For each query, more rows whose products are computed.

        Returns:
            ``(q, n)``, or ``(q, len(rows))``.

        Raises:
            DatabaseError: The database does not answer, or refuses.
        """
        found = np.full((len(queries), len(self)), np.inf, np.float32)
        more = list(also)
        hits = self.connections.read(lambda connection: self._hits(connection, queries, rows, more))
        for products, hits_of in zip(found, hits, strict=True):
            products[self._rows_of([row for row, _ in hits_of])] = [product for _, product in hits_of]
        found = found if rows is None else found[:, rows]
        others = np.minimum(found.min(axis=1, initial=np.inf), queries @ self.mean)
        return np.where(np.isfinite(found), found, others[:, None])

    def products(self, queries: NDArray[np.float32]) -> NDArray[np.float32]:
        """The products of all rows with these queries ``(q, d)``, as ``(q, n)``; reads every row.

        Raises:
            DatabaseError: As for ``best_products``.
        """
        return self.connections.read(lambda connection: self._every(connection, queries))

    def _hits(
        self,
        connection: Connection[Any],
        queries: NDArray[np.float32],
        rows: NDArray[np.intp] | None,
        also: Sequence[NDArray[np.intp]],
    ) -> list[Hits]:
        """Ids and products of the rows found for each query."""
        every = rows if rows is not None and len(rows) <= _PART else None
        most = _BEST if rows is None else min(len(self), _BEST * len(self) // max(1, len(rows)))
        hits: list[Hits] = []
        with connection.cursor(binary=True) as cursor:
            for place, query in enumerate(queries):
                values = {"generation": self.generation, "query": str(query.tolist()), "most": most}
                named = every if every is not None else also[place] if also else ()
                hits.append([])
                if every is None:
                    cursor.execute(self._statement("ORDER BY vector <#> %(query)s::halfvec LIMIT %(most)s"), values)
                    hits[-1] += cursor.fetchall()
                if len(named):
                    raw = self.ids[named].tobytes().hex()
                    values["ids"] = [raw[i : i + 32] for i in range(0, len(raw), 32)]
                    cursor.execute(self._statement("AND id = ANY(%(ids)s::uuid[])"), values)
                    hits[-1] += cursor.fetchall()
        return hits

    def _statement(self, which: str) -> bytes:
        product = "SELECT uuid_send(id), -(vector <#> %(query)s::halfvec)"
        return f"{product} FROM {self.table} WHERE {VALID} {which}".encode()

    def _every(self, connection: Connection[Any], queries: NDArray[np.float32]) -> NDArray[np.float32]:
        products = np.zeros((len(queries), len(self)), np.float32)
        statement = f"SELECT uuid_send(id), vector FROM {self.table} WHERE {VALID}".encode()  # noqa: S608
        with connection.transaction(), connection.cursor("every", binary=True) as cursor:
            cursor.execute(statement, {"generation": self.generation})
            while page := cursor.fetchmany(_PAGE):
                vectors = np.stack([np.frombuffer(sent, ">f2", offset=4) for _, sent in page]).astype(np.float32)
                products[:, self._rows_of([row for row, _ in page])] = queries @ vectors.T
        return products

    def _rows_of(self, ids: list[bytes]) -> NDArray[np.intp]:
        wanted = np.frombuffer(b"".join(ids), "S16")
        return self.order[np.searchsorted(self.ids, wanted, sorter=self.order)]
