"""The index of a folder of documents; only documents that have changed are read and embedded again."""

from __future__ import annotations

import hashlib
import math
import re
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from callsheet.graphs import CatalogError, Problem, SettingsError
from callsheet.graphs.text.unicode import clean
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
    Lexicon,
    Passage,
    StoreTransaction,
    TextStore,
    content_words,
    passages_of,
)
from callsheet.retrievers.documents.sentence_vectors import SentenceVectors, Similar
from callsheet.retrievers.index.embedding import EMBEDDED, Embedder, embedder_name, embedder_of
from callsheet.retrievers.index.rows import IN_MEMORY, default_place, exclusive, is_url

AFFORDABLE = 400_000
"""Maximum number of characters of sentences that ``sync`` embeds without ``exact``: about 12 seconds on two cores."""
_RECIPE = "d3" if HAS_SENTENCEX else "d3-plain"
"""Version of the way to cut documents: what was cut in another way is indexed anew."""

Stage = Callable[[str, int, int], None]
"""A callback for progress: receives the activity (``reading`` or ``embedding``), the number done and the total."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """The result of an update of the index: numbers of documents, chunks and sentences, and what has changed.

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
    """The index of the documents in a folder, cut into chunks of about 1,000 tokens.

    Chunks are found by words and by the meaning of their sentences. ``sync`` updates the index; it reads and embeds
    only new content. Until it is done, and also if it is killed, searches see the state of the last complete ``sync``.

    Args:
        folder: The folder of the documents, including its subfolders.
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
        """Reads and embeds new and changed documents, and removes those that were deleted.

        A document that is broken, empty or a duplicate is left out and named in ``problems``. The same holds for a
        document that changes while it is read; its old text stays in the index.

        Args:
            progress: Called while it reads and embeds.
            exact: Embeds all sentences. Otherwise, a digest of each chunk is embedded if the sentences without a vector
                have more than 400,000 characters.
        """
        report = progress or _report_nothing
        with exclusive(self._lock):
            listing = documents_in(self.folder)
            before = self.files()
            with self.changing() as change:
                problems = _update_texts(change, listing.documents, before, report)
                after = change.files()
                changed = after != self._seen or exact
                if changed:
                    most = math.inf if exact else AFFORDABLE
                    self._size = self._vectors.fill(change.chunks(), most, partial(report, "embedding"))
            if changed:
                self._vectors.prune()
                self.lexicon = Lexicon(self)
                self._seen = after
        sentences, is_exact = self._size
        return Indexed(
            documents=len(after),
            chunks=len(self.lexicon.ids),
            sentences=sentences,
            exact=is_exact,
            added=len(after.keys() - before.keys()),
            updated=sum(name in before and before[name] != digest for name, digest in after.items()),
            removed=len(before.keys() - after.keys()),
            problems=tuple(sorted((*listing.problems, *problems), key=lambda problem: problem.agent)),
        )

    def similar(self, query: str) -> Similar:
        """Compares a query with all chunks and their sentences by meaning."""
        return self._vectors.similar(query, lambda: self.lexicon.shares(content_words(query)))


def _report_nothing(stage: str, done: int, total: int) -> None:
    """Stands for a progress that nobody asked for."""


def _update_texts(
    change: StoreTransaction, documents: Sequence[Found], before: Mapping[str, str], report: Stage
) -> list[Problem]:
    """Reads new and changed documents into the store, and removes those that are gone; returns the problems."""
    new = [document for document in documents if before.get(document.name) != document.digest]
    problems: list[Problem] = []
    for done, document in enumerate(new):
        report("reading", done, len(new))
        problems += _put_document(change, document)
    for name in before.keys() - {document.name for document in documents}:
        change.remove(name)
    return problems


class _ChangedError(DocumentError):
    """A file changed while it was read."""


def _put_document(change: StoreTransaction, document: Found) -> list[Problem]:
    """Reads a document into the store, or removes an unreadable one; returns its problem, if it has one."""
    kind = "broken"
    try:
        if change.put(document.name, document.digest, _passages(document)):
            return []
        kind = "empty"
        why = "holds no text (a scanned PDF needs OCR first)"
    except _ChangedError as error:
        return [Problem(document.name, "changing", str(error))]
    except ImportError as error:
        kind = "missing"
        why = str(error)
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
        raise _ChangedError("changed while it was read, so its new text is not indexed: index again")


@dataclass(slots=True)
class Library:
    """Opens the indexes of the configured folder and of folders inside it, each once per process.

    ``root`` is the configured folder; None if there are no documents. The other arguments are those of
    ``DocumentIndex``.
    """

    root: str | Path | None
    embeddings: str | Embedder = EMBEDDED
    place: str | Path | None = None
    _open: dict[Path, DocumentIndex] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def folder(self, wanted: str | None = None) -> Path:
        """Returns the folder to answer questions from: the configured one, or ``wanted`` inside it.

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
        """Returns the index of a folder, in the state of its last update; raises as ``DocumentIndex`` does."""
        with self._lock:
            if folder not in self._open:
                self._open[folder] = DocumentIndex(folder, embeddings=self.embeddings, index=self.place)
            return self._open[folder]
