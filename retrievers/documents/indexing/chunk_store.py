"""The texts of all chunks in a SQLite file with atomic updates."""

from __future__ import annotations

import hashlib
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from callsheet.graphs import SettingsError
from callsheet.graphs.storage import cure_of, is_full, private_file
from callsheet.retrievers.documents.reading.chunking import Passage

_SCHEMA = """
CREATE TABLE IF NOT EXISTS file (name TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chunk (
  file TEXT NOT NULL, number INTEGER NOT NULL, page INTEGER, text TEXT NOT NULL, ends BLOB NOT NULL,
  PRIMARY KEY (file, number)
) WITHOUT ROWID;
"""
_ALL = "SELECT file, number, page, text, ends FROM chunk ORDER BY file, number"
_OF_FILE = "SELECT file, number, page, text, ends FROM chunk WHERE file = ? ORDER BY number"
_ONE = "SELECT file, number, page, text, ends FROM chunk WHERE file = ? AND number = ?"
_INSERT = "INSERT INTO chunk (file, number, page, text, ends) VALUES (?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document, the unit of reading and citation.

    Attributes:
        file: Path of its document, relative to the folder, with ``/``.
        number: Its number in the document, from 1.
        passage: Its text.
    """

    file: str
    number: int
    passage: Passage

    @property
    def id(self) -> str:
        """``file#number``, stable until the document changes."""
        return f"{self.file}#{self.number}"

    @property
    def text(self) -> str:
        """All of its text."""
        return self.passage.text

    @property
    def digest(self) -> str:
        """A hash of the text, to detect changes of a chunk with the same id."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]


def split_id(chunk_id: str) -> tuple[str, int] | None:
    """File and number of a chunk's id; None for an invalid id."""
    file, mark, number = chunk_id.rpartition("#")
    digits = number.isascii() and number.isdigit() and len(number) < 16
    return (file, int(number)) if mark and file and digits else None


class TextStore:
    """Documents and their chunks. Readers see the state after the last complete update.

    Args:
        path: The SQLite file; created if missing.

    Raises:
        SettingsError: The file cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            private_file(path)
            with closing(self._connect()) as connection:
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(_SCHEMA)
        except (OSError, sqlite3.Error) as error:
            raise SettingsError(
                f"the texts at {path} cannot be opened: {error}: "
                + (cure_of(error) if is_full(error) or isinstance(error, OSError) else "delete the file to index anew")
            ) from error

    def files(self) -> dict[str, str]:
        """All documents by name, with the hashes of their content."""
        with closing(self._connect()) as connection:
            return dict(connection.execute("SELECT name, digest FROM file ORDER BY name"))

    def count(self) -> int:
        """Number of chunks."""
        with closing(self._connect()) as connection:
            (count,) = connection.execute("SELECT COUNT(*) FROM chunk").fetchone()
        return int(count)

    def chunks(self) -> Iterator[Chunk]:
        """Iterates over all chunks, document by document."""
        with closing(self._connect()) as connection:
            yield from map(_chunk, connection.execute(_ALL))

    def ids(self) -> tuple[str, ...]:
        """The ids of all chunks, in the order of ``chunks``."""
        with closing(self._connect()) as connection:
            rows = connection.execute("SELECT file, number FROM chunk ORDER BY file, number")
            return tuple(f"{file}#{number}" for file, number in rows)

    def chunk(self, chunk_id: str) -> Chunk | None:
        """The chunk of this id, if there is one."""
        if (parts := split_id(chunk_id)) is None:
            return None
        with closing(self._connect()) as connection:
            row = connection.execute(_ONE, parts).fetchone()
        return _chunk(row) if row else None

    def last_number(self, file: str) -> int:
        """The number of a document's last chunk; 0 for an unknown document."""
        with closing(self._connect()) as connection:
            (last,) = connection.execute("SELECT MAX(number) FROM chunk WHERE file = ?", (file,)).fetchone()
        return int(last or 0)

    @contextmanager
    def changing(self) -> Iterator[Change]:
        """A transaction: committed at the end of the block, rolled back if it raises or the process dies."""
        with closing(self._connect()) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield Change(connection)
            except BaseException:
                connection.rollback()
                raise
            connection.commit()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=60, isolation_level=None)


class Change:
    """The operations within ``TextStore.changing``."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def put(self, name: str, digest: str, passages: Iterable[Passage]) -> int:
        """Adds or replaces a document and returns the number of its chunks; the old one stays if the passages raise."""
        self._connection.execute("SAVEPOINT document")
        try:
            count = self._replace(name, digest, passages)
        except BaseException:
            self._connection.execute("ROLLBACK TO document")
            raise
        finally:
            self._connection.execute("RELEASE document")
        return count

    def _replace(self, name: str, digest: str, passages: Iterable[Passage]) -> int:
        self.remove(name)
        count = 0
        for passage in passages:
            count += 1
            row = (name, count, passage.page, passage.text, array("I", passage.ends).tobytes())
            self._connection.execute(_INSERT, row)
        if count:
            self._connection.execute("INSERT INTO file (name, digest) VALUES (?, ?)", (name, digest))
        return count

    def remove(self, name: str) -> None:
        """Removes a document with its chunks."""
        self._connection.execute("DELETE FROM chunk WHERE file = ?", (name,))
        self._connection.execute("DELETE FROM file WHERE name = ?", (name,))

    def chunks(self, names: Sequence[str]) -> Iterator[Chunk]:
        """The chunks of these documents within this change."""
        for name in names:
            yield from map(_chunk, self._connection.execute(_OF_FILE, (name,)))


def _chunk(row: tuple[str, int, int | None, str, bytes]) -> Chunk:
    file, number, page, text, ends = row
    return Chunk(file, number, Passage(text, tuple(array("I", ends)), page))
