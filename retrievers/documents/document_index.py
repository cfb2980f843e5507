"""The index of a folder of documents: the texts of its chunks, their words, and the vectors of their sentences."""

from __future__ import annotations

import hashlib
import math
import re
import tempfile
import threading
import weakref
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import CatalogError, Problem, SettingsError
from callsheet.graphs.text.sanitizing import clean
from callsheet.retrievers.documents.document_reading import (
    READER,
    DocumentError,
    Found,
    digest_of,
    documents_in,
    existing_folder,
)
from callsheet.retrievers.documents.document_text import (
    CHUNK_TOKENS,
    HAS_SENTENCEX,
    Block,
    Change,
    Chunk,
    Lexicon,
    Passage,
    SqliteFile,
    TextStore,
    content_words,
    passages_of,
)
from callsheet.retrievers.index.embedding import EMBEDDED, Embedder, embedder_name, embedder_of, encode, encode_spans
from callsheet.retrievers.index.node_texts import Progress
from callsheet.retrievers.index.rows import IN_MEMORY, Vectors, default_place, exclusive, is_url, products

AFFORDABLE = 400_000
"""Characters of sentences that ``sync`` embeds where it is not told to embed all: some twelve seconds on two cores."""
COMPARED = 40_000
"""Characters of the preselected chunks whose sentences are compared with a query where not all have a vector."""
_AT_ONCE = 1_024
_DIGEST, _PIECES = 280, 5
_WORDS_WEIGHT = 0.6
_SAYS_SOMETHING = re.compile(r"[^\W_]\W*[^\W_]")


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


