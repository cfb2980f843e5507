"""The index of a folder of documents: the texts of its chunks, their words, and vectors of digests and sentences."""

from __future__ import annotations

import hashlib
import re
import tempfile
import threading
import weakref
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import CatalogError, Problem, SettingsError
from callsheet.graphs.text.sanitizing import clean
from callsheet.retrievers.documents.document_reading import (
    LOADERS,
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
    TextStore,
    content_words,
    passages_of,
)
from callsheet.retrievers.index.embedding import EMBEDDED, Embedder, embedder_name, embedder_of, encode, encode_spans
from callsheet.retrievers.index.node_texts import Progress
from callsheet.retrievers.index.rows import IN_MEMORY, Vectors, default_place, exclusive, is_url, products, rows_of

_AT_ONCE = 1_024
_DIGEST, _PIECES = 280, 5
_WORDS_WEIGHT = 0.6
COMPARED = 40_000
"""Characters of the chunks whose sentences are compared with a query: all of a small folder."""
_SAYS_SOMETHING = re.compile(r"[^\W_]\W*[^\W_]")


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
    """

    scores: NDArray[np.float32]
    sentences: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class _Table(_Sentences):
    """Which vector belongs to which sentence of which chunk.

    Attributes:
        digests: ``(chunks, d)``, the vector of each chunk's digest.
        sizes: ``(chunks,)`` characters.
        ids: Id of each different sentence, by its row.
        rows: ``(sentences,)`` row of each sentence, chunk by chunk.
        known: Row -> vector, of those sentences that were compared before.
    """

    digests: Vectors
    sizes: NDArray[np.int64]
    ids: tuple[str, ...]
    rows: NDArray[np.int64]
    known: dict[int, NDArray[np.float32]]


class SentenceVectors:
    """The vectors of one folder's digests and sentences by one embedder, kept in Chroma and multiplied in memory.

    A row's id is the hash of its text, so a sentence that stands in many chunks, or moves, is embedded once. Indexing
    embeds a digest of each chunk; a query embeds the sentences of the chunks that are promising by digest and words,
    as far as no query has before. What is compared depends on the query alone, never on what was asked before.

    Source: A-RAG (arXiv 2602.03442), section 3.1: each sentence is embedded and mapped to its chunk; ours: when needed.
    """

    def __init__(self, embeddings: Embedder, store: TextStore, *, name: str, where: str | Path | None) -> None:
        self._embeddings = embeddings
        self._store = store
        collection = re.sub(r"[^a-zA-Z0-9.-]+", "-", f"{name}-{embedder_name(embeddings)}").strip("-.")
        self._rows = rows_of(collection, where)
        self._table: _Table | None = None
        self._building = threading.Lock()

    def embed(self, chunks: Iterable[Chunk], progress: Progress | None = None) -> None:
        """Makes the vectors of these chunks' digests as far as they are missing; interrupted, it goes on from there."""
        digests = {_row(digest): digest for chunk in chunks if (digest := digest_text(chunk))}
        rows = list(digests)
        for start in range(0, len(rows), _AT_ONCE):
            page = rows[start : start + _AT_ONCE]
            self._make({row: digests[row] for row in page})
            if progress:
                progress(start + len(page), len(rows))

    def _make(self, texts: Mapping[str, str]) -> None:
        """Embeds those of these texts, by row, that have no vector yet."""
        if missing := self._rows.missing(list(texts)):
            self._rows.add(missing, encode(self._embeddings, [texts[row] for row in missing]))

    def refresh(self) -> int:
        """Removes the vectors that nothing has any more, makes the digests that are missing; counts the sentences."""
        wanted, digests = set[str](), set[str]()
        for chunk in self._store.chunks():
            wanted.update(_row(sentence) for _, sentence in _telling(chunk))
            digests.update([_row(digest)] if (digest := digest_text(chunk)) else ())
        held = set(self._rows.held())
        self._rows.delete([row for row in held if row not in wanted and row not in digests])
        if not digests <= held:
            self.embed(self._store.chunks())
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
                return Similar((), table.starts, table.places, none, none)
            scores = products(table.digests, vector)[0]
            compared = self._compare(table, _promising(table, scores, words, also))
        counts = np.diff(table.starts)
        sentences = np.repeat(scores, counts)
        if compared.any():
            own = np.repeat(compared, counts)
            sentences[own] = np.stack([table.known[row] for row in table.rows[own].tolist()]) @ vector[0]
            scores = np.maximum.reduceat(sentences, table.starts[:-1])
            least = scores[compared].min()
            sentences[~own] = np.minimum(sentences[~own], least)
            scores[~compared] = np.minimum(scores[~compared], least)
        return Similar(table.chunks, table.starts, table.places, scores, sentences)

    def _compare(self, table: _Table, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Has the vectors of these chunks' sentences in memory; those that nobody needed before are embedded.

        Returns:
            Which of them there are: another process may have indexed another text meanwhile.
        """
        compared, texts = wanted.copy(), dict[int, str]()
        for place in np.flatnonzero(wanted).tolist():
            rows = table.rows[table.starts[place] : table.starts[place + 1]].tolist()
            if all(row in table.known for row in rows):
                continue
            chunk = self._store.chunk(table.chunks[place])
            sentences = [text for _, text in _telling(chunk)] if chunk else []
            if [table.ids[row] for row in rows] == [_row(text) for text in sentences]:
                texts |= {row: text for row, text in zip(rows, sentences, strict=True) if row not in table.known}
            else:
                compared[place] = False
        self._make({table.ids[row]: text for row, text in texts.items()})
        table.known.update(zip(texts, self._rows.vectors([table.ids[row] for row in texts]), strict=True))
        return compared

    def _built(self) -> _Table:
        row_of: dict[str, int] = {}
        chunks: list[str] = []
        digests: list[str] = []
        rows, places, starts, sizes = array("q"), array("I"), array("q", [0]), array("q")
        for chunk in self._store.chunks():
            for place, sentence in _telling(chunk):
                rows.append(row_of.setdefault(_row(sentence), len(row_of)))
                places.append(place)
            if len(rows) > starts[-1]:
                chunks.append(chunk.id)
                digests.append(_row(digest_text(chunk)))
                sizes.append(len(chunk.text))
                starts.append(len(rows))
        different = list(dict.fromkeys(digests))
        at = {row: place for place, row in enumerate(different)}
        return _Table(
            digests=self._rows.vectors(different)[[at[row] for row in digests]],
            chunks=tuple(chunks),
            sizes=np.array(sizes, np.int64),
            ids=tuple(row_of),
            rows=np.array(rows, np.int64),
            starts=np.array(starts, np.int64),
            places=np.array(places, np.uint32),
            known={},
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


def _row(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


NOT_CONFIGURED = (
    "There are no documents to answer from: set CALLSHEET_DOCUMENTS to a folder and start again, "
    "or pass one to create_arag()."
)
RECIPE = "d3" if HAS_SENTENCEX else "d3-plain"

Stage = Callable[[str, int, int], None]
"""Called with the activity (``reading`` files, ``embedding`` digests), the number finished and the number of all."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """The result of an update: numbers of documents, their chunks and different sentences, and what has changed.

    Attributes:
        problems: Documents that were left out, with reasons.
    """

    documents: int = 0
    chunks: int = 0
    sentences: int = 0
    added: int = 0
    updated: int = 0
    removed: int = 0
    problems: tuple[Problem, ...] = ()


class DocumentIndex(TextStore):
    """Chunks of about 1,000 tokens of all documents of a folder, found by words and by the meaning of sentences.

    ``sync`` brings it up to date; only what has a new content is read and embedded again, each chunk by a
    digest; sentences are embedded when a query first compares them. Until that is done, and also when it is killed,
    everything is as the last complete ``sync`` left it.

    Args:
        folder: The documents; folders in it count too.
        embeddings: An embedder, ``minilm``, or ``provider:model``.
        index: A folder or the address of ``chroma run`` for the vectors, or ``:memory:``; the user's cache by default.
            The texts lie beside the vectors, or in the user's cache where those are on a server.
        loaders: Further endings of names, each with the import path of a LangChain document loader, which takes the
            file's path alone and is run within the same limits.
        chunk_tokens: Estimated tokens of a chunk.

    Attributes:
        folder, place: The full paths of the folder, and of the texts.
        lexicon: The words of the chunks, as the last ``sync`` left them.

    Source: A-RAG (arXiv 2602.03442), section 3.1, hierarchical index.

    Raises:
        CatalogError: There is no such folder.
        SettingsError: The index cannot be opened, or ``chunk_tokens`` is less than 1.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        embeddings: str | Embedder = EMBEDDED,
        index: str | Path | None = None,
        loaders: Mapping[str, str] | None = None,
        chunk_tokens: int = CHUNK_TOKENS,
    ) -> None:
        self.folder = existing_folder(Path(folder))
        self._loaders = {**LOADERS, **{kind.lower(): loader for kind, loader in (loaders or {}).items()}}
        if chunk_tokens < 1:
            raise SettingsError(f"chunk_tokens must be at least 1, not {chunk_tokens}")
        self._chunk_tokens = chunk_tokens
        where = default_place() if index is None else index
        name = f"documents-{hashlib.sha256(f'{self.folder}|{chunk_tokens}'.encode()).hexdigest()[:16]}-{RECIPE}"
        self.place = default_place() if is_url(where) else Path(where)
        if where == IN_MEMORY:
            temporary = tempfile.TemporaryDirectory(prefix="callsheet-")
            weakref.finalize(self, temporary.cleanup)
            self.place = Path(temporary.name)
        super().__init__(self.place / f"{name}.sqlite")
        self.lexicon = Lexicon(self)
        self._lock = self.place / f"{name}.lock"
        self._seen: dict[str, str] | None = None
        self._sentences = 0
        self._vectors = SentenceVectors(
            embedder_of(embeddings), self, name=name, where=None if where == IN_MEMORY else where
        )

    def sync(self, progress: Stage | None = None) -> Indexed:
        """Reads and embeds what is new or changed, and removes what is gone.

        A document that is broken, empty or of a duplicate content is left out and named in ``problems``; so is one
        that changes while it is read, whose old text stays.
        """
        report = progress or (lambda stage, done, total: None)
        with exclusive(self._lock):
            listing = documents_in(self.folder, set(self._loaders))
            before = self.files()
            with self.changing() as change:
                new = [document for document in listing.documents if before.get(document.name) != document.digest]
                problems = []
                for done, document in enumerate(new):
                    report("reading", done, len(new))
                    loader = self._loaders[document.path.suffix.lower()]
                    problems += _put_document(change, document, loader, self._chunk_tokens)
                for name in set(before) - {document.name for document in listing.documents}:
                    change.remove(name)
                names = [document.name for document in new]
                self._vectors.embed(change.chunks(names), lambda done, total: report("embedding", done, total))
            after = self.files()
            if after != self._seen:
                self._sentences = self._vectors.refresh()
                self.lexicon, self._seen = Lexicon(self), after
        return Indexed(
            documents=len(after),
            chunks=len(self.lexicon.ids),
            sentences=self._sentences,
            added=len(set(after) - set(before)),
            updated=sum(name in before and before[name] != digest for name, digest in after.items()),
            removed=len(set(before) - set(after)),
            problems=tuple(sorted((*listing.problems, *problems), key=lambda problem: problem.agent)),
        )

    def similar(self, query: str, also: Collection[str] = ()) -> Similar:
        """The similarity of chunks and sentences to a query; estimates, save for the best and those in ``also``."""
        return self._vectors.similar(query, self.lexicon.shares(content_words(query)), also)


