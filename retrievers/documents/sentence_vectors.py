"""Stores the vectors of the sentences of a folder, and compares them with a query."""

from __future__ import annotations

import hashlib
import re
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from callsheet.retrievers.documents.document_text import Chunk, SqliteFile, TextStore
from callsheet.retrievers.index.embedding import Embedder, encode, encode_spans
from callsheet.retrievers.index.node_texts import Progress
from callsheet.retrievers.index.rows import Vectors, products

COMPARED = 40_000
"""Maximum number of characters of the chunks whose sentences are compared with a query if not all are embedded."""
_AT_ONCE = 1_024
"""Number of texts that are embedded, and of vectors that are read, at once."""
_DIGEST = 280
"""Number of characters of the digest of a chunk."""
_PIECES = 5
"""Number of sentences whose beginnings are in a digest."""
_WORDS_WEIGHT = 0.6
"""Weight of a chunk's share of the query's words, beside 1 for the cosine of its digest."""
_SAYS_SOMETHING = re.compile(r"[^\W_]\W*[^\W_]")


@dataclass(frozen=True, slots=True)
class Similar:
    """How similar all chunks are to a query.

    Attributes:
        chunks: Their ids.
        starts: ``(chunks + 1,)`` where the sentences of each chunk begin among all.
        places: ``(sentences,)`` place of each sentence in its chunk.
        scores: ``(chunks,)`` cosine of the best sentence of each (Eq. 3).
        sentences: ``(sentences,)`` cosine of every sentence, chunk by chunk. The sentences of a chunk that was not
            compared have the score of its digest, at most the lowest score of the compared chunks.
        compared: Number of chunks whose sentences were compared: all of them, or those that were preselected.
    """

    chunks: tuple[str, ...]
    starts: NDArray[np.int64]
    places: NDArray[np.uint32]
    scores: NDArray[np.float32]
    sentences: NDArray[np.float32]
    compared: int


class _Table(NamedTuple):
    """As in ``Similar``; the characters and the digest of each chunk, and the id of each sentence."""

    chunks: tuple[str, ...]
    starts: NDArray[np.int64]
    places: NDArray[np.uint32]
    sizes: NDArray[np.int64]
    digests: tuple[str, ...]
    ids: tuple[bytes, ...]


