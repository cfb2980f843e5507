"""The vectors of the sentences of a folder's documents, and how similar they are to a query."""

from __future__ import annotations

import hashlib
import re
import threading
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callsheet.retrievers.documents.document_text import Chunk, SqliteFile, TextStore
from callsheet.retrievers.index.embedding import Embedder, encode, encode_spans
from callsheet.retrievers.index.node_texts import Progress
from callsheet.retrievers.index.rows import Vectors, products

AFFORDABLE = 250_000
"""Characters of sentences that ``sync`` embeds where it is not told to embed all: some ten seconds on two cores."""
COMPARED = 40_000
"""Characters of the preselected chunks whose sentences are compared with a query where not all have a vector."""
HELD_VECTORS = 256_000_000
"""Maximum bytes of a folder's vectors that stay in memory; of more, each query reads them in blocks."""
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

    def find(self, ids: Iterable[bytes]) -> Iterator[NDArray[np.float32] | None]:
        """The vector of each of these ids, ``(d,)``; None where there is no row."""
        with closing(self._connect()) as connection:
            for row in ids:
                found = connection.execute("SELECT value FROM vector WHERE id = ?", (row,)).fetchone()
                yield np.frombuffer(found[0], np.float32) if found else None

    def add(self, ids: Iterable[bytes], vectors: NDArray[np.float32]) -> None:
        """Adds rows; of an id that is there already the old row stays."""
        with self._transaction() as connection:
            rows = zip(ids, map(np.ndarray.tobytes, vectors), strict=True)
            connection.executemany("INSERT OR IGNORE INTO vector (id, value) VALUES (?, ?)", rows)

    def delete(self, ids: Iterable[bytes]) -> None:
        """Deletes rows."""
        with self._transaction() as connection:
            connection.executemany("DELETE FROM vector WHERE id = ?", ((row,) for row in ids))


@dataclass(frozen=True, slots=True)
class _Sentences:
    chunks: tuple[str, ...]
    starts: NDArray[np.int64]
    places: NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class Similar(_Sentences):
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

    scores: NDArray[np.float32]
    sentences: NDArray[np.float32]
    compared: int


