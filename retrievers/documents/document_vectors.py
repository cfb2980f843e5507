"""The vectors of the sentences of a folder's documents, and how similar they are to a query."""

from __future__ import annotations

import hashlib
import re
import threading
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from callsheet.retrievers.documents.document_text import Chunk, SqliteFile, TextStore
from callsheet.retrievers.index.embedding import Embedder, encode, encode_spans
from callsheet.retrievers.index.node_texts import Progress
from callsheet.retrievers.index.rows import Vectors, products

AFFORDABLE = 400_000
"""Characters of sentences that ``sync`` embeds where it is not told to embed all: some twelve seconds on two cores."""
COMPARED = 40_000
"""Characters of the preselected chunks whose sentences are compared with a query where not all have a vector."""
_AT_ONCE = 1_024
_DIGEST, _PIECES = 280, 5
_WORDS_WEIGHT = 0.6
_SAYS_SOMETHING = re.compile(r"[^\W_]\W*[^\W_]")


class VectorFile(SqliteFile):
    """Vectors of texts by the hash of each. An id stands for its text for ever: a row is added or deleted."""

    schema = "CREATE TABLE IF NOT EXISTS vector (id BLOB PRIMARY KEY, value BLOB NOT NULL)"

    def ids(self) -> set[bytes]:
        """The ids of all rows."""
        return {row for (row,) in self._read("SELECT id FROM vector")}

    def cosines(self, vector: Vectors) -> dict[bytes, float]:
        """The cosine of every row with a vector ``(1, d)``; the rows are read in blocks, not held."""
        found: dict[bytes, float] = {}
        with closing(self._connect()) as connection:
            rows = connection.execute("SELECT id, value FROM vector")
            while page := rows.fetchmany(_AT_ONCE):
                block = np.frombuffer(b"".join(value for _, value in page), np.float32).reshape(len(page), -1)
                found.update(zip((row for row, _ in page), products(block, vector)[0].tolist(), strict=True))
        return found

    def add(self, ids: Iterable[bytes], vectors: Vectors) -> None:
        """Adds rows; of an id that is there already the old row stays."""
        with self._transaction() as connection:
            rows = zip(ids, map(np.ndarray.tobytes, vectors), strict=True)
            connection.executemany("INSERT OR IGNORE INTO vector (id, value) VALUES (?, ?)", rows)

    def delete(self, ids: Iterable[bytes]) -> None:
        """Deletes rows."""
        with self._transaction() as connection:
            connection.executemany("DELETE FROM vector WHERE id = ?", ((row,) for row in ids))


