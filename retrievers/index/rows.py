"""Vectors by the ids of their rows: stored in Chroma or in memory, and multiplied with a query."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs.catalog.errors import SettingsError
from callsheet.graphs.storage import cache_folder, private_file

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection
    from chromadb.api.types import GetResult

Vectors = NDArray[np.floating[Any]]
"""``(n, d)`` in single or half precision."""
LARGE = 20_000
"""Number of rows above which vectors in memory have half precision, and products are estimated first."""
_DIRECTIONS, _EXACT, _BLOCK = 96, 1_000, 8_192
_GROUP = 64


def precision(rows: int) -> type[np.float32] | type[np.float16]:
    """The type of so many vectors in memory: half precision beyond 20,000, where it changes cosines by about 1e-5."""
    return np.float32 if rows <= LARGE else np.float16


def among_best(values: NDArray[np.float32], most: int) -> NDArray[np.intp]:
    """Rows, in order, that include those of the best ``most`` values; few more if there are many values.

    The best ``most`` maxima of groups of 64 are as many values; what is below the least of them is not among the best.
    """
    if len(values) <= most:
        return np.arange(len(values))
    groups = len(values) // _GROUP
    maxima = values[: groups * _GROUP].reshape(groups, _GROUP).max(axis=1) if groups > most else values
    return np.flatnonzero(values >= np.partition(maxima, -most)[-most])


class Matrix:
    """Products of all rows with a query: exact up to 20,000 rows, above that exact for the best rows.

    Of a large matrix, the products are first estimated in the 96 directions in which its rows differ most (the leading
    eigenvectors of their second moments), which takes a quarter of the time. Then at least the best 1,000 rows are
    multiplied; the others keep the estimate. A query takes one thread (``vecdot``): a product by the threads of a BLAS
    waits for all of them, up to a hundred times as long where the processors are busy.

    Args:
        rows: ``(n, d)``, as ``precision`` says.
    """

    def __init__(self, rows: Vectors) -> None:
        self.rows = rows
        self._directions: NDArray[np.float32] | None = None
        if len(rows) > LARGE and rows.shape[1] > _DIRECTIONS:
            moments = np.zeros((rows.shape[1], rows.shape[1]), np.float32)
            for block in self._blocks():
                moments += block.T @ block
            _, vectors = np.linalg.eigh(moments)
            self._directions = np.ascontiguousarray(vectors[:, -_DIRECTIONS:], np.float32)
            self._projected = np.concatenate([block @ self._directions for block in self._blocks()])

    def __len__(self) -> int:
        return len(self.rows)

    def products(self, queries: NDArray[np.float32]) -> NDArray[np.float32]:
        """The products of all rows with these queries ``(q, d)``, as ``(q, n) float32``."""
        if self._directions is not None:
            return np.stack([self._estimated(query, self._directions) for query in queries])
        if self.rows.dtype == np.float32:
            return np.stack([np.vecdot(self.rows, query) for query in queries])
        return np.concatenate([block @ queries.T for block in self._blocks()]).T

    def _blocks(self) -> Iterator[NDArray[np.float32]]:
        for start in range(0, len(self.rows), _BLOCK):
            block: NDArray[np.float32] = self.rows[start : start + _BLOCK].astype(np.float32, copy=False)
            yield block

    def _estimated(self, query: NDArray[np.float32], directions: NDArray[np.float32]) -> NDArray[np.float32]:
        products: NDArray[np.float32] = np.vecdot(self._projected, query @ directions)
        best = among_best(products, _EXACT)
        products[best] = np.vecdot(np.asarray(self.rows[best], np.float32), query)
        return products


IN_MEMORY = ":memory:"
PAGE = 256
_LOCK_SECONDS = 600.0
_CURE = "it can be made again: delete the folder, or choose another with index= or CALLSHEET_INDEX"
_OPENINGS = itertools.count(1)


def rows_of(name: str, where: str | Path | None) -> ChromaRows | MemoryRows:
    """The rows of a collection in a folder, at an ``http(s)://`` address of ``chroma run``, or, for None, in memory.

    Raises:
        SettingsError: It is an address of something else.
    """
    return MemoryRows() if where is None else ChromaRows(name, where)


def default_place() -> Path:
    """Where indexes are: a folder in ``CALLSHEET_HOME``, otherwise in the user's cache."""
    return cache_folder() / "index"


