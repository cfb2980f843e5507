"""Indexes of the nodes of a catalog: by words (BM25), and by meaning, in Chroma or in a VectorStore of LangChain."""

from __future__ import annotations

import hashlib
import io
import logging
import math
import re
import uuid
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import bm25s
import numpy as np
from numpy.typing import NDArray

from callsheet.graphs.errors import SettingsError
from callsheet.graphs.storage import replace_bytes
from callsheet.graphs.text.words import tokens
from callsheet.retrievers.index.embedding import Embedder, embedder_name, encode, encode_spans
from callsheet.retrievers.index.node_texts import Changes, Node, Progress, Span, VectorIndex
from callsheet.retrievers.index.rows import MOST_AT_ONCE, PAGE, ChromaRows, MemoryRows, Vectors, products

if TYPE_CHECKING:
    from langchain_core.vectorstores import VectorStore

logging.getLogger("bm25s").setLevel(logging.WARNING)  # bm25s sets DEBUG, which fills the logs of servers


@dataclass(frozen=True, slots=True)
class Matches:
    """The BM25 score of every node, ``(n,)``, and the share of the query's words in the best match, by rarity."""

    scores: NDArray[np.float32]
    coverage: float = 0.0


class LexicalIndex:
    """An index by words with BM25 scores, which is rebuilt in memory when the nodes change.

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework: BM25 and Beyond (2009), by bm25s.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._count = len(nodes)
        self._places: dict[str, int] = {}
        corpus = [self._numbers(tokens(node.words)) for node in nodes]
        self._bm25 = bm25s.BM25() if self._places else None
        self._rows: NDArray[np.intp] = np.arange(len(nodes))
        if self._bm25:
            self._bm25.index((corpus, self._places), create_empty_token=False, show_progress=False)

    def _numbers(self, words: Iterable[str]) -> list[int]:
        """Returns the number of each word; a new word gets the next one."""
        return [self._places.setdefault(word, len(self._places)) for word in words]

    def part(self, rows: Sequence[int]) -> LexicalIndex:
        """Returns the index restricted to these rows, in this order; the rarity of words does not change."""
        part = copy(self)
        part._rows = self._rows[np.asarray(rows, np.intp)]
        return part

    def scores(self, query: str) -> Matches:
        """Returns BM25 of every node for the words of a query."""
        words = list(dict.fromkeys(tokens(query)))
        known = [word for word in words if word in self._places]
        if self._bm25 is None or not known or not len(self._rows):
            return Matches(np.zeros(len(self._rows), np.float32))
        scores = np.asarray(self._bm25.get_scores(known), np.float32)[self._rows]
        best = self._rows[scores.argmax()]
        rarity = {word: inverse_frequency(len(self._nodes_with(word)), self._count) for word in words}
        covered = sum(rarity[word] for word in known if best in self._nodes_with(word))
        return Matches(scores, covered / sum(rarity.values()))

    def _nodes_with(self, word: str) -> NDArray[np.int32]:
        """Returns the rows of the nodes that have a word."""
        place = self._places.get(word)
        if self._bm25 is None or place is None:
            return np.zeros(0, np.int32)
        start, end = self._bm25.scores["indptr"][place : place + 2]
        return np.asarray(self._bm25.scores["indices"][start:end])


def inverse_frequency(n: int, count: int) -> float:
    """Returns the inverse document frequency of a word in n of N texts: ``log(1 + (N - n + .5) / (n + .5))``."""
    return math.log1p((count - n + 0.5) / (n + 0.5))


def keyword_score(keywords: Iterable[str], text: str) -> int:
    """Returns the score of a text for distinct keywords in its case: the sum of ``count(k, T) * |k|``.

    Source: A-RAG (arXiv 2602.03442), Eq. 1; longer keywords have more weight.
    """
    return sum(text.count(word) * len(word) for word in keywords)


EXACT = 20_000
"""Number of nodes up to which all vectors are in memory and compared with a query."""
_HITS = 200
"""Number of nodes that a search in a store returns."""
_PAGE = 1_000
"""Number of documents that a store takes at once."""


class ChromaIndex:
    """The vectors of one catalog, stored in a Chroma collection.

    Up to 20,000 nodes in a folder are compared in memory, with vectors from a snapshot beside Chroma, which is opened
    only if that has other rows. Of more nodes, or on a Chroma server, ``collection.query`` finds the best 200, and the
    others get the lowest cosine of these.

    A collection belongs to one embedder, format of texts and catalog. The id of a row is a hash of node and text, so a
    row never changes. An update first adds all missing rows, then removes the others: killed, it leaves all old rows,
    and the next update adds the rest.

    Args:
        embeddings: The embedder.
        catalog: Name that distinguishes the rows of this catalog from others in the same place.
        recipe: Version of the format of the texts.
        where: A folder, or an ``http(s)://`` address of ``chroma run``; None: in memory only.
    """

    def __init__(self, embeddings: Embedder, *, catalog: str, recipe: str, where: str | Path | None = None) -> None:
        self.embeddings = embeddings
        self.where = where
        self._catalog = hashlib.sha256(catalog.encode()).hexdigest()[:16]
        name = f"nodes-{embedder_name(embeddings)}-{recipe}-{self._catalog}"
        name = re.sub(r"[^a-zA-Z0-9.-]+", "-", name).strip("-.")
        self._stored = None if where is None else ChromaRows(name, where)
        self._rows = self._stored or MemoryRows()
        self._snapshot = self._rows.folder and self._rows.folder / f"{name}.vectors"
        self._columns: dict[str, int] = {}
        self._vectors: Vectors | None = None
        self._dimensions = 0
        self._after = 0  # hash of all rows after the last update

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        """Updates the rows, as in ``VectorIndex``; other processes wait until it is done.

        Raises:
            SettingsError: The place cannot be opened.
        """
        rows = {self._row(node): node for node in nodes}
        ids = list(rows)
        fits_in_memory = self._fits_in_memory(len(ids))
        if fits_in_memory and self._take_snapshot(ids):
            return Changes()
        with self._rows.writing():
            before = self._rows.held()
            # Chroma does not see what another process has written since this one opened the folder.
            if self._stored and self._after not in (0, hash(frozenset(before))):
                self._stored.reopen()
            missing = [(row, node) for row, node in rows.items() if row not in before]
            self._add_all(missing, progress)
            self._rows.delete([row for row in before if row not in rows])
            # The vectors of a large index stay in the store; the first tells their dimensions.
            self._take(ids, self._rows.vectors(ids if fits_in_memory else ids[:1]))
            self._after = hash(frozenset(ids))
            if self._snapshot and self._vectors is not None:
                write_snapshot(self._snapshot, ids, self._vectors)
        return _changes(before.values(), [node.id for _, node in missing], nodes)

    @property
    def in_memory(self) -> Vectors | None:
        """Returns the vectors ``(n, d)`` in the order of the nodes; None if only the store has them."""
        return self._vectors

    def fork(self) -> ChromaIndex:
        """Returns a copy over the same rows; its ``sync`` does not change the original's vectors in memory."""
        return copy(self)

    def scores(self, query: str, spans: Sequence[Span] = ()) -> Vectors:
        """Scores every node, as in ``VectorIndex``.

        Raises:
            SettingsError: The query's vector has other dimensions than the index.
        """
        if not self._columns:
            return np.zeros((1 + len(spans), 0), np.float32)
        vectors = encode_spans(self.embeddings, query, spans)
        if self._vectors is not None or self._stored is None:
            return self.products(vectors)
        self._check(vectors)
        return _completed(self._stored.nearest(vectors, min(_HITS, len(self._columns))), self._columns)

    def products(self, vectors: Vectors) -> Vectors:
        """Returns the cosines ``(m, n)`` of vectors ``(m, d)`` with those of every node."""
        if not self._columns:
            return np.zeros((len(vectors), 0), np.float32)
        self._check(vectors)
        if self._vectors is not None:
            return products(self._vectors, vectors)
        ids = list(self._columns)
        pages = (self._rows.vectors(ids[start : start + MOST_AT_ONCE]) for start in range(0, len(ids), MOST_AT_ONCE))
        return np.concatenate([products(page, vectors) for page in pages], axis=1)

    def part(self, rows: Sequence[int]) -> Vectors | None:
        """Returns the vectors ``(m, d)`` of these nodes, to compare them in memory.

        None if all nodes are compared in memory already, or if these nodes are too many.

        It is None if all nodes are compared in memory already, or if these are too many.
        """
        if self._vectors is not None or len(rows) > EXACT:
            return None
        ids = list(self._columns)
        return self._rows.vectors([ids[row] for row in rows])

    def _take(self, ids: Sequence[str], vectors: Vectors) -> None:
        """Takes over the rows of the catalog, and their vectors; if only the first one is given, the store has them."""
        self._columns = {row: column for column, row in enumerate(ids)}
        self._vectors = vectors if len(vectors) == len(ids) else None
        self._dimensions = vectors.shape[1]

    def _check(self, vectors: Vectors) -> None:
        if vectors.shape[1] != self._dimensions:
            raise SettingsError(
                f"the index has vectors of {self._dimensions} dimensions, but {embedder_name(self.embeddings)} made "
                f"one of {vectors.shape[1]}: set the embedder's attribute `name`, so that it gets its own index"
            )

    def _row(self, node: Node) -> str:
        content = "\0".join((self._catalog, node.id, node.text, *map(str, node.views)))
        return hashlib.sha256(content.encode()).hexdigest()[:32]

    def _fits_in_memory(self, nodes: int) -> bool:
        """Returns whether all vectors are compared in memory; those on a Chroma server never are."""
        return self.where is None or (self._snapshot is not None and nodes <= EXACT)

    def _take_snapshot(self, ids: Sequence[str]) -> bool:
        """Takes over the vectors of the snapshot; returns False if it has other rows, or there is none."""
        vectors = read_snapshot(self._snapshot, ids) if self._snapshot else None
        if vectors is None:
            return False
        self._take(ids, vectors)
        return True

    def _add_all(self, missing: Iterable[tuple[str, Node]], progress: Progress | None) -> None:
        """Embeds nodes and adds them page by page, the shortest first, because an embedder pads the texts of a page."""
        rows = sorted(missing, key=lambda item: len(item[1].text))
        for start in range(0, len(rows), PAGE):
            self._add(rows[start : start + PAGE])
            if progress:
                progress(min(start + PAGE, len(rows)), len(rows))

    def _add(self, rows: Sequence[tuple[str, Node]]) -> None:
        """Adds one vector for each node: the weighted sum of its texts' vectors.

        Its product with a query's vector is the weighted mean of their cosines.
        """
        texts: dict[str, int] = {}
        for _, node in rows:
            for text in (node.text, *(view for view, _ in node.views)):
                texts.setdefault(text, len(texts))
        vectors = encode(self.embeddings, list(texts))
        sums = np.zeros((len(rows), vectors.shape[1]), np.float32)
        metadatas = []
        for place, (_, node) in enumerate(rows):
            sums[place] = (1 - sum(weight for _, weight in node.views)) * vectors[texts[node.text]]
            for view, weight in node.views:
                sums[place] += weight * vectors[texts[view]]
            agent = "" if node.kind == "skill" else node.owner
            metadatas.append({"node": node.id, "kind": node.kind, "owner": node.owner, "agent": agent})
        self._rows.add([row for row, _ in rows], sums, metadatas)