@dataclass(frozen=True, slots=True)
class Similar:
    """How similar all chunks are to a query.

    Attributes:
        chunks: Their ids.
        starts: ``(chunks + 1,)`` where the sentences of each chunk begin among all.
        places: ``(sentences,)`` place of each sentence in its chunk.
        scores: ``(chunks,)`` cosine of the best sentence of each (Eq. 3).
        sentences: ``(sentences,)`` cosine of every sentence, chunk by chunk. Those of chunks that were not compared
            have what their digest has, and at most what the least of the compared chunks has.
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


class SentenceVectors:
    """The vectors of one folder's sentences by one embedder, compared with a query.

    A row's id is the hash of its text, so a sentence that stands in many chunks, or moves, is embedded once. Indexing
    embeds the sentences. Where these are too many, it embeds a digest of each chunk, and a query embeds the sentences
    of the chunks that are promising by digest and words. What is compared then depends on the query alone, never on
    what was asked before.

    Source: A-RAG (arXiv 2602.03442), section 3.1: each sentence is embedded and mapped to its chunk.
    """

    def __init__(self, embeddings: Embedder, store: TextStore, rows: VectorFile) -> None:
        self._embeddings = embeddings
        self._store = store
        self._rows = rows
        self._kept: set[bytes] = set()
        self._table: _Table | None = None
        self._building = threading.Lock()

    def fill(self, chunks: Iterable[Chunk], most: float, progress: Progress) -> tuple[int, bool]:
        """Makes the missing vectors of these chunks; interrupted, it goes on from there.

        Args:
            chunks: All chunks of the folder.
            most: Characters of sentences to embed; if more have no vector, the digests get theirs.
            progress: Called with the number of texts that are embedded, and of all.

        Returns:
            The number of different sentences, and whether all of them have a vector now.
        """
        held, rows, size = self._rows.ids(), set[bytes](), 0
        missing, digests = dict[bytes, str](), dict[bytes, str]()
        for chunk in chunks:
            if digest := digest_text(chunk):
                digests[_row(digest)] = digest
            for _, sentence in _telling(chunk):
                row = _row(sentence)
                if row not in rows and row not in held and (size := size + len(sentence)) <= most:
                    missing[row] = sentence
                rows.add(row)
        exact = size <= most
        self._kept = rows if exact else rows | digests.keys()
        wanted = missing if exact else {row: digest for row, digest in digests.items() if row not in held}
        order = list(wanted)
        for start in range(0, len(order), _AT_ONCE):
            self._embed({row: wanted[row] for row in order[start : start + _AT_ONCE]})
            progress(min(start + _AT_ONCE, len(order)), len(order))
        return len(rows), exact

    def prune(self) -> None:
        """Removes the vectors that nothing has any more after ``fill``."""
        self._rows.delete(self._rows.ids() - self._kept)
        with self._building:
            self._table = None

    def _embed(self, texts: Mapping[bytes, str]) -> Vectors:
        vectors = encode(self._embeddings, [*texts.values()])
        self._rows.add(texts, vectors)
        return vectors

    def similar(self, query: str, words: Callable[[], Mapping[str, float]], also: Collection[str] = ()) -> Similar:
        """The cosine of sentences with a query: of all, or of those of the most promising chunks, and estimates.

        Args:
            query: What is looked for.
            words: Gives for the id of a chunk the share of the query's words that it holds, each weighed by its rarity.
            also: Ids of chunks that are compared in any case.
        """
        vector = encode_spans(self._embeddings, query)
        with self._building:
            table = self._table = self._table or self._built()
            cosines, by_digest = self._rows.cosines(vector), np.zeros(0, np.float32)
            compared = np.ones(len(table.chunks), bool)
            if not all(map(cosines.__contains__, table.ids)):
                self._compare({_row(digest): digest for digest in table.digests}, cosines, vector)
                by_digest = np.array([cosines[_row(digest)] for digest in table.digests], np.float32)
                compared = _promising(table, by_digest, words(), also)
                chosen = filter(None, (self._store.chunk(table.chunks[i]) for i in np.flatnonzero(compared)))
                texts = {_row(text): text for chunk in chosen for _, text in _telling(chunk)}
                self._compare(texts, cosines, vector)
        sentences = np.array([cosines.get(row, 0.0) for row in table.ids], np.float32)
        scores = np.maximum.reduceat(sentences, table.starts[:-1]) if table.chunks else by_digest
        if not compared.all():
            scores = np.where(compared, scores, np.minimum(by_digest, scores[compared].min(initial=1)))
            counts = np.diff(table.starts)
            sentences = np.where(np.repeat(compared, counts), sentences, np.repeat(scores, counts))
        return Similar(table.chunks, table.starts, table.places, scores, sentences, int(compared.sum()))

    def _compare(self, texts: Mapping[bytes, str], cosines: dict[bytes, float], vector: Vectors) -> None:
        """Adds the cosines of those of these texts that are missing; nobody needed their vectors before."""
        if missing := {row: text for row, text in texts.items() if row not in cosines}:
            cosines.update(zip(missing, products(self._embed(missing), vector)[0].tolist(), strict=True))

    def _built(self) -> _Table:
        chunks, digests, sizes, starts = list[str](), list[str](), list[int](), [0]
        places, ids, known = array("I"), list[bytes](), dict[bytes, bytes]()
        for chunk in self._store.chunks():
            for place, sentence in _telling(chunk):
                places.append(place)
                ids.append(known.setdefault(row := _row(sentence), row))
            if len(ids) > starts[-1]:
                chunks.append(chunk.id)
                sizes.append(len(chunk.text))
                digests.append(digest_text(chunk))
                starts.append(len(ids))
        ends, where = np.array(starts, np.int64), np.array(places, np.uint32)
        return _Table(tuple(chunks), ends, where, np.array(sizes, np.int64), tuple(digests), tuple(ids))


def digest_text(chunk: Chunk) -> str:
    """The beginnings of up to five of a chunk's sentences, spread over it: some 70 tokens that tell what it is about.

    Empty where no sentence says anything.
    """
    told = [sentence for _, sentence in _telling(chunk)]
    pieces = [told[i * len(told) // _PIECES] for i in range(_PIECES)] if len(told) > _PIECES else told
    return " ".join(" ".join(piece.split())[: _DIGEST // len(pieces)] for piece in pieces)


def _promising(
    table: _Table, by_digest: NDArray[np.float32], words: Mapping[str, float], also: Collection[str]
) -> NDArray[np.bool_]:
    """``(chunks,)`` whether the sentences of each are compared: the best by digest and words, and those asked for."""
    held = np.array([words.get(chunk, 0.0) for chunk in table.chunks], np.float32)
    order = np.argsort(-(by_digest + _WORDS_WEIGHT * held), kind="stable")
    chosen = np.zeros(len(order), bool)
    chosen[order[: 1 + int(np.searchsorted(np.cumsum(table.sizes[order]), COMPARED))]] = True
    if also:
        chosen |= np.fromiter((chunk in also for chunk in table.chunks), bool, len(order))
    return chosen


def _telling(chunk: Chunk) -> Iterator[tuple[int, str]]:
    """Place and text of each sentence that says something: two letters or digits at least."""
    return ((i, text) for i, text in enumerate(chunk.passage.sentences) if _SAYS_SOMETHING.search(text))


def _row(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:16]