class _ChangedError(DocumentError):
    """A file changed while it was read."""


def _put_document(change: Change, document: Found, loader: str, tokens: int) -> list[Problem]:
    """Reads a document into the store and returns its problem, if it has one.

    An unreadable document is removed from the store; of one that changes while it is read, the old text stays there.
    """
    kind, why = "broken", ""
    try:
        if change.put(document.name, document.digest, _passages(document, loader, tokens)):
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


def _passages(document: Found, loader: str, tokens: int) -> Iterator[Passage]:
    blocks = READER.blocks(loader, document.path)
    cleaned = (Block(clean(block.text.replace("\0", " ")), block.page) for block in blocks)
    yield from passages_of(cleaned, tokens=tokens)
    if digest_of(document.path) != document.digest:
        raise _ChangedError("changed while it was read, so its new text is not in: index again")


@dataclass(slots=True)
class Library:
    """The document indexes of this process, each opened once: of the configured folder, and of folders inside it.

    Attributes:
        root: The configured folder; None if there are no documents.
        embeddings: As in ``DocumentIndex``.
        place: Its ``index``.
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
            raise SettingsError(NOT_CONFIGURED)
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
        """The index of a folder, as of the last update.

        Raises:
            CatalogError: There is no such folder.
            SettingsError: The index cannot be opened.
        """
        with self._lock:
            if folder not in self._open:
                self._open[folder] = DocumentIndex(folder, embeddings=self.embeddings, index=self.place)
            return self._open[folder]
