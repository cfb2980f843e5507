"""The texts of all chunks in a SQLite file with atomic updates, and the words in them."""

from __future__ import annotations

import hashlib
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import SettingsError
from callsheet.graphs.storage import cure_of, is_full, private_file
from callsheet.retrievers.documents.document_text import Passage, first_line, plain
from callsheet.retrievers.index.lexical_index import inverse_frequency

_SCHEMA = """
CREATE TABLE IF NOT EXISTS file (name TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chunk (
  file TEXT NOT NULL, number INTEGER NOT NULL, page INTEGER, text TEXT NOT NULL, ends BLOB NOT NULL,
  PRIMARY KEY (file, number)
) WITHOUT ROWID;
"""
_SELECT = "SELECT file, number, page, text, ends FROM chunk"
_INSERT = "INSERT INTO chunk (file, number, page, text, ends) VALUES (?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document, with its path relative to the folder, with ``/``, and its number in it, from 1."""

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
    """Documents and their chunks in a SQLite file. Readers see the state after the last complete update.

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
        return dict(self._read("SELECT name, digest FROM file ORDER BY name"))

    def chunks(self) -> Iterator[Chunk]:
        """Iterates over all chunks, document by document."""
        return map(_chunk, self._read(f"{_SELECT} ORDER BY file, number"))

    def ids(self) -> tuple[str, ...]:
        """The ids of all chunks, in the order of ``chunks``."""
        rows = self._read("SELECT file, number FROM chunk ORDER BY file, number")
        return tuple(f"{file}#{number}" for file, number in rows)

    def chunk(self, chunk_id: str) -> Chunk | None:
        """The chunk of this id, if there is one."""
        if (parts := split_id(chunk_id)) is None:
            return None
        return next(map(_chunk, self._read(f"{_SELECT} WHERE file = ? AND number = ?", *parts)), None)

    def last_number(self, file: str) -> int:
        """The number of a document's last chunk; 0 for an unknown document."""
        ((last,),) = self._read("SELECT MAX(number) FROM chunk WHERE file = ?", file)
        return int(last or 0)

    def _read(self, query: str, *values: object) -> Iterator[Any]:
        with closing(self._connect()) as connection:
            yield from connection.execute(query, values)

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
        count, execute = 0, self._connection.execute
        execute("SAVEPOINT document")
        try:
            self.remove(name)
            for count, passage in enumerate(passages, 1):
                execute(_INSERT, (name, count, passage.page, passage.text, array("I", passage.ends).tobytes()))
            if count:
                execute("INSERT INTO file (name, digest) VALUES (?, ?)", (name, digest))
        except BaseException:
            execute("ROLLBACK TO document")
            raise
        finally:
            execute("RELEASE document")
        return count

    def remove(self, name: str) -> None:
        """Removes a document with its chunks."""
        self._connection.execute("DELETE FROM chunk WHERE file = ?", (name,))
        self._connection.execute("DELETE FROM file WHERE name = ?", (name,))

    def chunks(self, names: Sequence[str]) -> Iterator[Chunk]:
        """The chunks of these documents within this change."""
        for name in names:
            yield from map(_chunk, self._connection.execute(f"{_SELECT} WHERE file = ? ORDER BY number", (name,)))


def _chunk(row: tuple[str, int, int | None, str, bytes]) -> Chunk:
    file, number, page, text, ends = row
    return Chunk(file, number, Passage(text, tuple(array("I", ends)), page))


HELD = 16_000_000
"""Maximum number of characters of a folder's texts that stay in memory."""
_MOST_KEYS = 4_096


class PlainChunk(NamedTuple):
    """A chunk in the form for comparing words (``plain``); its title is its first sentence, or its heading."""

    id: str
    title: str
    text: str


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The chunks that contain one keyword: their rows, ascending, and for each of them, ``(m,)``.

    Attributes:
        counts: Number of occurrences.
        titles: Share of the keyword in its title, 0 if it is not in the title.
    """

    rows: NDArray[np.int64]
    counts: NDArray[np.int64]
    titles: NDArray[np.float64]


class Lexicon:
    """The chunks of one state of an index, for comparing words."""

    def __init__(self, store: TextStore) -> None:
        self._store, self.ids = store, store.ids()
        self._chunks: list[PlainChunk] | None = None
        self._cache: dict[str, Occurrences] = {}

    def chunks(self) -> Iterator[PlainChunk]:
        """All chunks in order; those of a small folder stay in memory after the first iteration."""
        if self._chunks is not None:
            yield from self._chunks
            return
        chunks, size = [], 0
        for chunk in self._store.chunks():
            item = PlainChunk(chunk.id, plain(first_line(chunk.passage.sentences[0])), plain(chunk.text))
            size += len(item.text)
            if size <= HELD:
                chunks.append(item)
            yield item
        if size <= HELD:
            self._chunks = chunks

    def occurrences(self, keys: Sequence[str]) -> Mapping[str, Occurrences]:
        """The occurrences of these plain keywords; rows are indexes of ``ids``."""
        cache = self._cache if len(self._cache) < _MOST_KEYS else {}
        if missing := [key for key in dict.fromkeys(keys) if key not in cache]:
            cache = {**cache, **_occurrences(missing, self.chunks())}
            self._cache = cache
        return {key: cache[key] for key in keys}

    def shares(self, keywords: Sequence[str]) -> Mapping[str, float]:
        """Id of a chunk -> its share of these keywords, weighted by rarity; chunks without any are left out."""
        keys = list(dict.fromkeys(filter(None, map(plain, keywords))))
        occurrences = self.occurrences(keys)
        sums = np.zeros(len(self.ids))
        rarities = {key: rarity(len(occurrences[key].rows), len(sums)) for key in keys}
        for key in keys:
            sums[occurrences[key].rows] += rarities[key]
        total = sum(rarities.values())
        return {self.ids[row]: float(sums[row] / total) for row in np.flatnonzero(sums).tolist()}


def rarity(n: int, chunks: int) -> float:
    """Inverse document frequency of a word in n chunks, divided by that of a word in one chunk."""
    return inverse_frequency(n, chunks) / inverse_frequency(1, chunks) if n else 0.0


def _occurrences(keys: Sequence[str], chunks: Iterable[PlainChunk]) -> Mapping[str, Occurrences]:
    """Searches keywords in one pass over all chunks."""
    found = {key: (array("q"), array("q"), array("d")) for key in keys}
    for row, chunk in enumerate(chunks):
        for key, (rows, counts, titles) in found.items():
            if count := chunk.text.count(key):
                rows.append(row)
                counts.append(count)
                titles.append(len(key) / max(len(chunk.title), 1) if key in chunk.title else 0.0)
    return {key: Occurrences(*map(np.array, columns)) for key, columns in found.items()}
