"""The vectors in Chroma: embedded once, found exactly."""

from __future__ import annotations

import hashlib
import itertools
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
from langchain_core.embeddings import Embeddings
from numpy.typing import NDArray

from callsheet.graphs import SettingsError
from callsheet.retrievers.embeddings import MiniLMEmbeddings, embedder_name
from callsheet.retrievers.index import Changes, Node, Progress, Span
from callsheet.retrievers.matrix import Matrix

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection
    from chromadb.api.types import GetResult

_CHUNK = 256
_LOCK_SECONDS = 600.0
_OPENINGS = itertools.count(1)


class ChromaIndex:
    """The vectors of one catalog, kept in a Chroma collection and multiplied in memory.

    A collection belongs to one embedder and one recipe of texts. A row's id is a hash of catalog, node and
    text, so a row never changes: an indexing adds the rows that are missing and, when all are there, removes
    those that are no longer wanted. Killed anywhere in between, every row of before is still in place.

    Args:
        embeddings: What makes the vectors.
        catalog: What tells this catalog's rows from those of others in the collection.
        recipe: Version of the texts' form.
        where: A folder, an ``http(s)://`` address of ``chroma run``, or none for memory only.

    Attributes:
        where: As given.

    Raises:
        SettingsError: The place cannot be opened.
    """

    def __init__(self, embeddings: Embeddings, *, catalog: str, recipe: str, where: str | Path | None = None) -> None:
        self._embeddings = embeddings
        self._catalog = hashlib.sha256(catalog.encode()).hexdigest()[:16]
        self._name = re.sub(r"[^a-zA-Z0-9.-]+", "-", f"nodes-{embedder_name(embeddings)}-{recipe}").strip("-.")
        self.where = where
        self._folder = None if where is None or _is_url(where) else Path(where)
        self._spelling = ""
        self._collection = self._open()
        self._matrix = Matrix(np.zeros((0, 1), np.float32))

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        """As in ``VectorIndex``. Other processes that write to the same folder wait for each other."""
        rows = {self._row(node): node for node in nodes}
        with self._writing():
            held = self._held()
            missing = [(row, node) for row, node in rows.items() if row not in held]
            missing.sort(key=lambda item: len(item[1].text))
            for start in range(0, len(missing), _CHUNK):
                self._add(missing[start : start + _CHUNK])
                if progress:
                    progress(min(start + _CHUNK, len(missing)), len(missing))
            gone = [row for row in held if row not in rows]
            self._delete(gone)
            self._read(rows)
        before = set(held.values())
        wanted = {node.id for node in nodes}
        updated = sum(node.id in before for _, node in missing)
        return Changes(len(missing) - updated, updated, len(before - wanted))

    def scores(self, query: str, spans: Sequence[Span] = ()) -> NDArray[np.float32]:
        """As in ``VectorIndex``, for every node; of a large catalog, all but the best are estimates (``Matrix``)."""
        if not len(self._matrix.rows):
            return np.zeros((1 + len(spans), 0), np.float32)
        return self._matrix.products(self._encode_query(query, spans))

    def _encode_query(self, query: str, spans: Sequence[Span]) -> NDArray[np.float32]:
        if isinstance(self._embeddings, MiniLMEmbeddings):
            return self._embeddings.encode_spans(query, spans)
        texts = (query, *(query[start:end] for start, end in spans))
        return _unit(np.asarray([self._embeddings.embed_query(text) for text in texts], np.float32))

    def _row(self, node: Node) -> str:
        return hashlib.sha256(
            "\0".join((self._catalog, node.id, node.text, *map(str, node.views))).encode()
        ).hexdigest()[:32]

    def _held(self) -> dict[str, str]:
        found = self._collection.get(where={"catalog": self._catalog}, include=["metadatas"])
        metadatas: Sequence[Mapping[str, Any]] = found["metadatas"] or []
        return {row: str(metadata["node"]) for row, metadata in zip(found["ids"], metadatas, strict=True)}

    def _add(self, rows: Sequence[tuple[str, Node]]) -> None:
        vectors = self._encode([node for _, node in rows])
        self._collection.add(
            ids=[row for row, _ in rows],
            embeddings=vectors,
            metadatas=[{"catalog": self._catalog, "node": node.id, "kind": node.kind} for _, node in rows],
        )

    def _encode(self, nodes: Sequence[Node]) -> NDArray[np.float32]:
        """One vector a node: the weighted sum of its texts' vectors, whose product with a query's is their mean."""
        texts = list(dict.fromkeys(text for node in nodes for text in (node.text, *(view for view, _ in node.views))))
        if isinstance(self._embeddings, MiniLMEmbeddings):
            vectors = self._embeddings.encode(texts)
        else:
            vectors = _unit(np.asarray(self._embeddings.embed_documents(texts), np.float32))
        row = {text: i for i, text in enumerate(texts)}
        sums = np.zeros((len(nodes), vectors.shape[1]), np.float32)
        for i, node in enumerate(nodes):
            sums[i] = (1 - sum(weight for _, weight in node.views)) * vectors[row[node.text]]
            for view, weight in node.views:
                sums[i] += weight * vectors[row[view]]
        return sums

    def _delete(self, rows: Sequence[str]) -> None:
        for start in range(0, len(rows), _CHUNK):
            self._collection.delete(ids=list(rows[start : start + _CHUNK]))

    def _read(self, rows: Mapping[str, Node]) -> None:
        """Takes the vectors of these rows into memory, in their order."""
        if not rows:
            self._matrix = Matrix(np.zeros((0, 1), np.float32))
            return
        found = self._embedded()
        position = {row: i for i, row in enumerate(found["ids"])}
        self._matrix = Matrix(np.asarray(found["embeddings"], np.float32)[[position[row] for row in rows]])

    def _embedded(self) -> GetResult:
        from chromadb.api.client import Client
        from chromadb.errors import ChromaError

        try:
            return self._collection.get(where={"catalog": self._catalog}, include=["embeddings"])
        except ChromaError:
            if self._folder is None:
                raise
        # Another process has written here since Chroma read the vectors of this folder, and it keeps what it read for
        # each spelling of a path: under a new one it reads again.
        if isinstance(self._client, Client):
            self._client.close()
        self._spelling = "/." * next(_OPENINGS)
        self._collection = self._open()
        return self._collection.get(where={"catalog": self._catalog}, include=["embeddings"])

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self._folder is None:
            yield
            return
        from filelock import FileLock, Timeout

        lock = FileLock(self._folder / f"{self._name}.lock")
        try:
            lock.acquire(timeout=_LOCK_SECONDS)
        except Timeout as error:
            raise SettingsError(
                f"another process has been writing to the index at {self._folder} for {_LOCK_SECONDS:.0f} s: "
                "wait for it, or give this one another place"
            ) from error
        try:
            yield
        finally:
            lock.release()

    def _open(self) -> Collection:
        from chromadb.errors import ChromaError

        try:
            self._client = self._connect()
            return self._client.get_or_create_collection(
                self._name, embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
            )
        except (OSError, ValueError, ChromaError) as error:
            raise SettingsError(f"the index at {self.where} cannot be opened: {error}") from error

    def _connect(self) -> ClientAPI:
        import chromadb
        from chromadb.config import Settings

        settings = Settings(anonymized_telemetry=False)
        if self.where is None:
            self._name = f"{self._name}-{uuid.uuid4().hex[:8]}"
            return chromadb.EphemeralClient(settings)
        if self._folder is None:
            address = urlsplit(str(self.where))
            secure = address.scheme == "https"
            port = address.port or (443 if secure else 80)
            return chromadb.HttpClient(address.hostname or "localhost", port, ssl=secure, settings=settings)
        self._folder.mkdir(parents=True, exist_ok=True)
        return chromadb.PersistentClient(f"{self._folder}{self._spelling}", settings)


def _is_url(where: str | Path) -> bool:
    return str(where).startswith(("http://", "https://"))


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """The same rows at unit length."""
    scaled: NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return scaled
