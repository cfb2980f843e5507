"""A vector for every sentence, each different sentence once, and which chunks it stands in."""

from __future__ import annotations

import hashlib
import re
import threading
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from callsheet.retrievers.documents.store import Chunk, TextStore
from callsheet.retrievers.embeddings import Embedder, embedder_name, encode, encode_spans
from callsheet.retrievers.index import Progress
from callsheet.retrievers.matrix import Matrix
from callsheet.retrievers.rows import ChromaRows

_AT_ONCE = 1_024
_ROW_BYTES = 16
_SAYS_SOMETHING = re.compile(r"[^\W_]\W*[^\W_]")


@dataclass(frozen=True, slots=True)
class Similar:
    """How similar all chunks are to a query.

    Attributes:
        chunks: Their ids.
        scores: ``(chunks,)`` cosine of the best sentence of each (Eq. 3).
        sentences: ``(sentences,)`` cosine of every sentence, chunk by chunk.
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
    """Which vector belongs to which sentence of which chunk."""

    matrix: Matrix
    chunks: tuple[str, ...]
    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    places: NDArray[np.uint32]


class SentenceVectors:
    """The vectors of one folder's sentences by one embedder, kept in Chroma and multiplied in memory.

    A row's id is the hash of its sentence, so a sentence that stands in many chunks, or moves, is embedded once.

    Args:
        embeddings: What makes them.
        store: The texts.
        name: What tells this folder's collection from others.
        where: As in ``ChromaRows``.

    Source: A-RAG (arXiv 2602.03442), section 3.1: each sentence is embedded and mapped to its chunk.
    """

    def __init__(self, embeddings: Embedder, store: TextStore, *, name: str, where: str | Path | None) -> None:
        self._embeddings = embeddings
        self._store = store
        collection = re.sub(r"[^a-zA-Z0-9.-]+", "-", f"{name}-{embedder_name(embeddings)}").strip("-.")
        self._rows = ChromaRows(collection, where)
        self._table: _Table | None = None
        self._building = threading.Lock()

    def embed(self, chunks: Callable[[], Iterable[Chunk]], progress: Progress | None = None) -> None:
        """Makes the vectors of these chunks' sentences as far as they are missing; interrupted, it goes on from there.

        Args:
            chunks: Gives the chunks; it is called twice, and neither time are all of them held.
            progress: Called with the sentences done and all of them.
        """
        total = len({row for chunk in chunks() for row, _ in _sentences(chunk)})
        done = 0
        for page in _pages(chunks()):
            missing = self._rows.missing(list(page))
            if missing:
                self._rows.add(missing, encode(self._embeddings, [page[row] for row in missing]))
            done += len(page)
            if progress:
                progress(min(done, total), total)

    def refresh(self) -> int:
        """Removes the vectors that no sentence has any more, and makes those that are missing; gives their number."""
        wanted = {row for chunk in self._store.chunks() for row, _ in _sentences(chunk)}
        unwanted = [row for row in self._rows.ids() if row not in wanted]
        self._rows.delete(unwanted)
        if self._rows.count() < len(wanted):
            self.embed(self._store.chunks)
        with self._building:
            self._table = None
        return len(wanted)

    def similar(self, query: str) -> Similar:
        """The cosine of every sentence with a query; of very many, all but the best are estimates (``Matrix``)."""
        table = self._current()
        if not table.chunks:
            none = np.zeros(0, np.float32)
            return Similar((), none, none, table.starts, table.places)
        sentences = table.matrix.products(encode_spans(self._embeddings, query))[0][table.rows]
        scores = np.maximum.reduceat(sentences, table.starts[:-1])
        return Similar(table.chunks, scores, sentences, table.starts, table.places)

    def _current(self) -> _Table:
        with self._building:
            if self._table is None:
                self._table = self._built()
            return self._table

    def _built(self) -> _Table:
        row_of: dict[str, int] = {}
        chunks: list[str] = []
        rows, places, starts = array("q"), array("I"), array("q", [0])
        for chunk in self._store.chunks():
            for place, (row, _) in zip(_places(chunk), _sentences(chunk), strict=True):
                rows.append(row_of.setdefault(row, len(row_of)))
                places.append(place)
            if len(rows) > starts[-1]:
                chunks.append(chunk.id)
                starts.append(len(rows))
        return _Table(
            matrix=Matrix(self._rows.vectors(list(row_of))),
            chunks=tuple(chunks),
            rows=np.array(rows, np.int64),
            starts=np.array(starts, np.int64),
            places=np.array(places, np.uint32),
        )


def _sentences(chunk: Chunk) -> Iterator[tuple[str, str]]:
    """Row and text of each sentence that says something: two letters or digits at least."""
    for sentence in chunk.passage.sentences:
        if _SAYS_SOMETHING.search(sentence):
            yield hashlib.sha256(sentence.encode()).hexdigest()[: 2 * _ROW_BYTES], sentence


def _places(chunk: Chunk) -> Iterator[int]:
    return (i for i, sentence in enumerate(chunk.passage.sentences) if _SAYS_SOMETHING.search(sentence))


def _pages(chunks: Iterable[Chunk]) -> Iterator[dict[str, str]]:
    """Different sentences by row, so many at once."""
    page: dict[str, str] = {}
    seen: set[str] = set()
    for chunk in chunks:
        for row, sentence in _sentences(chunk):
            if row not in seen:
                seen.add(row)
                page[row] = sentence
        if len(page) >= _AT_ONCE:
            yield page
            page = {}
    if page:
        yield page
