"""Indexes of the nodes of a catalog by meaning: in Chroma, in a VectorStore of LangChain, and parts of them."""

from __future__ import annotations

import hashlib
import io
import re
import uuid
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs.catalog.errors import SettingsError
from callsheet.graphs.storage import replace_bytes
from callsheet.retrievers.index.embedding import Embedder, embedder_name, encode, encode_spans
from callsheet.retrievers.index.node_texts import Changes, Node, Progress, Span, VectorIndex
from callsheet.retrievers.index.rows import PAGE, Matrix, Vectors, rows_of

if TYPE_CHECKING:
    from langchain_core.vectorstores import VectorStore

    from callsheet.retrievers.index.embedding import Embedder


class ChromaIndex:
    """The vectors of one catalog, stored in a Chroma collection and multiplied in memory.

    A collection in a folder has a snapshot of the vectors beside it; Chroma is opened only if that has other rows. A
    collection belongs to one embedder and one format of texts. The id of a row is a hash of catalog, node and text, so
    a row never changes. An update first adds all missing rows, then removes the others: killed, it leaves all old rows.

    Args:
        embeddings: The embedder.
        catalog: Name that distinguishes the rows of this catalog from others in the collection.
        recipe: Version of the format of the texts.
        where: A folder, or an ``http(s)://`` address of ``chroma run``; None: in memory only.

    Attributes:
        embeddings, where: As given.
    """

    def __init__(self, embeddings: Embedder, *, catalog: str, recipe: str, where: str | Path | None = None) -> None:
        self.embeddings = embeddings
        self._catalog = hashlib.sha256(catalog.encode()).hexdigest()[:16]
        name = re.sub(r"[^a-zA-Z0-9.-]+", "-", f"nodes-{embedder_name(embeddings)}-{recipe}").strip("-.")
        self._rows = rows_of(name, where)
        self.where = self._rows.where
        folder = self._rows.folder
        self._snapshot = None if folder is None else Snapshot(folder / f"{name}-{self._catalog}.vectors")
        self._vectors = Matrix(np.zeros((0, 1), np.float32))

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        """As in ``VectorIndex``. Other processes that write to the same folder wait for each other.

        Raises:
            SettingsError: The place cannot be opened.
        """
        rows = {self._row(node): node for node in nodes}
        known = self._snapshot.read(list(rows)) if self._snapshot else None
        if known is not None:
            self._vectors = Matrix(known)
            return Changes()
        with self._rows.writing():
            held = {row: str(metadata["node"]) for row, metadata in self._rows.held(self._mine).items()}
            missing = [(row, node) for row, node in rows.items() if row not in held]
            missing.sort(key=lambda item: len(item[1].text))
            for start in range(0, len(missing), PAGE):
                self._add(missing[start : start + PAGE])
                if progress:
                    progress(min(start + PAGE, len(missing)), len(missing))
            self._rows.delete([row for row in held if row not in rows])
            self._vectors = Matrix(self._rows.vectors(list(rows), self._mine))
            if self._snapshot:
                self._snapshot.write(list(rows), self._vectors.rows)
        before = set(held.values())
        wanted = {node.id for node in nodes}
        updated = sum(node.id in before for _, node in missing)
        return Changes(len(missing) - updated, updated, len(before - wanted))

    def fork(self) -> ChromaIndex:
        """A copy over the same rows, whose ``sync`` does not change the results of the original."""
        return copy(self)

    def scores(self, query: str, spans: Sequence[Span] = ()) -> NDArray[np.float32]:
        """As in ``VectorIndex``; of a large catalog, all but the best are estimates.

        Raises:
            SettingsError: The query's vector has other dimensions.
        """
        if not len(self._vectors):
            return np.zeros((1 + len(spans), 0), np.float32)
        return self.products(encode_spans(self.embeddings, query, spans))

    def products(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosines ``(m, n)`` of vectors ``(m, d)`` with those of every node, as ``scores`` has them."""
        if not len(self._vectors):
            return np.zeros((len(vectors), 0), np.float32)
        if vectors.shape[1] != (there := self._vectors.rows.shape[1]):
            raise SettingsError(
                f"the index has vectors of {there} dimensions, but {embedder_name(self.embeddings)} made one of "
                f"{vectors.shape[1]}: set the embedder's attribute `name`, so that it gets its own index"
            )
        return self._vectors.products(vectors)

    @property
    def _mine(self) -> Mapping[str, str]:
        return {"catalog": self._catalog}

    def _row(self, node: Node) -> str:
        content = "\0".join((self._catalog, node.id, node.text, *map(str, node.views)))
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    def _add(self, rows: Sequence[tuple[str, Node]]) -> None:
        vectors = self._encode([node for _, node in rows])
        metadatas = [{**self._mine, "node": node.id, "kind": node.kind} for _, node in rows]
        self._rows.add([row for row, _ in rows], vectors, metadatas)

    def _encode(self, nodes: Sequence[Node]) -> NDArray[np.float32]:
        """One vector a node: the weighted sum of its texts' vectors, whose product with a query's is their mean."""
        texts = list(dict.fromkeys(text for node in nodes for text in (node.text, *(view for view, _ in node.views))))
        vectors = encode(self.embeddings, texts)
        row = {text: i for i, text in enumerate(texts)}
        sums = np.zeros((len(nodes), vectors.shape[1]), np.float32)
        for i, node in enumerate(nodes):
            sums[i] = (1 - sum(weight for _, weight in node.views)) * vectors[row[node.text]]
            for view, weight in node.views:
                sums[i] += weight * vectors[row[view]]
        return sums


class Snapshot:
    """A file with the vectors of a set of rows: a SHA-256 of the ids and of the rest, then an array of NumPy.

    The id of a row is a hash of its content, so the vectors of the same ids are always valid, even if another process
    has changed the index.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self, rows: Sequence[str]) -> Vectors | None:
        """The vectors ``(n, d)`` of these rows in this order; None if the file is damaged or has other rows."""
        try:
            content = self._file.read_bytes()
        except OSError:
            return None
        array = io.BytesIO(content)
        array.seek(_SEAL)
        return np.load(array) if content[:_SEAL] == _seal(rows, memoryview(content)[_SEAL:]) else None

    def write(self, rows: Sequence[str], vectors: Vectors) -> None:
        """Stores the vectors of these rows, in this order; errors are ignored, because the index works without it."""
        array = io.BytesIO()
        np.save(array, vectors)
        with suppress(OSError):
            replace_bytes(self._file, _seal(rows, array.getbuffer()) + array.getvalue())


