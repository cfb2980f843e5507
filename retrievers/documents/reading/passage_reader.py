"""Reads a file into the store, and reports its problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from callsheet.graphs import Problem
from callsheet.graphs.text.sanitizing import clean
from callsheet.retrievers.documents.indexing.chunk_store import Change
from callsheet.retrievers.documents.reading.bounded_reader import Reader
from callsheet.retrievers.documents.reading.chunking import Block, Passage, passages_of
from callsheet.retrievers.documents.reading.folder_scan import Found, digest_of
from callsheet.retrievers.documents.reading.loaders import DocumentError, Loader

_TRIES = 2


class _ChangedError(Exception):
    """A file changed during reading.

    Args:
        digest: Hash of its present content.
    """

    def __init__(self, digest: str) -> None:
        super().__init__(digest)
        self.digest = digest


def put_document(change: Change, document: Found, loader: Loader, *, tokens: int, reader: Reader) -> Problem | None:
    """Reads a document into the store and returns its problem, if it has one.

    An unreadable document is removed from the store. A document that changes during reading is read once more; if it
    changes again, the store keeps the old text.

    Args:
        change: The transaction of the store.
        document: The file.
        loader: The loader of its kind.
        tokens: Maximum number of estimated tokens of a chunk.
        reader: Applies the limits.
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
