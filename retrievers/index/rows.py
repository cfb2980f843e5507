"""Stores rows of vectors by their ids, in Chroma or in memory, and multiplies them with the vector of a query."""

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

from callsheet.graphs.errors import SettingsError
from callsheet.graphs.storage import cache_folder, private_file

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

Vectors = NDArray[np.float32]
IN_MEMORY = ":memory:"
PAGE = 256
MOST_AT_ONCE = 5_461  # rows that Chroma takes or gives at once
HNSW: Any = {"space": "ip", "ef_search": 400}
"""The settings of an HNSW index; it compares inner products because vectors of nodes are not of unit length."""
_GROUP = 64
_LOCK_SECONDS = 600.0
_CURE = "it can be made again: delete the folder, or choose another with index= or CALLSHEET_INDEX"
_OPENINGS = itertools.count(1)


def products(rows: Vectors, queries: Vectors) -> Vectors:
    """Returns the products of all rows ``(n, d)`` with these queries ``(q, d)``, as ``(q, n)``.

    A query takes one thread (``vecdot``): a product by the threads of a BLAS waits for all of them, up to a hundred
    times as long where the processors are busy.
    """
    if not len(rows):
        return np.zeros((len(queries), 0), np.float32)
    return np.stack([np.vecdot(rows, query) for query in queries])


def among_best(values: Vectors, most: int) -> NDArray[np.intp]:
    """Returns rows, in order, that include those with the best ``most`` values, and few others.

    The ``most`` best maxima of groups of 64 values are a lower bound: a value below all of them is not among the best.
    """
    if len(values) <= most:
        return np.arange(len(values))
    groups = len(values) // _GROUP
    maxima = values[: groups * _GROUP].reshape(groups, _GROUP).max(axis=1) if groups > most else values
    return np.flatnonzero(values >= np.partition(maxima, -most)[-most])


def default_place() -> Path:
    """Returns the folder of the indexes: one in ``CALLSHEET_HOME``, otherwise one in the user's cache."""
    return cache_folder() / "index"


class ChromaRows:
    """The rows of one Chroma collection.

    The id of a row is a hash of its content, so rows are added and deleted but never changed. ``place``, a folder or
    the address of ``chroma run``, is opened on first use, because that takes over a second.
    """

    def __init__(self, name: str, where: str | Path) -> None:
        self._name = name
        self.where = where
        self.folder = None if is_url(where) else Path(where)
        self._spelling = ""
        self._opened: Collection | None = None

    def held(self) -> dict[str, str]:
        """Maps the id of each row to the id of its node."""
        rows: dict[str, str] = {}
        for start in itertools.count(0, MOST_AT_ONCE):
            page = self._collection.get(limit=MOST_AT_ONCE, offset=start, include=["metadatas"])
            rows |= {row: str(of["node"]) for row, of in zip(page["ids"], page["metadatas"] or [], strict=True)}
            if len(page["ids"]) < MOST_AT_ONCE:
                break
        return rows

    def add(self, ids: Sequence[str], vectors: Vectors, metadatas: Sequence[Mapping[str, str]] | None = None) -> None:
        """Adds rows; a row whose id exists already stays as it is."""
        made: Any = [*map(dict, metadatas)] if metadatas else None
        self._collection.add(ids=list(ids), embeddings=vectors, metadatas=made)

    def delete(self, ids: Sequence[str]) -> None:
        """Deletes rows."""
        for page in _pages(ids):
            self._collection.delete(ids=page)

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """Returns the vectors of these rows as ``(n, d)``, in the order of the ids; all of the ids must exist."""
        parts = [np.zeros((0, 1), np.float32)] if not ids else []
        for page in _pages(ids):
            found = self._read("get", ids=page, include=["embeddings"])
            place = {row: i for i, row in enumerate(found["ids"])}
            parts.append(np.asarray(found["embeddings"], np.float32)[[place[row] for row in page]])
        return np.concatenate(parts)

    def nearest(self, queries: Vectors, most: int) -> list[dict[str, float]]:
        """Returns the rows nearest to each query by HNSW: the cosine by the id of the row, best first."""
        found = self._read("query", query_embeddings=[*queries], n_results=most, include=["distances"])
        return [
            {row: 1 - distance for row, distance in zip(ids, distances, strict=True)}
            for ids, distances in zip(found["ids"], found["distances"], strict=True)
        ]

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Prevents other processes from writing to the same folder within the block."""
        if self.folder is None:
            yield
            return
        self._collection  # noqa: B018 (makes the folder, or says why it cannot)
        with exclusive(self.folder / "nodes.lock"):
            try:
                yield
            finally:
                clear_unused_slots(self.folder)

    def reopen(self) -> None:
        """Opens the folder again, to see what other processes have written.

        Chroma caches vectors for each spelling of a path, so the folder is opened under a new spelling.
        """
        from chromadb.api.client import Client

        if self.folder is not None and self._opened is not None:
            before = self._client
            self._spelling = "/." * next(_OPENINGS)
            self._opened = self._open()
            if isinstance(before, Client):
                before.close()

    def _read(self, method: str, **what: Any) -> Any:
        """Calls a method of the collection; opens a folder again if another process has written to it."""
        collection = self._collection
        try:
            return getattr(collection, method)(**what)
        except Exception:
            if self.folder is None:
                raise
        if collection is self._opened:
            self.reopen()
        return getattr(self._collection, method)(**what)

    @property
    def _collection(self) -> Collection:
        """Returns the collection; raises a ``SettingsError`` if its place cannot be opened."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self) -> Collection:
        import chromadb
        from chromadb.config import Settings
        from chromadb.errors import ChromaError

        settings = Settings(anonymized_telemetry=False)
        how: Any = {"embedding_function": None, "configuration": {"hnsw": HNSW}}
        try:
            if self.folder is None:
                address = urlsplit(str(self.where))
                secure = address.scheme == "https"
                host = address.hostname or "localhost"
                port = address.port or (443 if secure else 80)
                self._client: ClientAPI = chromadb.HttpClient(host, port, ssl=secure, settings=settings)
            else:
                private_file(self.folder / "chroma.sqlite3")
                self._client = chromadb.PersistentClient(f"{self.folder}{self._spelling}", settings)
            return self._client.get_or_create_collection(self._name, **how)
        except (OSError, ValueError, ChromaError) as error:
            cure = "" if self.folder is None else f": {_CURE}"
            raise SettingsError(f"the index at {self.where} cannot be opened: {error}{cure}") from error