def read_snapshot(file: Path, rows: Sequence[str]) -> Vectors | None:
    """Reads the vectors ``(n, d)`` of these rows in this order; None if the file is damaged or has other rows.

    The id of a row is a hash of its content, so the vectors of the same ids are always valid, even if another process
    has changed the index.
    """
    try:
        content = file.read_bytes()
    except OSError:
        return None
    if content[:_SEAL] != _seal(rows, memoryview(content)[_SEAL:]):
        return None
    array = io.BytesIO(content)
    array.seek(_SEAL)
    vectors: Vectors = np.load(array)
    return vectors


def write_snapshot(file: Path, rows: Sequence[str], vectors: Vectors) -> None:
    """Stores the vectors of these rows, in this order; errors are ignored, because the index works without it."""
    array = io.BytesIO()
    np.save(array, vectors)
    with suppress(OSError):
        replace_bytes(file, _seal(rows, array.getbuffer()) + array.getvalue())


_SEAL = 32
"""Bytes before the array in a snapshot: a hash of the rows and of the array."""


def _seal(rows: Sequence[str], array: memoryview) -> bytes:
    """Returns the SHA-256 of the ids and of the array."""
    digest = hashlib.sha256("\n".join(rows).encode())
    digest.update(array)
    return digest.digest()


