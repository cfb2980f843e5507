"""The index of a folder of documents: texts and vectors of chunks."""

from __future__ import annotations

import hashlib
import tempfile
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from callsheet.graphs import Problem, SettingsError
from callsheet.graphs.text.sanitizing import clean
from callsheet.retrievers.documents.indexing.chunk_store import Change, Chunk, TextStore
from callsheet.retrievers.documents.indexing.chunk_vectors import SentenceVectors, Similar
from callsheet.retrievers.documents.indexing.keyword_index import Lexicon
from callsheet.retrievers.documents.phrases import content_words
from callsheet.retrievers.documents.reading.bounded_reader import Reader
from callsheet.retrievers.documents.reading.chunking import CHUNK_TOKENS, Block, Passage, passages_of
from callsheet.retrievers.documents.reading.folder_scan import Found, digest_of, documents_in, existing_folder
from callsheet.retrievers.documents.reading.loaders import LOADERS, DocumentError, Loader
from callsheet.retrievers.index.embedding.minilm import EMBEDDED
from callsheet.retrievers.index.embedding.providers import Embedder, embedder_of
from callsheet.retrievers.index.rows import IN_MEMORY, default_place, exclusive, is_url

RECIPE = "d3"

Stage = Callable[[str, int, int], None]
"""Called with the activity (``reading`` files, ``embedding`` digests), the number finished and the number of all."""


@dataclass(frozen=True, slots=True)
class Indexed:
    """The result of an update of the index.

    Attributes:
        documents: Number of documents.
        chunks: Number of their chunks.
        sentences: Number of their different sentences.
        added: Number of new documents.
        updated: Number of changed documents.
        removed: Number of removed documents.
        problems: Documents that were left out, with reasons.
    """

    documents: int = 0
    chunks: int = 0
    sentences: int = 0
    added: int = 0
    updated: int = 0
    removed: int = 0
    problems: tuple[Problem, ...] = ()


