"""A vector for the digest of every chunk, and for sentences as soon as a query compares them."""

from __future__ import annotations

import hashlib
import re
import threading
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from callsheet.retrievers.documents.indexing.chunk_store import Chunk, TextStore
from callsheet.retrievers.index.embedding.providers import Embedder, embedder_name, encode, encode_spans
from callsheet.retrievers.index.matrix import Matrix
from callsheet.retrievers.index.protocols import Progress
from callsheet.retrievers.index.rows import rows_of

_AT_ONCE = 1_024
_ROW_BYTES = 16
_DIGEST, _PIECES = 280, 5
_WORDS_WEIGHT = 0.6
COMPARED = 40_000
"""Characters of the chunks whose sentences are compared with a query: all of a small folder."""
_SAYS_SOMETHING = re.compile(r"[^\W_]\W*[^\W_]")


@dataclass(frozen=True, slots=True)
class Similar:
    """How similar all chunks are to a query.

    Attributes:
        chunks: Their ids.
        scores: ``(chunks,)`` cosine of the best sentence of each (Eq. 3).
        sentences: ``(sentences,)`` cosine of every sentence, chunk by chunk. Those of chunks that were not compared
            have what their digest has, and at most what the least of the compared chunks has.
        starts: ``(chunks + 1,)`` where the sentences of each chunk begin among those.
        places: ``(sentences,)`` place of each sentence in its chunk.
    """

    chunks: tuple[str, ...]
    scores: NDArray[np.float32]
    sentences: NDArray[np.float32]
    starts: NDArray[np.int64]
    places: NDArray[np.uint32]


@dataclass(frozen=True, slots=True)
class _Table:
    """Which vector belongs to which sentence of which chunk.

    Attributes:
        digests: ``(chunks, d)``, the vector of each chunk's digest.
        chunks: Their ids.
        sizes: ``(chunks,)`` characters.
        ids: Id of each different sentence, by its row.
        rows: ``(sentences,)`` row of each sentence, chunk by chunk.
        starts: As in ``Similar``.
        places: As in ``Similar``.
        known: Row -> vector, of those sentences that were compared before.
    """

    digests: Matrix
    chunks: tuple[str, ...]
    sizes: NDArray[np.int64]
    ids: tuple[str, ...]
    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    places: NDArray[np.uint32]
    known: dict[int, NDArray[np.float32]]


