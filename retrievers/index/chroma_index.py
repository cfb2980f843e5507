"""The vectors of a catalog in Chroma: embedded once, found exactly."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs.catalog.errors import SettingsError
from callsheet.graphs.storage import replace_bytes
from callsheet.retrievers.index.embedding.providers import Embedder, embedder_name, encode, encode_spans
from callsheet.retrievers.index.matrix import Matrix, Vectors, precision
from callsheet.retrievers.index.protocols import Changes, Node, Progress, Span
from callsheet.retrievers.index.rows import PAGE, rows_of


class ChromaIndex:
    """The vectors of one catalog, stored in a Chroma collection and multiplied in memory.

    A collection in a folder has a snapshot of the vectors beside it. Chroma is opened only if the snapshot does not
    have exactly the current rows.

    A collection belongs to one embedder and one format of texts. The id of a row is a hash of catalog, node and
    text, so a row never changes. An update first adds all missing rows, then removes those that are no longer needed.
    If it is killed, all old rows are still there.

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
            held = self._held()
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
        """As in ``ForkableIndex``: the rows are shared; each index has its own vectors in memory."""
        return copy(self)

    def scores(self, query: str, spans: Sequence[Span] = ()) -> NDArray[np.float32]:
        """As in ``VectorIndex``, for every node; of a large catalog, all but the best are estimates.

        Raises:
            SettingsError: The query's vector has other dimensions.
        """
        if not len(self._vectors):
            return np.zeros((1 + len(spans), 0), np.float32)
        return self._vectors.products(self._fitting(encode_spans(self.embeddings, query, spans)))

    def products(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """As in ``VectorProducts``; of a large catalog, all but the best are estimates.

        Raises:
            SettingsError: As for ``scores``.
        """
        if not len(self._vectors):
            return np.zeros((len(vectors), 0), np.float32)
        return self._vectors.products(self._fitting(vectors))

    def _fitting(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        if vectors.shape[1] != (there := self._vectors.dimensions):
            raise SettingsError(
                f"the index has vectors of {there} dimensions, but {embedder_name(self.embeddings)} made one of "
                f"{vectors.shape[1]}: set the embedder's attribute `name`, so that it gets its own index"
            )
        return vectors

    @property
    def _mine(self) -> Mapping[str, str]:
        return {"catalog": self._catalog}

    def _row(self, node: Node) -> str:
        return hashlib.sha256(
            "\0".join((self._catalog, node.id, node.text, *map(str, node.views))).encode()
        ).hexdigest()[:32]

    def _held(self) -> dict[str, str]:
        return {row: str(metadata["node"]) for row, metadata in self._rows.held(self._mine).items()}

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


FORMAT = 1


class Snapshot:
    """A file with the vectors of a set of rows.

    The id of a row is a hash of its content, so the vectors of the same ids are always valid, even if another process
    has changed the index. The file has one line of JSON (format, shape, type, SHA-256 of the ids and of the vectors),
    then the vectors, little-endian. It is replaced atomically.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self, rows: Sequence[str]) -> Vectors | None:
        """The vectors ``(n, d)`` of these rows in this order; None if the file is damaged or has other rows."""
        try:
            line, _, body = self._file.read_bytes().partition(b"\n")
            head = json.loads(line)
            if head["format"] != FORMAT or head["rows"] != _digest_of(rows):
                return None
            if head["sha256"] != hashlib.sha256(body).hexdigest():
                return None
            vectors = np.frombuffer(body, head.get("type", "<f4")).reshape(head["shape"])
            return vectors.astype(precision(len(vectors)), copy=False)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, rows: Sequence[str], vectors: Vectors) -> None:
        """Stores the vectors of these rows, in this order; errors are ignored, because the index works without it."""
        kind = "<f4" if vectors.dtype == np.float32 else "<f2"
        body = np.ascontiguousarray(vectors, kind).tobytes()
        head = {
            "format": FORMAT,
            "shape": vectors.shape,
            "type": kind,
            "rows": _digest_of(rows),
            "sha256": hashlib.sha256(body).hexdigest(),
        }
        with suppress(OSError):
            replace_bytes(self._file, json.dumps(head).encode() + b"\n" + body)


def _digest_of(rows: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()
