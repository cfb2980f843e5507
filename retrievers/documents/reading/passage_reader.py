"""From a file to its passages, whatever the file turns out to be."""

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
    """A file was written to while it was read.

    Args:
        digest: Hash of what it holds now.
    """

    def __init__(self, digest: str) -> None:
        super().__init__(digest)
        self.digest = digest


def put_document(change: Change, found: Found, loader: Loader, *, tokens: int, reader: Reader) -> Problem | None:
    """Reads a document into the store; gives what was wrong with it, if anything was.

    A document that cannot be read is removed from the store. One that changes while it is read is read once more; if
    it changes again, the store keeps what it had.

    Args:
        change: The change of the store that it belongs to.
        found: The file.
        loader: What reads it.
        tokens: Estimated tokens of a chunk.
        reader: Holds it to the bounds.
    """
    digest = found.digest
    for _ in range(_TRIES):
        try:
            count = change.put(
                found.name, digest, _passages(found.path, digest, reader.blocks(loader, found.path), tokens)
            )
        except _ChangedError as changed:
            digest = changed.digest
            continue
        except ImportError as error:
            change.remove(found.name)
            return Problem(found.name, "missing", str(error))
        except Exception as error:  # noqa: BLE001 a library that reads files of others may raise anything
            change.remove(found.name)
            return Problem(found.name, "broken", _in_words(error))
        return None if count else Problem(found.name, "empty", "holds no text (a scanned PDF needs OCR first)")
    return Problem(found.name, "changing", "changed while it was read, so its new text is not in: index again")


def _passages(path: Path, digest: str, blocks: Iterable[Block], tokens: int) -> Iterator[Passage]:
    cleaned = (Block(clean(block.text.replace("\0", " ")), block.page) for block in blocks)
    yield from passages_of(cleaned, tokens=tokens)
    if (now := digest_of(path)) != digest:
        raise _ChangedError(now)


def _in_words(error: Exception) -> str:
    if isinstance(error, DocumentError):
        return str(error)
    if isinstance(error, OSError):
        return f"cannot be read: {error.strerror}"
    return f"cannot be read: {type(error).__name__}: {clean(str(error)[:300])}"