_SEAL = 32


def _seal(rows: Sequence[str], array: memoryview) -> bytes:
    digest = hashlib.sha256("\n".join(rows).encode())
    digest.update(array)
    return digest.digest()


_FROM_STORE, _PAGE = 200, 1_000


class VectorStoreIndex:
    """A LangChain ``VectorStore`` as an index.

    The id of a document is made of the node's id and text, so that several processes can share a store: what one of
    them has added, no other embeds again, and a search passes over what is not of its own catalog.

    Args:
        store: A store for this catalog only; it uses its own embedder.
    """

    def __init__(self, store: VectorStore) -> None:
        # Cosines below 0 are as they should be; the warning holds all texts.
        warnings.filterwarnings("ignore", "Relevance scores must be between 0 and 1")
        self._store = store
        self._nodes: dict[str, str] = {}  # the nodes of the catalog by the ids of their documents

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        """As in ``VectorIndex``. A store cannot list its documents: only those that this object knew are deleted."""
        wanted = {_document_id(node): node for node in nodes}
        missing = self._missing([row for row in wanted if row not in self._nodes])
        for start in range(0, len(missing), _PAGE):
            page = {row: wanted[row] for row in missing[start : start + _PAGE]}
            self._store.add_texts(
                [node.text for node in page.values()],
                metadatas=[{"node": node.id, "kind": node.kind, "row": row} for row, node in page.items()],
                ids=list(page),
            )
            if progress:
                progress(start + len(page), len(missing))
        if gone := [row for row in self._nodes if row not in wanted]:
            self._store.delete(gone)
        before, after = set(self._nodes.values()), {node.id for node in nodes}
        updated = sum(wanted[row].id in before for row in missing)
        self._nodes = {row: node.id for row, node in wanted.items()}
        return Changes(len(missing) - updated, updated, len(before - after))

    def scores(self, query: str, spans: Sequence[Span] = ()) -> NDArray[np.float32]:
        """As in ``VectorIndex``, with the store's relevance scores, or its plain scores if it has no others."""
        column = {row: i for i, row in enumerate(self._nodes)}
        scores = np.zeros((1 + len(spans), len(column)), np.float32)
        for i, text in enumerate((query, *(query[start:end] for start, end in spans))):
            hits = self._similar(text, min(len(column), _FROM_STORE))
            scores[i] = min((score for _, score in hits), default=0.0)
            for row, score in hits:
                if row in column:
                    scores[i, column[row]] = score
        return scores

    def _missing(self, rows: Sequence[str]) -> list[str]:
        """Those of these documents that the store does not have, in their order."""
        there: set[str | None] = set()
        with suppress(NotImplementedError):  # a store without ``get_by_ids``: they are added again under the same ids
            for start in range(0, len(rows), _PAGE):
                there |= {document.id for document in self._store.get_by_ids(rows[start : start + _PAGE])}
        return [row for row in rows if row not in there]

    def _similar(self, text: str, k: int) -> list[tuple[str, float]]:
        if k == 0:
            return []
        try:
            hits = self._store.similarity_search_with_relevance_scores(text, k=k)
        except NotImplementedError:
            hits = self._store.similarity_search_with_score(text, k=k)
        return [(str(document.metadata.get("row")), float(score)) for document, score in hits]


def _document_id(node: Node) -> str:
    """A UUID, which every store takes."""
    return str(uuid.UUID(bytes=hashlib.sha256(f"{node.id}\0{node.text}".encode()).digest()[:16]))


class PartOfIndex:
    """The part of an index that a user may see: a ``VectorIndex`` of these rows, over the vectors of the whole."""

    def __init__(self, whole: VectorIndex, rows: Sequence[int]) -> None:
        self._whole = whole
        self._rows = np.asarray(rows, np.intp)

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        """Changes nothing: only the whole index is updated."""
        return Changes()

    def scores(self, query: str, spans: Sequence[Span] = ()) -> NDArray[np.float32]:
        """As in ``VectorIndex``, for these rows."""
        return self._whole.scores(query, spans)[:, self._rows]