class SentenceVectors(SqliteFile):
    """The vectors of the sentences of one folder, by one embedder.

    The id of a row is the hash of its text, so a sentence in many chunks, or in a moved one, is embedded once. Indexing
    embeds all sentences if they are few enough. Otherwise it embeds a digest of each chunk, and a query embeds the
    sentences of the chunks that are promising by digest and words. Which sentences are compared depends on the query
    alone, not on earlier queries.

    Source: A-RAG (arXiv 2602.03442), section 3.1: each sentence is embedded and mapped to its chunk.
    """

    schema = "CREATE TABLE IF NOT EXISTS vector (id BLOB PRIMARY KEY, value BLOB NOT NULL)"

    def __init__(self, path: Path, embeddings: Embedder, store: TextStore) -> None:
        super().__init__(path)
        self._embeddings = embeddings
        self._store = store
        self._used: set[bytes] = set()
        self._table: _Table | None = None
        self._last: tuple[str, Similar] | None = None
        self._building = threading.Lock()

    def fill(self, chunks: Iterable[Chunk], most: float, progress: Progress) -> tuple[int, bool]:
        """Embeds what has no vector yet in these chunks; after an interruption, the next call continues.

        Args:
            chunks: All chunks of the folder.
            most: Characters of sentences to embed; if more have no vector, the digests get theirs.
            progress: Called with the number of texts that are embedded, and of all.

        Returns:
            The number of different sentences, and whether all of them have a vector now.
        """
        embedded = self._ids()
        rows: set[bytes] = set()
        missing: dict[bytes, str] = {}
        digests: dict[bytes, str] = {}
        size = 0
        for chunk in chunks:
            digest = digest_text(chunk)
            if digest:
                digests[_row(digest)] = digest
            for _, sentence in _sentences(chunk):
                row = _row(sentence)
                if row not in rows and row not in embedded:
                    size += len(sentence)
                    # Of a large folder, the sentences must not all be in memory.
                    if size <= most:
                        missing[row] = sentence
                rows.add(row)
        exact = size <= most
        if exact:
            self._used = rows
        else:
            self._used = rows | digests.keys()
            missing = {row: digest for row, digest in digests.items() if row not in embedded}
        order = list(missing)
        for start in range(0, len(order), _AT_ONCE):
            self._embed({row: missing[row] for row in order[start : start + _AT_ONCE]})
            progress(min(start + _AT_ONCE, len(order)), len(order))
        return len(rows), exact

    def prune(self) -> None:
        """Removes the vectors of texts that the last ``fill`` did not contain."""
        with self._transaction() as connection:
            unused = ((row,) for row in self._ids() - self._used)
            connection.executemany("DELETE FROM vector WHERE id = ?", unused)
        with self._building:
            self._table = None
            self._last = None

    def similar(self, query: str, words: Callable[[], Mapping[str, float]]) -> Similar:
        """Compares a query with all sentences, or only with those of the most promising chunks.

        Other chunks get an estimated score. ``words`` returns, for the id of each chunk, its share of the query's
        words, weighted by rarity. A query that is repeated, as to choose chunks and then sentences, is compared once.
        """
        last = self._last
        if last is not None and last[0] == query:
            return last[1]
        vector = encode_spans(self._embeddings, query)
        with self._building:
            if self._table is None:
                self._table = self._built()
            similar = self._compared(self._table, vector, words)
            self._last = (query, similar)
        return similar

    def _compared(self, table: _Table, vector: Vectors, words: Callable[[], Mapping[str, float]]) -> Similar:
        cosines = self._cosines(vector)
        if all(row in cosines for row in table.ids):
            return _exact(table, cosines)
        by_digest = self._compare_digests(table, cosines, vector)
        compared = _promising(table, by_digest, words())
        self._compare_sentences(table, compared, cosines, vector)
        return _estimated(table, cosines, by_digest, compared)

    def _compare_digests(self, table: _Table, cosines: dict[bytes, float], vector: Vectors) -> NDArray[np.float32]:
        """Returns the cosine of the digest of each chunk, ``(chunks,)``."""
        self._compare({_row(digest): digest for digest in table.digests}, cosines, vector)
        return np.array([cosines[_row(digest)] for digest in table.digests], np.float32)

    def _compare_sentences(
        self, table: _Table, compared: NDArray[np.bool_], cosines: dict[bytes, float], vector: Vectors
    ) -> None:
        """Adds the cosines of the sentences of these chunks."""
        texts: dict[bytes, str] = {}
        for place in np.flatnonzero(compared):
            chunk = self._store.chunk(table.chunks[place])
            if chunk is not None:  # None if another process has updated the index
                texts.update((_row(text), text) for _, text in _sentences(chunk))
        self._compare(texts, cosines, vector)

    def _ids(self) -> set[bytes]:
        return {row for (row,) in self._read("SELECT id FROM vector")}

    def _cosines(self, vector: Vectors) -> dict[bytes, float]:
        """Returns the cosine of every row with a vector ``(1, d)``; reads the rows in blocks, to save memory."""
        cosines: dict[bytes, float] = {}
        with closing(self._connect()) as connection:
            rows = connection.execute("SELECT id, value FROM vector")
            while page := rows.fetchmany(_AT_ONCE):
                block = np.frombuffer(b"".join(value for _, value in page), np.float32).reshape(len(page), -1)
                ids = [row for row, _ in page]
                cosines.update(zip(ids, products(block, vector)[0].tolist(), strict=True))
        return cosines

    def _embed(self, texts: Mapping[bytes, str]) -> Vectors:
        vectors = encode(self._embeddings, [*texts.values()])
        with self._transaction() as connection:
            rows = zip(texts, map(np.ndarray.tobytes, vectors), strict=True)
            connection.executemany("INSERT OR IGNORE INTO vector (id, value) VALUES (?, ?)", rows)
        return vectors

    def _compare(self, texts: Mapping[bytes, str], cosines: dict[bytes, float], vector: Vectors) -> None:
        """Adds the cosines that are missing; embeds these texts, whose vectors were not needed before."""
        missing = {row: text for row, text in texts.items() if row not in cosines}
        if missing:
            cosines.update(zip(missing, products(self._embed(missing), vector)[0].tolist(), strict=True))

    def _built(self) -> _Table:
        chunks: list[str] = []
        digests: list[str] = []
        sizes: list[int] = []
        starts = [0]
        places = array("I")
        ids: list[bytes] = []
        known: dict[bytes, bytes] = {}
        for chunk in self._store.chunks():
            for place, sentence in _sentences(chunk):
                row = _row(sentence)
                places.append(place)
                # Equal ids are one object, which saves memory.
                ids.append(known.setdefault(row, row))
            if len(ids) > starts[-1]:
                chunks.append(chunk.id)
                sizes.append(len(chunk.text))
                digests.append(digest_text(chunk))
                starts.append(len(ids))
        return _Table(
            chunks=tuple(chunks),
            starts=np.array(starts, np.int64),
            places=np.array(places, np.uint32),
            sizes=np.array(sizes, np.int64),
            digests=tuple(digests),
            ids=tuple(ids),
        )