def _changes(before: Iterable[str], added: Sequence[str], nodes: Sequence[Node]) -> Changes:
    """Counts the nodes that are new, have a new text, and are gone."""
    old = set(before)
    updated = sum(node in old for node in added)
    removed = old.difference(node.id for node in nodes)
    return Changes(len(added) - updated, updated, len(removed))


def _completed(hits: Sequence[Mapping[str, float]], columns: Mapping[str, int]) -> Vectors:
    """Returns a row of scores for each query: those of its hits; every other node gets the lowest of them."""
    scores = np.zeros((len(hits), len(columns)), np.float32)
    for row, found in zip(scores, hits, strict=True):
        row[:] = min(found.values(), default=0.0)
        for name in found.keys() & columns.keys():
            row[columns[name]] = found[name]
    return scores


class VectorStoreIndex:
    """A LangChain ``VectorStore`` as an index.

    The id of a document is made of the node's id and text, so that several processes can share a store: what one of
    them has added, no other embeds again, and a search passes over what is not of its own catalog.

    The store is for this catalog only, and uses its own embedder.
    """

    def __init__(self, store: VectorStore) -> None:
        # Cosines below 0 are as they should be; the warning holds all texts.
        warnings.filterwarnings("ignore", "Relevance scores must be between 0 and 1")
        self._store = store
        self._nodes: dict[str, str] = {}  # the nodes of the catalog by the ids of their documents

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        """Updates the store, as in ``VectorIndex``.

        A store cannot list its documents, so only those that this object knew are deleted.
        """
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
        gone = [row for row in self._nodes if row not in wanted]
        if gone:
            self._store.delete(gone)
        changes = _changes(self._nodes.values(), [wanted[row].id for row in missing], nodes)
        self._nodes = {row: node.id for row, node in wanted.items()}
        return changes

    def scores(self, query: str, spans: Sequence[Span] = ()) -> Vectors:
        """Scores every node by the store's relevance scores, or by its plain scores if it has no others."""
        texts = (query, *(query[start:end] for start, end in spans))
        hits = [self._similar(text, min(len(self._nodes), _HITS)) for text in texts]
        return _completed(hits, {row: column for column, row in enumerate(self._nodes)})

    def _missing(self, rows: Sequence[str]) -> list[str]:
        """Returns those of these documents that the store does not have, in their order."""
        there: set[str | None] = set()
        with suppress(NotImplementedError):  # a store without ``get_by_ids``: they are added again under the same ids
            for start in range(0, len(rows), _PAGE):
                there |= {document.id for document in self._store.get_by_ids(rows[start : start + _PAGE])}
        return [row for row in rows if row not in there]

    def _similar(self, text: str, k: int) -> dict[str, float]:
        """Returns the ids of the k most similar documents, with their scores."""
        if k == 0:
            return {}
        try:
            hits = self._store.similarity_search_with_relevance_scores(text, k=k)
        except NotImplementedError:
            hits = self._store.similarity_search_with_score(text, k=k)
        return {str(document.metadata.get("row")): float(score) for document, score in hits}


def _document_id(node: Node) -> str:
    """Returns the id of a node's document: a UUID, because every store takes one."""
    return str(uuid.UUID(bytes=hashlib.sha256(f"{node.id}\0{node.text}".encode()).digest()[:16]))


class PartOfIndex:
    """The part of an index that a user may see, as a ``VectorIndex`` that shares the vectors of the whole."""

    def __init__(self, whole: VectorIndex, rows: Sequence[int]) -> None:
        self._whole = whole
        self._rows = np.asarray(rows, np.intp)
        self._vectors = whole.part(rows) if isinstance(whole, ChromaIndex) else None

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        """Changes nothing: only the whole index is updated."""
        return Changes()

    def scores(self, query: str, spans: Sequence[Span] = ()) -> Vectors:
        """Scores these rows, as in ``VectorIndex``."""
        if self._vectors is not None and isinstance(self._whole, ChromaIndex):
            return products(self._vectors, encode_spans(self._whole.embeddings, query, spans))
        return self._whole.scores(query, spans)[:, self._rows]