class ChromaRows:
    """The rows of one collection. An id stands for its content for ever, so a row is added or deleted, never changed.

    The place, as for ``rows_of``, is opened when it is first used: Chroma costs more than a second.

    Attributes:
        folder: The place, where it is a folder.
    """

    def __init__(self, name: str, where: str | Path) -> None:
        self._name = name
        self.where = where
        self.folder = None if is_url(where) else Path(where)
        self._spelling = ""
        self._opened: Collection | None = None

    def held(self, metadata: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
        """The rows with these values among their metadata: id -> all of their metadata."""
        found = self._collection.get(where=dict(metadata), include=["metadatas"])
        metadatas: Sequence[Mapping[str, Any]] = found["metadatas"] or []
        return dict(zip(found["ids"], metadatas, strict=True))

    def ids(self) -> Iterator[str]:
        """The ids of all rows, read page by page."""
        for start in itertools.count(0, PAGE * 8):
            page = self._collection.get(limit=PAGE * 8, offset=start, include=[])["ids"]
            yield from page
            if len(page) < PAGE * 8:
                return

    def missing(self, ids: Sequence[str]) -> list[str]:
        """Those of these ids that there is no row of, in their order."""
        there: set[str] = set()
        for start in range(0, len(ids), PAGE):
            there.update(self._collection.get(ids=list(ids[start : start + PAGE]), include=[])["ids"])
        return [row for row in ids if row not in there]

    def add(self, ids: Sequence[str], vectors: Vectors, metadatas: Sequence[Mapping[str, str]] | None = None) -> None:
        """Adds rows; of an id that is there already the old row stays."""
        self._collection.add(
            ids=list(ids),
            embeddings=vectors,
            metadatas=[dict(metadata) for metadata in metadatas] if metadatas and any(metadatas) else None,
        )

    def delete(self, ids: Sequence[str]) -> None:
        """Deletes rows."""
        for start in range(0, len(ids), PAGE):
            self._collection.delete(ids=list(ids[start : start + PAGE]))

    def vectors(self, ids: Sequence[str], metadata: Mapping[str, str] | None = None) -> Vectors:
        """The vectors of these rows as ``(n, d)``, in the order of the ids; all of them must be there.

        Metadata that all of these rows have, and few others, lets them be read in one go.
        """
        if not ids:
            return np.zeros((0, 1), np.float32)
        if metadata is not None:
            return _ordered(self._embedded(where=dict(metadata)), ids).astype(precision(len(ids)), copy=False)
        pages = [ids[start : start + PAGE] for start in range(0, len(ids), PAGE)]
        vectors = [
            _ordered(self._embedded(ids=list(page)), page).astype(precision(len(ids)), copy=False) for page in pages
        ]
        return np.concatenate(vectors)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keeps other processes from writing to the same collection of the same folder, as ``exclusive`` does."""
        if self.folder is None:
            yield
            return
        self._collection  # noqa: B018 (makes the folder, or says why it cannot)
        with exclusive(self.folder / f"{self._name}.lock"):
            try:
                yield
            finally:
                clear_unused_slots(self.folder)

    @property
    def _collection(self) -> Collection:
        """The collection, which raises a ``SettingsError`` if its place cannot be opened."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _embedded(self, **which: Any) -> GetResult:
        from chromadb.api.client import Client
        from chromadb.errors import ChromaError

        try:
            return self._collection.get(**which, include=["embeddings"])
        except ChromaError:
            if self.folder is None:
                raise
        # Another process has written here since Chroma read the vectors of this folder, and it keeps what it read for
        # each spelling of a path: under a new one it reads again.
        if isinstance(self._client, Client):
            self._client.close()
        self._spelling = "/." * next(_OPENINGS)
        self._opened = self._open()
        return self._opened.get(**which, include=["embeddings"])

    def _open(self) -> Collection:
        from chromadb.errors import ChromaError

        try:
            self._client = self._connect()
            return self._client.get_or_create_collection(
                self._name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
            )
        except (OSError, ValueError, ChromaError) as error:
            cure = "" if self.folder is None else f": {_CURE}"
            raise SettingsError(f"the index at {self.where} cannot be opened: {error}{cure}") from error

    def _connect(self) -> ClientAPI:
        import chromadb
        from chromadb.config import Settings

        settings = Settings(anonymized_telemetry=False)
        if self.folder is None:
            address = urlsplit(str(self.where))
            secure = address.scheme == "https"
            port = address.port or (443 if secure else 80)
            return chromadb.HttpClient(address.hostname or "localhost", port, ssl=secure, settings=settings)
        private_file(self.folder / "chroma.sqlite3")
        return chromadb.PersistentClient(f"{self.folder}{self._spelling}", settings)


class MemoryRows:
    """The same as ``ChromaRows``, in a dictionary that ends with its owner.

    A collection of Chroma in memory takes 2.7 MB, which Chroma keeps until the process ends.
    """

    where = folder = None

    def __init__(self) -> None:
        self._rows: dict[str, tuple[Vectors, int, Mapping[str, str]]] = {}  # an array and the place in it

    def held(self, metadata: Mapping[str, str]) -> dict[str, Mapping[str, Any]]:
        """As in ``ChromaRows``, like all the others."""
        return {row: told for row, (_, _, told) in [*self._rows.items()] if metadata.items() <= told.items()}

    def ids(self) -> Iterator[str]:
        """As in ``ChromaRows``."""
        return iter([*self._rows])

    def missing(self, ids: Sequence[str]) -> list[str]:
        """Those of these ids that there is no row of, in their order."""
        return [row for row in ids if row not in self._rows]

    def add(self, ids: Sequence[str], vectors: Vectors, metadatas: Sequence[Mapping[str, str]] | None = None) -> None:
        """Adds rows; of an id that is there already the old row stays."""
        own: Vectors = vectors.astype(precision(len(self._rows)))
        for place, (row, told) in enumerate(zip(ids, metadatas or [{}] * len(ids), strict=True)):
            self._rows.setdefault(row, (own, place, told))

    def delete(self, ids: Sequence[str]) -> None:
        """Deletes rows."""
        for row in ids:
            self._rows.pop(row, None)

    def vectors(self, ids: Sequence[str], metadata: Mapping[str, str] | None = None) -> Vectors:
        """The vectors of these rows as ``(n, d)``, in the order of the ids; all of them must be there."""
        if not ids:
            return np.zeros((0, 1), np.float32)
        vectors: Vectors = np.empty((len(ids), self._rows[ids[0]][0].shape[1]), precision(len(ids)))
        for place, row in enumerate(ids):  # held once, as part of what is returned
            array, old, told = self._rows[row]
            vectors[place] = array[old]
            self._rows[row] = (vectors, place, told)
        return vectors

    def writing(self) -> AbstractContextManager[None]:
        """No other process writes here."""
        return nullcontext()


def is_url(where: str | Path) -> bool:
    """Whether a place is an ``http(s)://`` address rather than a folder.

    Raises:
        SettingsError: It is an address of something else.
    """
    scheme, separator, _ = str(where).partition("://")
    if separator and scheme not in ("http", "https"):
        raise SettingsError(
            f"an index cannot be at {scheme}://: give a folder, http(s):// of a Chroma server, or module:object of a "
            "LangChain VectorStore, such as a PGVectorStore for vectors in Postgres"
        )
    return bool(separator)


@contextmanager
def exclusive(lock_file: Path) -> Iterator[None]:
    """Lets one process at a time in.

    Raises:
        SettingsError: Another one has been in for ten minutes.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(lock_file, mode=0o600)
    try:
        lock.acquire(timeout=_LOCK_SECONDS)
    except Timeout as error:
        raise SettingsError(
            f"another process has been writing to the index at {lock_file.parent} for {_LOCK_SECONDS:.0f} s: "
            "wait for it, or give this one another place"
        ) from error
    try:
        yield
    finally:
        lock.release()


def _ordered(found: GetResult, ids: Sequence[str]) -> NDArray[np.float32]:
    position = {row: i for i, row in enumerate(found["ids"])}
    return np.asarray(found["embeddings"], np.float32)[[position[row] for row in ids]]


_HEADER = struct.Struct("<4xQQQQ")
"""The beginning of ``header.bin``, after its version: an offset, and the numbers of slots, vectors and bytes a slot."""
_LENGTH = 4
_ZEROS = bytes(1_048_576)


def clear_unused_slots(folder: Path) -> None:
    """Overwrites the unused slots of all HNSW files of a folder of Chroma with zeros: they hold memory of the process.

    Nobody may write to the folder at the same time.
    """
    for header in folder.glob("*/header.bin"):
        content = header.read_bytes()
        if len(content) < _HEADER.size:
            continue
        _, _, vectors, size = _HEADER.unpack_from(content)
        for name, each in (("data_level0.bin", size), ("length.bin", _LENGTH)):
            if (file := header.with_name(name)).is_file():
                _clear(file, vectors * each)


def _clear(file: Path, start: int) -> None:
    with file.open("r+b") as content:
        content.seek(start)
        while piece := content.read(len(_ZEROS)):
            if any(piece):
                content.seek(-len(piece), 1)
                content.write(_ZEROS[: len(piece)])