class DocumentIndex:
    """Chunks of about 1,000 tokens of all documents of a folder, found by words and by the meaning of sentences.

    ``sync`` brings it up to date; only what has a new content is read and embedded again, each chunk by a
    digest; sentences are embedded when a query first compares them. Until that is done, and also when it is killed,
    everything is as the last complete ``sync`` left it.

    Args:
        folder: The documents; folders in it count too.
        embeddings: An embedder, ``minilm``, or ``provider:model``.
        index: A folder or the address of ``chroma run`` for the vectors, or ``:memory:``; the user's cache by default.
            The texts lie beside the vectors, or in the user's cache where those are on a server.
        loaders: What reads which ending of a file's name; ``LOADERS`` by default.
        chunk_tokens: Estimated tokens of a chunk.

    Attributes:
        folder: The full path of the folder.
        place: Where the texts lie.
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
        loaders: Mapping[str, Loader] | None = None,
        chunk_tokens: int = CHUNK_TOKENS,
    ) -> None:
        self.folder = existing_folder(Path(folder))
        self._loaders = {kind.lower(): loader for kind, loader in (LOADERS if loaders is None else loaders).items()}
        if chunk_tokens < 1:
            raise SettingsError(f"chunk_tokens must be at least 1, not {chunk_tokens}")
        self._chunk_tokens = chunk_tokens
        where = default_place() if index is None else index
        name = f"documents-{hashlib.sha256(f'{self.folder}|{chunk_tokens}'.encode()).hexdigest()[:16]}-{RECIPE}"
        self.place = self._place_of_texts(where)
        self._store = TextStore(self.place / f"{name}.sqlite")
        self.lexicon = Lexicon(self._store)
        self._lock = self.place / f"{name}.lock"
        self._seen: dict[str, str] | None = None
        self._sentences = 0
        self._vectors = SentenceVectors(
            embedder_of(embeddings),
            self._store,
            name=name,
            where=None if where == IN_MEMORY else where,
        )

    def sync(self, progress: Stage | None = None) -> Indexed:
        """Reads and embeds what is new or changed, and removes what is gone.

        A document that is broken, empty or of a duplicate content is left out and named in ``problems``; so is one
        that changes while it is read, of which the old text stays.
        """
        report = progress or (lambda stage, done, total: None)
        with exclusive(self._lock):
            listing = documents_in(self.folder, set(self._loaders))
            before = self._store.files()
            with self._store.changing() as change:
                new = [document for document in listing.documents if before.get(document.name) != document.digest]
                problems = self._put(change, new, report)
                for name in set(before) - {document.name for document in listing.documents}:
                    change.remove(name)
                names = [document.name for document in new]
                self._vectors.embed(lambda: change.chunks(names), lambda done, total: report("embedding", done, total))
            after = self._store.files()
            if after != self._seen:
                self._sentences = self._vectors.refresh()
                self.lexicon, self._seen = Lexicon(self._store), after
        return Indexed(
            documents=len(after),
            chunks=self._store.count(),
            sentences=self._sentences,
            added=len(set(after) - set(before)),
            updated=sum(name in before and before[name] != digest for name, digest in after.items()),
            removed=len(set(before) - set(after)),
            problems=tuple(sorted((*listing.problems, *problems), key=lambda problem: problem.agent)),
        )

    def _put(self, change: Change, new: list[Found], report: Stage) -> list[Problem]:
        problems = []
        with Reader() as reader:
            for done, document in enumerate(new):
                report("reading", done, len(new))
                loader = self._loaders[document.path.suffix.lower()]
                problem = put_document(change, document, loader, tokens=self._chunk_tokens, reader=reader)
                problems += [problem] if problem else []
        return problems

    def similar(self, query: str, also: Collection[str] = ()) -> Similar:
        """The similarity of every chunk, and of its sentences, to a query; estimates for unpromising chunks.

        Args:
            query: The query.
            also: Ids of chunks whose sentences are always compared.
        """
        return self._vectors.similar(query, self.lexicon.shares(content_words(query)), also)

    def chunks(self) -> Iterator[Chunk]:
        """Iterates over all chunks."""
        return self._store.chunks()

    def chunk(self, chunk_id: str) -> Chunk | None:
        """The chunk of this id, if there is one."""
        return self._store.chunk(chunk_id)

    def last_number(self, file: str) -> int:
        """The number of a document's last chunk; 0 for an unknown document."""
        return self._store.last_number(file)

    def files(self) -> tuple[str, ...]:
        """The names of all documents."""
        return tuple(self._store.files())

    def _place_of_texts(self, where: str | Path) -> Path:
        """The folder of the texts; an index in memory has a temporary folder."""
        if where == IN_MEMORY:
            folder = tempfile.TemporaryDirectory(prefix="callsheet-")
            weakref.finalize(self, folder.cleanup)
            return Path(folder.name)
        return default_place() if is_url(where) else Path(where)


_TRIES = 2


class _ChangedError(Exception):
    """A file changed during reading."""

    def __init__(self, digest: str) -> None:
        super().__init__(digest)
        self.digest = digest


def put_document(change: Change, document: Found, loader: Loader, *, tokens: int, reader: Reader) -> Problem | None:
    """Reads a document into the store and returns its problem, if it has one.

    An unreadable document is removed from the store. A document that changes during reading is read once more; if it
    changes again, the store keeps the old text.
    """
    digest = document.digest
    for _ in range(_TRIES):
        try:
            count = change.put(
                document.name, digest, _passages(document.path, digest, reader.blocks(loader, document.path), tokens)
            )
        except _ChangedError as changed:
            digest = changed.digest
            continue
        except ImportError as error:
            change.remove(document.name)
            return Problem(document.name, "missing", str(error))
        except Exception as error:  # noqa: BLE001 a library that reads files of others may raise anything
            change.remove(document.name)
            return Problem(document.name, "broken", _message_of(error))
        return None if count else Problem(document.name, "empty", "holds no text (a scanned PDF needs OCR first)")
    return Problem(document.name, "changing", "changed while it was read, so its new text is not in: index again")


def _passages(path: Path, digest: str, blocks: Iterable[Block], tokens: int) -> Iterator[Passage]:
    cleaned = (Block(clean(block.text.replace("\0", " ")), block.page) for block in blocks)
    yield from passages_of(cleaned, tokens=tokens)
    if (now := digest_of(path)) != digest:
        raise _ChangedError(now)


def _message_of(error: Exception) -> str:
    if isinstance(error, DocumentError):
        return str(error)
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    return f"cannot be read: {type(error).__name__}: {clean(str(error)[:300])}"