class MemoryRows:
    """The interface of ``ChromaRows`` without ``nearest``, in memory, where a collection of Chroma takes 2.7 MB."""

    folder = None

    def __init__(self) -> None:
        self._rows: dict[str, tuple[Vectors, str]] = {}

    def held(self) -> dict[str, str]:
        """Maps the id of each row to the id of its node."""
        return {row: node for row, (_, node) in [*self._rows.items()]}

    def add(self, ids: Sequence[str], vectors: Vectors, metadatas: Sequence[Mapping[str, str]]) -> None:
        """Adds rows."""
        for row, vector, metadata in zip(ids, vectors, metadatas, strict=True):
            self._rows[row] = (vector, metadata["node"])

    def delete(self, ids: Sequence[str]) -> None:
        """Deletes rows."""
        for row in ids:
            del self._rows[row]

    def vectors(self, ids: Sequence[str]) -> Vectors:
        """Returns the vectors of these rows, ``(n, d)``."""
        vectors = np.stack([self._rows[row][0] for row in ids]) if ids else np.zeros((0, 1), np.float32)
        for row, vector in zip(ids, vectors, strict=True):  # held once, as part of what is returned
            self._rows[row] = (vector, self._rows[row][1])
        return vectors

    def writing(self) -> AbstractContextManager[None]:
        """Does nothing, because no other process can write here."""
        return nullcontext()


def _pages(ids: Sequence[str]) -> Iterator[list[str]]:
    return ([*ids[start : start + PAGE]] for start in range(0, len(ids), PAGE))


def is_url(where: str | Path) -> bool:
    """Returns whether a place is an ``http(s)://`` address, not a folder.

    Raises:
        SettingsError: It is an address of another kind.
    """
    scheme, separator, _ = str(where).partition("://")
    if separator and scheme not in ("http", "https"):
        cure = "give a folder, http(s):// of a Chroma server, or module:object of a LangChain VectorStore"
        raise SettingsError(f"an index cannot be at {scheme}://: {cure}, such as a PGVectorStore for Postgres")
    return bool(separator)


@contextmanager
def exclusive(lock_file: Path) -> Iterator[None]:
    """Runs the block while no other process holds this lock file.

    Raises:
        SettingsError: Another process has been in for ten minutes.
    """
    from filelock import FileLock, Timeout

    try:
        lock = FileLock(lock_file, mode=0o600).acquire(timeout=_LOCK_SECONDS)
    except Timeout as error:
        raise SettingsError(
            f"another process has been writing to the index at {lock_file.parent} for {_LOCK_SECONDS:.0f} s: "
            "wait for it, or give this one another place"
        ) from error
    with lock:
        yield


_HEADER = struct.Struct("<4xQQQQ")
"""The beginning of ``header.bin``, after its version: an offset, and the numbers of slots, vectors and bytes a slot."""


def clear_unused_slots(folder: Path) -> None:
    """Overwrites unused slots in the HNSW files of a Chroma folder with zeros; they contain memory of the process.

    No other process may write to the folder at the same time.
    """
    for header in folder.glob("*/header.bin"):
        content = header.read_bytes()
        if len(content) < _HEADER.size:
            continue
        _, _, vectors, size = _HEADER.unpack_from(content)
        for file, used in (
            (header.with_name("data_level0.bin"), vectors * size),
            (header.with_name("length.bin"), vectors * 4),
        ):
            if not file.is_file():
                continue
            with file.open("r+b") as slots:
                slots.seek(used)
                unused = slots.read()
                if unused.strip(b"\0"):
                    slots.seek(used)
                    slots.write(bytes(len(unused)))