class SentenceVectors:
    """The vectors of one folder's digests and sentences by one embedder, kept in Chroma and multiplied in memory.

    A row's id is the hash of its text, so a sentence that stands in many chunks, or moves, is embedded once. Indexing
    embeds a digest of each chunk; a query embeds the sentences of the chunks that are promising by digest and words,
    as far as no query has before. What is compared depends on the query alone, never on what was asked before.

    Args:
        embeddings: What makes them.
        store: The texts.
        name: What tells this folder's collection from others.
        where: As in ``rows_of``.

    Source: A-RAG (arXiv 2602.03442), section 3.1: each sentence is embedded and mapped to its chunk; ours: when needed.
    """

    def __init__(self, embeddings: Embedder, store: TextStore, *, name: str, where: str | Path | None) -> None:
        self._embeddings = embeddings
        self._store = store
        collection = re.sub(r"[^a-zA-Z0-9.-]+", "-", f"{name}-{embedder_name(embeddings)}").strip("-.")
        self._rows = rows_of(collection, where)
        self._table: _Table | None = None
        self._building = threading.Lock()

    def embed(self, chunks: Callable[[], Iterable[Chunk]], progress: Progress | None = None) -> None:
        """Makes the vectors of these chunks' digests as far as they are missing; interrupted, it goes on from there.

        Args:
            chunks: Gives the chunks; it is called twice, and neither time are all of them held.
            progress: Called with the digests done and all of them.
        """
        total = len({_row(digest) for chunk in chunks() if (digest := digest_of(chunk))})
        done = 0
        for page in _pages(chunks()):
            missing = self._rows.missing(list(page))
            if missing:
                self._rows.add(missing, encode(self._embeddings, [page[row] for row in missing]))
            done += len(page)
            if progress:
                progress(min(done, total), total)

    def refresh(self) -> int:
        """Removes the vectors that nothing has any more, makes the digests that are missing; counts the sentences."""
        wanted = {row for chunk in self._store.chunks() for row, _ in _sentences(chunk)}
        digests = {_row(digest) for chunk in self._store.chunks() if (digest := digest_of(chunk))}
        held = set(self._rows.ids())
        self._rows.delete([row for row in held if row not in wanted and row not in digests])
        if not digests <= held:
            self.embed(self._store.chunks)
        with self._building:
            self._table = None
        return len(wanted)

    def similar(self, query: str, words: Mapping[str, float], also: Collection[str] = ()) -> Similar:
        """The cosine of sentences with a query: of those of the most promising chunks, and estimates for the others.

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
                return Similar((), none, none, table.starts, table.places)
            by_digest = table.digests.products(vector)[0]
            compared = self._compare(table, _promising(table, by_digest, words, also))
        counts = np.diff(table.starts)
        sentences = np.repeat(by_digest, counts)
        if not compared.any():
            return Similar(table.chunks, by_digest, sentences, table.starts, table.places)
        own = np.repeat(compared, counts)
        sentences[own] = np.stack([table.known[row] for row in table.rows[own].tolist()]) @ vector[0]
        scores = np.maximum.reduceat(sentences, table.starts[:-1])
        least = scores[compared].min()
        sentences[~own] = np.minimum(sentences[~own], least)
        scores[~compared] = np.minimum(scores[~compared], least)
        return Similar(table.chunks, scores, sentences, table.starts, table.places)

    def _compare(self, table: _Table, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Has the vectors of these chunks' sentences in memory; those that nobody needed before are embedded.

        Returns:
            Which of them there are: another process may have indexed another text meanwhile.
        """
        compared = wanted.copy()
        texts: dict[int, str] = {}
        for place in np.flatnonzero(wanted).tolist():
            rows = table.rows[table.starts[place] : table.starts[place + 1]].tolist()
            if all(row in table.known for row in rows):
                continue
            chunk = self._store.chunk(table.chunks[place])
            told = list(_sentences(chunk)) if chunk else []
            if [table.ids[row] for row in rows] == [name for name, _ in told]:
                texts |= {row: text for row, (_, text) in zip(rows, told, strict=True) if row not in table.known}
            else:
                compared[place] = False
        ids = {table.ids[row]: row for row in texts}
        missing = self._rows.missing(list(ids))
        if missing:
            self._rows.add(missing, encode(self._embeddings, [texts[ids[row]] for row in missing]))
        table.known.update(zip(ids.values(), self._rows.vectors(list(ids)), strict=True))
        return compared

    def _built(self) -> _Table:
        row_of: dict[str, int] = {}
        chunks: list[str] = []
        digests: list[str] = []
        rows, places, starts, sizes = array("q"), array("I"), array("q", [0]), array("q")
        for chunk in self._store.chunks():
            for place, (row, _) in zip(_places(chunk), _sentences(chunk), strict=True):
                rows.append(row_of.setdefault(row, len(row_of)))
                places.append(place)
            if len(rows) > starts[-1]:
                chunks.append(chunk.id)
                digests.append(_row(digest_of(chunk)))
                sizes.append(len(chunk.text))
                starts.append(len(rows))
        different = list(dict.fromkeys(digests))
        at = {row: place for place, row in enumerate(different)}
        return _Table(
            digests=Matrix(self._rows.vectors(different)[[at[row] for row in digests]]),
            chunks=tuple(chunks),
            sizes=np.array(sizes, np.int64),
            ids=tuple(row_of),
            rows=np.array(rows, np.int64),
            starts=np.array(starts, np.int64),
            places=np.array(places, np.uint32),
            known={},
        )


def digest_of(chunk: Chunk) -> str:
    """The beginnings of up to five of a chunk's sentences, spread over it: some 70 tokens that tell what it is about.

    Empty where no sentence says anything.
    """
    told = list(_telling(chunk))
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


def _sentences(chunk: Chunk) -> Iterator[tuple[str, str]]:
    """Row and text of each sentence that says something."""
    return ((_row(sentence), sentence) for sentence in _telling(chunk))


def _telling(chunk: Chunk) -> Iterator[str]:
    """The sentences that say something: two letters or digits at least."""
    return filter(_SAYS_SOMETHING.search, chunk.passage.sentences)


def _row(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[: 2 * _ROW_BYTES]


def _places(chunk: Chunk) -> Iterator[int]:
    return (i for i, sentence in enumerate(chunk.passage.sentences) if _SAYS_SOMETHING.search(sentence))


def _pages(chunks: Iterable[Chunk]) -> Iterator[dict[str, str]]:
    """Different digests by row, so many at once."""
    page: dict[str, str] = {}
    seen: set[str] = set()
    for chunk in chunks:
        if (digest := digest_of(chunk)) and (row := _row(digest)) not in seen:
            seen.add(row)
            page[row] = digest
        if len(page) >= _AT_ONCE:
            yield page
            page = {}
    if page:
        yield page