@dataclass(frozen=True, slots=True)
class _Table(_Sentences):
    """Which vector belongs to which sentence of which chunk.

    Attributes:
        digests: ``(chunks, d)``, the vector of each chunk's digest; None where every sentence has a vector.
        sizes: ``(chunks,)`` characters.
        ids: Id of each different sentence, by its row.
        rows: ``(sentences,)`` row of each sentence, chunk by chunk.
        blocks: The vectors of ``ids`` in order, where there are no digests and they fit into memory.
    """

    digests: Vectors | None
    sizes: NDArray[np.int64]
    ids: tuple[bytes, ...]
    rows: NDArray[np.int64]
    blocks: tuple[Vectors, ...]


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

    def fill(
        self, chunks: Callable[[], Iterable[Chunk]], most: float, progress: Progress | None = None
    ) -> tuple[int, bool]:
        """Makes the missing vectors of these chunks; interrupted, it goes on from there.

        Args:
            chunks: All chunks of the folder.
            most: Characters of sentences to embed; if more have no vector, the digests get theirs.
            progress: Called with the number of texts that are embedded, and of all.

        Returns:
            The number of different sentences, and whether all of them have a vector now.
        """
        held, sizes, digests = self._rows.ids(), dict[bytes, int](), set[bytes]()
        for chunk in chunks():
            sizes.update((_row(sentence), len(sentence)) for _, sentence in _telling(chunk))
            digests.add(_row(digest_text(chunk)))
        exact = sum(size for row, size in sizes.items() if row not in held) <= most
        wanted = (sizes.keys() if exact else digests - {_row("")}) - held
        self._kept = {*sizes, *(() if exact else digests)}
        page: dict[bytes, str] = {}
        done, total = 0, len(wanted)
        for chunk in chunks() if wanted else ():
            for text in [text for _, text in _telling(chunk)] if exact else [digest_text(chunk)]:
                if (row := _row(text)) in wanted:
                    wanted.discard(row)
                    page[row] = text
                if len(page) == _AT_ONCE or (page and not wanted):
                    self._vectors(page)
                    done, page = done + len(page), {}
                    if progress:
                        progress(done, total)
        return len(sizes), exact

    def prune(self) -> None:
        """Removes the vectors that nothing has any more after ``fill``."""
        self._rows.delete(self._rows.ids() - self._kept)
        with self._building:
            self._table = None

    def _vectors(self, texts: Mapping[bytes, str]) -> dict[bytes, NDArray[np.float32]]:
        """The vectors of these texts, by row; those that have none are embedded."""
        found = {row: vector for row, vector in zip(texts, self._rows.find(texts), strict=True) if vector is not None}
        if missing := [row for row in texts if row not in found]:
            vectors = encode(self._embeddings, [texts[row] for row in missing])
            self._rows.add(missing, vectors)
            found.update(zip(missing, vectors, strict=True))
        return found

    def similar(self, query: str, words: Mapping[str, float], also: Collection[str] = ()) -> Similar:
        """The cosine of sentences with a query: of all, or of those of the most promising chunks, and estimates.

        Args:
            query: What is looked for.
            words: Id of a chunk -> share of the query's words that it holds, each weighed by its rarity.
            also: Ids of chunks that are compared in any case.
        """
        vector = encode_spans(self._embeddings, query)
        with self._building:
            if self._table is None:
                self._table = self._built()
            table = self._table
            if not table.chunks:
                none = np.zeros(0, np.float32)
                return Similar((), table.starts, table.places, none, none, 0)
            if table.digests is None:
                blocks = table.blocks or self._blocks(table.ids)
                sentences = np.concatenate([products(block, vector)[0] for block in blocks])[table.rows]
                scores = np.maximum.reduceat(sentences, table.starts[:-1])
                return Similar(table.chunks, table.starts, table.places, scores, sentences, len(scores))
            scores = products(table.digests, vector)[0]
            compared, vectors = self._preselected(table, _promising(table, scores, words, also))
        counts = np.diff(table.starts)
        sentences = np.repeat(scores, counts)
        if compared.any():
            own = np.repeat(compared, counts)
            sentences[own] = np.stack([vectors[table.ids[row]] for row in table.rows[own].tolist()]) @ vector[0]
            scores = np.maximum.reduceat(sentences, table.starts[:-1])
            least = scores[compared].min()
            sentences[~own] = np.minimum(sentences[~own], least)
            scores[~compared] = np.minimum(scores[~compared], least)
        return Similar(table.chunks, table.starts, table.places, scores, sentences, int(compared.sum()))

    def _preselected(
        self, table: _Table, wanted: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], Mapping[bytes, NDArray[np.float32]]]:
        """Which of these chunks there are (another process may have indexed another text), with their vectors."""
        texts = dict[bytes, str]()
        for place in np.flatnonzero(wanted).tolist():
            chunk = self._store.chunk(table.chunks[place])
            own = [(_row(text), text) for _, text in _telling(chunk)] if chunk else []
            rows = table.rows[table.starts[place] : table.starts[place + 1]].tolist()
            if [table.ids[row] for row in rows] == [row for row, _ in own]:
                texts.update(own)
            else:
                wanted[place] = False
        return wanted, self._vectors(texts)

    def _blocks(self, ids: Sequence[bytes]) -> Iterator[Vectors]:
        """The vectors of these rows in order, ``(n, d)`` at once; zeros where another process has deleted one."""
        for start in range(0, len(ids), _AT_ONCE):
            found = [*self._rows.find(ids[start : start + _AT_ONCE])]
            some = next((one for one in found if one is not None), np.zeros(1, np.float32))
            yield np.stack([np.zeros_like(some) if one is None else one for one in found])

    def _built(self) -> _Table:
        row_of: dict[bytes, int] = {}
        chunks: list[str] = []
        digests: list[str] = []
        rows, places, starts, sizes = array("q"), array("I"), array("q", [0]), array("q")
        for chunk in self._store.chunks():
            for place, sentence in _telling(chunk):
                rows.append(row_of.setdefault(_row(sentence), len(row_of)))
                places.append(place)
            if len(rows) > starts[-1]:
                chunks.append(chunk.id)
                digests.append(digest_text(chunk))
                sizes.append(len(chunk.text))
                starts.append(len(rows))
        ids, exact, by_digest = tuple(row_of), row_of.keys() <= self._rows.ids(), None
        if not exact:
            vectors = self._vectors({_row(digest): digest for digest in digests})
            by_digest = np.stack([vectors[_row(digest)] for digest in digests])
        first = next(self._blocks(ids[:1])) if exact and ids else np.zeros((0, 1), np.float32)
        fits = exact and first.nbytes * len(ids) <= HELD_VECTORS
        return _Table(
            digests=by_digest,
            chunks=tuple(chunks),
            sizes=np.array(sizes, np.int64),
            ids=ids,
            rows=np.array(rows, np.int64),
            starts=np.array(starts, np.int64),
            places=np.array(places, np.uint32),
            blocks=tuple(self._blocks(ids)) if fits else (),
        )


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