class SentenceVectors(SqliteFile):
    """The vectors of one folder's sentences by one embedder, compared with a query.

    A row's id is the hash of its text and stands for it for ever, so a sentence that stands in many chunks, or moves,
    is embedded once. Indexing embeds the sentences. Where these are too many, it embeds a digest of each chunk, and a
    query embeds the sentences of the chunks that are promising by digest and words. What is compared then depends on
    the query alone, never on what was asked before.

    Source: A-RAG (arXiv 2602.03442), section 3.1: each sentence is embedded and mapped to its chunk.
    """

    schema = "CREATE TABLE IF NOT EXISTS vector (id BLOB PRIMARY KEY, value BLOB NOT NULL)"

    def __init__(self, path: Path, embeddings: Embedder, store: TextStore) -> None:
        super().__init__(path)
        self._embeddings = embeddings
        self._store = store
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
        held, rows, size = self._ids(), set[bytes](), 0
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
        with self._transaction() as connection:
            left = ((row,) for row in self._ids() - self._kept)
            connection.executemany("DELETE FROM vector WHERE id = ?", left)
        with self._building:
            self._table = None

    def similar(self, query: str, words: Callable[[], Mapping[str, float]]) -> Similar:
        """The cosine of sentences with a query: of all, or of those of the most promising chunks, and estimates.

        ``words`` gives for the id of a chunk its share of the query's words, weighed by rarity.
        """
        vector = encode_spans(self._embeddings, query)
        with self._building:
            table = self._table = self._table or self._built()
            cosines, by_digest = self._cosines(vector), np.zeros(0, np.float32)
            compared = np.ones(len(table.chunks), bool)
            if not all(map(cosines.__contains__, table.ids)):
                self._compare({_row(digest): digest for digest in table.digests}, cosines, vector)
                by_digest = np.array([cosines[_row(digest)] for digest in table.digests], np.float32)
                compared = _promising(table, by_digest, words())
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

    def _ids(self) -> set[bytes]:
        return {row for (row,) in self._read("SELECT id FROM vector")}

    def _cosines(self, vector: Vectors) -> dict[bytes, float]:
        """The cosine of every row with a vector ``(1, d)``; the rows are read in blocks, not held."""
        found: dict[bytes, float] = {}
        with closing(self._connect()) as connection:
            rows = connection.execute("SELECT id, value FROM vector")
            while page := rows.fetchmany(_AT_ONCE):
                block = np.frombuffer(b"".join(value for _, value in page), np.float32).reshape(len(page), -1)
                found.update(zip((row for row, _ in page), products(block, vector)[0].tolist(), strict=True))
        return found

    def _embed(self, texts: Mapping[bytes, str]) -> Vectors:
        vectors = encode(self._embeddings, [*texts.values()])
        with self._transaction() as connection:
            rows = zip(texts, map(np.ndarray.tobytes, vectors), strict=True)
            connection.executemany("INSERT OR IGNORE INTO vector (id, value) VALUES (?, ?)", rows)
        return vectors

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
    """The beginnings of up to five of a chunk's sentences, spread over it: some 70 tokens, or none."""
    told = [sentence for _, sentence in _telling(chunk)]
    pieces = [told[i * len(told) // _PIECES] for i in range(_PIECES)] if len(told) > _PIECES else told
    return " ".join(" ".join(piece.split())[: _DIGEST // len(pieces)] for piece in pieces)


def _promising(table: _Table, by_digest: NDArray[np.float32], words: Mapping[str, float]) -> NDArray[np.bool_]:
    """``(chunks,)`` whether the sentences of each are compared: the best by digest and words."""
    held = np.array([words.get(chunk, 0.0) for chunk in table.chunks], np.float32)
    order = np.argsort(-(by_digest + _WORDS_WEIGHT * held), kind="stable")
    chosen = np.zeros(len(order), bool)
    chosen[order[: 1 + int(np.searchsorted(np.cumsum(table.sizes[order]), COMPARED))]] = True
    return chosen


def _telling(chunk: Chunk) -> Iterator[tuple[int, str]]:
    """Place and text of each sentence that says something: two letters or digits at least."""
    return ((i, text) for i, text in enumerate(chunk.passage.sentences) if _SAYS_SOMETHING.search(text))


def _row(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:16]


_RECIPE = "d3" if HAS_SENTENCEX else "d3-plain"

Stage = Callable[[str, int, int], None]
"""Called with the activity (``reading`` files, ``embedding`` texts), the number finished and the number of all."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """The result of an update: numbers of documents, their chunks and different sentences, and what has changed.

    Attributes:
        exact: Whether all sentences have a vector, so that a search by meaning compares all of them.
        problems: Documents that were left out, with reasons.
    """

    documents: int = 0
    chunks: int = 0
    sentences: int = 0
    exact: bool = False
    added: int = 0
    updated: int = 0
    removed: int = 0
    problems: tuple[Problem, ...] = ()


class DocumentIndex(TextStore):
    """Chunks of about 1,000 tokens of all documents of a folder, found by words and by the meaning of sentences.

    ``sync`` brings it up to date; only what has a new content is read and embedded again. Until that is done, and also
    when it is killed, everything is as the last complete ``sync`` left it.

    Args:
        folder: The documents; folders in it count too.
        embeddings: An embedder, ``minilm``, or ``provider:model``.
        index: A folder for texts and vectors, or ``:memory:``; by default, and for an address, the user's cache.

    Attributes:
        folder, place: The full paths of the folder, and of texts and vectors.
        lexicon: The words of the chunks, as the last ``sync`` left them.

    Source: A-RAG (arXiv 2602.03442), section 3.1, hierarchical index.

    Raises:
        CatalogError: There is no such folder.
        SettingsError: The index cannot be opened.
    """

    def __init__(
        self, folder: str | Path, *, embeddings: str | Embedder = EMBEDDED, index: str | Path | None = None
    ) -> None:
        self.folder = existing_folder(Path(folder))
        where = default_place() if index is None else index
        name = f"documents-{hashlib.sha256(f'{self.folder}|{CHUNK_TOKENS}'.encode()).hexdigest()[:16]}-{_RECIPE}"
        self.place = default_place() if is_url(where) else Path(where)
        if where == IN_MEMORY:
            temporary = tempfile.TemporaryDirectory(prefix="callsheet-")
            weakref.finalize(self, temporary.cleanup)
            self.place = Path(temporary.name)
        super().__init__(self.place / f"{name}.sqlite")
        self.lexicon = Lexicon(self)
        self._lock = self.place / f"{name}.lock"
        self._seen: dict[str, str] | None = None
        self._size = (0, False)
        embedder = embedder_of(embeddings)
        kind = re.sub(r"[^a-zA-Z0-9.-]+", "-", embedder_name(embedder)).strip("-.")
        self._vectors = SentenceVectors(self.place / f"vectors-{name}-{kind}.sqlite", embedder, self)

    def sync(self, progress: Stage | None = None, *, exact: bool = False) -> Indexed:
        """Reads and embeds what is new or changed, and removes what is gone.

        A document that is broken, empty or of a duplicate content is left out and named in ``problems``; so is one
        that changes while it is read, whose old text stays.

        Args:
            progress: Called while it reads and embeds.
            exact: Embeds all sentences, however many they are; otherwise only if those without a vector have at most
                400,000 characters, and else a digest of each chunk.
        """
        report = progress or (lambda stage, done, total: None)
        with exclusive(self._lock):
            listing = documents_in(self.folder)
            before = self.files()
            with self.changing() as change:
                new = [document for document in listing.documents if before.get(document.name) != document.digest]
                problems = []
                for done, document in enumerate(new):
                    report("reading", done, len(new))
                    problems += _put_document(change, document)
                for name in set(before) - {document.name for document in listing.documents}:
                    change.remove(name)
                after = change.files()
                if changed := after != self._seen or exact:
                    most = math.inf if exact else AFFORDABLE
                    self._size = self._vectors.fill(change.chunks(), most, partial(report, "embedding"))
            if changed:
                self._vectors.prune()
                self.lexicon, self._seen = Lexicon(self), after
        return Indexed(
            documents=len(after),
            chunks=len(self.lexicon.ids),
            sentences=self._size[0],
            exact=self._size[1],
            added=len(set(after) - set(before)),
            updated=sum(name in before and before[name] != digest for name, digest in after.items()),
            removed=len(set(before) - set(after)),
            problems=tuple(sorted((*listing.problems, *problems), key=lambda problem: problem.agent)),
        )

    def similar(self, query: str) -> Similar:
        """The similarity of chunks and sentences to a query."""
        return self._vectors.similar(query, lambda: self.lexicon.shares(content_words(query)))


class _ChangedError(DocumentError):
    """A file changed while it was read."""


def _put_document(change: Change, document: Found) -> list[Problem]:
    """Reads a document into the store, or removes an unreadable one; returns its problem, if it has one."""
    kind, why = "broken", ""
    try:
        if change.put(document.name, document.digest, _passages(document)):
            return []
        kind, why = "empty", "holds no text (a scanned PDF needs OCR first)"
    except _ChangedError as error:
        return [Problem(document.name, "changing", str(error))]
    except ImportError as error:
        kind, why = "missing", str(error)
    except DocumentError as error:
        why = str(error)
    except Exception as error:  # noqa: BLE001 (also of the library that splits sentences)
        why = f"cannot be read: {getattr(error, 'strerror', None) or f'{type(error).__name__}: {str(error)[:300]}'}"
    change.remove(document.name)
    return [Problem(document.name, kind, clean(why))]


def _passages(document: Found) -> Iterator[Passage]:
    blocks = READER.blocks(document.path)
    cleaned = (Block(clean(block.text.replace("\0", " ")), block.page) for block in blocks)
    yield from passages_of(cleaned, tokens=CHUNK_TOKENS)
    if digest_of(document.path) != document.digest:
        raise _ChangedError("changed while it was read, so its new text is not in: index again")


@dataclass(slots=True)
class Library:
    """The document indexes of this process, each opened once: of the configured folder, and of folders inside it.

    ``root`` is the configured folder, None if there are no documents; the others are as in ``DocumentIndex``.
    """

    root: str | Path | None
    embeddings: str | Embedder = EMBEDDED
    place: str | Path | None = None
    _open: dict[Path, DocumentIndex] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def folder(self, wanted: str | None = None) -> Path:
        """The folder to answer from: the configured one, or one inside it.

        Raises:
            SettingsError: No folder is configured, or the wanted one is not inside it.
            CatalogError: There is no such folder.
        """
        if not self.root:
            raise SettingsError(
                "There are no documents to answer from: set CALLSHEET_DOCUMENTS to a folder and start again, "
                "or pass one to create_arag()."
            )
        root = Path(self.root).expanduser().resolve()
        if not wanted:
            return root
        try:
            found = (root / Path(wanted).expanduser()).resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise CatalogError(f"no documents at {wanted[:80]!r}: it cannot be a path") from error
        if not found.is_relative_to(root):
            raise SettingsError(f"{wanted!r} is not inside the configured folder of documents, so it is not opened")
        return found

    def index(self, folder: Path) -> DocumentIndex:
        """The index of a folder, as of the last update; raises as ``DocumentIndex``."""
        with self._lock:
            if folder not in self._open:
                self._open[folder] = DocumentIndex(folder, embeddings=self.embeddings, index=self.place)
            return self._open[folder]