def _exact(table: _Table, cosines: Mapping[bytes, float]) -> Similar:
    """Returns the similarity of chunks whose sentences were all compared."""
    sentences = np.array([cosines[row] for row in table.ids], np.float32)
    scores = np.zeros(0, np.float32)
    if table.chunks:
        scores = np.maximum.reduceat(sentences, table.starts[:-1])
    return Similar(table.chunks, table.starts, table.places, scores, sentences, len(table.chunks))


def _estimated(
    table: _Table, cosines: Mapping[bytes, float], by_digest: NDArray[np.float32], compared: NDArray[np.bool_]
) -> Similar:
    """Returns the similarity of all chunks; those that were not compared have that of their digest.

    None of these is above the least of the compared chunks, because a digest is no sentence of the chunk.
    """
    sentences = np.array([cosines.get(row, 0.0) for row in table.ids], np.float32)
    scores = np.maximum.reduceat(sentences, table.starts[:-1])
    if not compared.all():
        scores = np.where(compared, scores, np.minimum(by_digest, scores[compared].min(initial=1)))
        counts = np.diff(table.starts)
        sentences = np.where(np.repeat(compared, counts), sentences, np.repeat(scores, counts))
    return Similar(table.chunks, table.starts, table.places, scores, sentences, int(compared.sum()))


def digest_text(chunk: Chunk) -> str:
    """Returns a digest of a chunk for embedding: the beginnings of up to five of its sentences, about 70 tokens.

    The sentences are spread evenly over the chunk. A chunk without sentences has an empty digest.
    """
    sentences = [sentence for _, sentence in _sentences(chunk)]
    if len(sentences) > _PIECES:
        sentences = [sentences[i * len(sentences) // _PIECES] for i in range(_PIECES)]
    return " ".join(" ".join(sentence.split())[: _DIGEST // len(sentences)] for sentence in sentences)


def _promising(table: _Table, by_digest: NDArray[np.float32], words: Mapping[str, float]) -> NDArray[np.bool_]:
    """Returns whether the sentences of each chunk are compared, ``(chunks,)``: the best by digest and words."""
    shares = np.array([words.get(chunk, 0.0) for chunk in table.chunks], np.float32)
    order = np.argsort(-(by_digest + _WORDS_WEIGHT * shares), kind="stable")
    count = 1 + int(np.searchsorted(np.cumsum(table.sizes[order]), COMPARED))
    promising = np.zeros(len(order), bool)
    promising[order[:count]] = True
    return promising


def _sentences(chunk: Chunk) -> Iterator[tuple[int, str]]:
    """Iterates over place and text of each sentence with at least two letters or digits; the rest says nothing."""
    for place, sentence in enumerate(chunk.passage.sentences):
        if _SAYS_SOMETHING.search(sentence):
            yield place, sentence


def _row(text: str) -> bytes:
    """Returns the id of a text's vector."""
    return hashlib.sha256(text.encode()).digest()[:16]
