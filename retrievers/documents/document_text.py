"""The text of documents: it is cut into chunks that end with a sentence, stored, and indexed by words."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import SettingsError
from callsheet.graphs.storage import cure_of, is_full, private_file
from callsheet.graphs.text.unicode import clean, normalized
from callsheet.graphs.text.words import is_east_asian, words_of
from callsheet.retrievers.documents.languages import languages_of
from callsheet.retrievers.index.indexes import inverse_frequency

CHUNK_TOKENS = 1_000
"""Maximum number of estimated tokens of a chunk."""
LONGEST_SENTENCE = 1_000
"""Maximum number of characters of a sentence."""
_SUSPICIOUS = 400
"""Number of characters of a sentence beyond which an unclosed quotation mark or bracket may have joined several."""
_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*|\n(?=#{1,6}[^\S\n])|(?m:^#{1,6}[^\S\n][^\n]*\n\s*)")
"""Ends of paragraphs: blank lines, and the lines of Markdown's headings."""
HEADING = re.compile(r"#{1,6}\s+")
"""The beginning of a sentence that is a heading of Markdown."""
_PAIRED = str.maketrans(dict.fromkeys("\"'()[]{}«»“”„‘’‹›「」『』（）【】•·▪●■◦‣", " "))
HAS_SENTENCEX = find_spec("sentencex") is not None
"""Whether sentencex is installed, which finds the ends of sentences; without it, full stops end them."""
_FULL_STOP = re.compile(r"(?<=[.!?…])[\"')\]»”’]*\s+|(?<=[。！？।؟])(?![。！？।؟])[」』”’）]*\s*")
_DOTTED = re.compile(r"[^\W_]\.\s*\S")
"""A full stop within a text: the language decides whether a sentence ends there."""
_LAST_WORD = re.compile(r"(?<![^\W_])([^\W_]+)\.\s*$")
_ORDINALS = frozenset("bs cs da de et eu fi fo hr hu is lb lv nb nn no pl sk sl sr tr".split())
"""Languages that write "the third" as ``3.``"""
_CERTAIN = 0.9
"""Minimum probability of the language of a paragraph."""
_LONGEST_ABBREVIATION = 4
_LONGEST_WORD = 50
"""Number of characters at the end of a sentence that tell whether it goes on."""
_BREAKABLE = re.compile(r".*(?:[;,:；，、。]\s*|\s)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of a document as its loader returns it, for example a paragraph, a page or a row.

    A sentence never crosses it.
    """

    text: str
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """The text of one chunk, the positions where its sentences end, and the number of its first page, if any."""

    text: str
    ends: tuple[int, ...]
    page: int | None = None

    @property
    def sentences(self) -> tuple[str, ...]:
        """Returns the sentences of the passage, without the white space around them."""
        starts = (0, *self.ends[:-1])
        return tuple(self.text[start:end].strip() for start, end in zip(starts, self.ends, strict=True))


def estimated_tokens(text: str) -> int:
    """Estimates the tokens of a text for a chat model: a quarter of its bytes in UTF-8, rounded up, in any script."""
    return -(-len(text.encode("utf-8", "replace")) // 4)


def passages_of(blocks: Iterable[Block], *, tokens: int = CHUNK_TOKENS) -> Iterator[Passage]:
    """Yields passages of whole sentences, each of at most this number of estimated tokens.

    Only one passage is in memory at a time.

    Source: A-RAG (arXiv 2602.03442), section 3.1: chunks of about 1,000 tokens that end with a sentence.
    """
    sentences: list[str] = []
    size = 0
    page: int | None = None
    for block in blocks:
        for sentence in _sentences_of_block(block):
            cost = estimated_tokens(sentence)
            if sentences and size + cost > tokens:
                yield _passage(sentences, page)
                sentences = []
                size = 0
            if not sentences:
                page = block.page
            sentences.append(sentence)
            size += cost
    if sentences:
        yield _passage(sentences, page)


def _passage(sentences: Sequence[str], page: int | None) -> Passage:
    return Passage("".join(sentences), tuple(accumulate(map(len, sentences))), page)


def _sentences_of_block(block: Block) -> list[str]:
    """Returns the sentences of a block; the last one ends with a line break."""
    text = block.text.strip()
    if not text:
        return []
    sentences = list(sentences_of(text))
    sentences[-1] += "\n"
    return sentences


def sentences_of(text: str, *, language: str = "") -> Iterator[str]:
    """Iterates over the sentences of a text with the white space after each; joined, they are the text again.

    Longer sentences than 1,000 characters (tables, lists without full stops) are cut at the last comma or space.
    ``language`` (ISO 639-1) is that of all paragraphs; by default, each paragraph's own, as far as that is certain.
    """
    start = 0
    last = ""
    for end in (*(gap.end() for gap in _PARAGRAPH.finditer(text)), len(text)):
        if start == end:
            continue
        paragraph = text[start:end]
        last = language or _language(paragraph, last)
        for sentence in _split(paragraph, last):
            yield from _cut(sentence)
        start = end


def _language(paragraph: str, last: str) -> str:
    """Returns the language of a paragraph; ``last``, that of the one before, if it is not certain, or not needed."""
    if not _DOTTED.search(paragraph):
        return last
    probabilities = languages_of(paragraph)
    if not probabilities:
        return last
    likeliest = next(iter(probabilities))
    alike = {likeliest}
    if likeliest in _ORDINALS:
        # Sentences end alike in these languages, so it does not matter whether it is Danish or Norwegian.
        alike = set(probabilities.keys() & _ORDINALS)
    probability = sum(probabilities[language] for language in alike)
    return likeliest if probability >= _CERTAIN else last


def _split(paragraph: str, language: str) -> list[str]:
    """Returns the sentences of a paragraph in this language; an empty one counts as English."""
    parts: list[str] = []
    for part in _segmented(paragraph, paragraph, language):
        if len(part) > _SUSPICIOUS:
            parts += _segmented(part, part.translate(_PAIRED), language)
        else:
            parts.append(part)
    sentences: list[str] = []
    for part in parts:
        if sentences and (not part.strip() or _goes_on(sentences[-1], part, language)):
            sentences[-1] += part
        else:
            sentences.append(part)
    return sentences


def _goes_on(before: str, after: str, language: str) -> bool:
    """Returns whether the full stop between two parts ends no sentence.

    It may end an ordinal or an abbreviation, or what follows begins no sentence. In doubt, the parts are one sentence:
    two sentences as one are found as well as each alone, but half a sentence lacks the other half.
    """
    end = before[-_LONGEST_WORD:]
    word = _LAST_WORD.search(end)
    start = after.lstrip()[:1]
    if not word or not start:
        return False
    last = word[1]
    if last.isdigit():
        return language in _ORDINALS and len(last) <= 3 and start.isalnum()
    if "\n" in end[word.end(1) :]:
        return False
    is_initial = len(last) == 1 and last.isupper()
    if is_initial and start.isupper():
        # "J. K. Rowling" goes on; "in Washington, D.C. He met" does not.
        return end[: word.start()][-1:] != "."
    if start.isdigit():
        return len(last) <= _LONGEST_ABBREVIATION
    return start.islower()


def _segmented(text: str, model: str, language: str) -> Iterator[str]:
    """Cuts a text where ``model``, a text of the same length, has ends of sentences.

    Unknown languages and scripts are cut as English.
    """
    parts: Iterable[str]
    if HAS_SENTENCEX:
        from sentencex import segment  # pyright: ignore[reportAttributeAccessIssue] (compiled, without stubs)

        parts = segment(language or "en", clean(model))
    else:
        ends = [match.end() for match in _FULL_STOP.finditer(model)]
        parts = [model[start:end] for start, end in pairwise([0, *ends, len(model)])]
    start = 0
    for part in parts:
        yield text[start : start + len(part)]
        start += len(part)


def _cut(sentence: str) -> Iterator[str]:
    """Cuts a sentence that is too long at the last comma or space."""
    while len(sentence) > LONGEST_SENTENCE:
        end = LONGEST_SENTENCE
        match = _BREAKABLE.match(sentence, 0, end)
        if match and match.end() > end // 2:
            end = match.end()
        yield sentence[:end]
        sentence = sentence[end:]
    if sentence:
        yield sentence


_LEAST_WORD = 4


def plain(text: str) -> str:
    """Normalises a text so that words can be compared: lower case, canonical characters, single spaces."""
    folded = text.lower() if text.isascii() else normalized("NFD", text).casefold()
    return " ".join(normalized("NFC", folded).split())


def content_words(text: str) -> list[str]:
    """Returns the distinct words of a text that indicate its subject, normalised by ``plain``.

    Short words are left out: in languages that separate words, they are mostly grammar. See ``words_of``.
    """
    words = words_of(plain(text))
    return list(dict.fromkeys(word for word in words if len(word) >= _LEAST_WORD or is_east_asian(word)))


_SELECT = "SELECT file, number, page, text, ends FROM chunk"
_INSERT = "INSERT INTO chunk (file, number, page, text, ends) VALUES (?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a document: the path of the document relative to its folder, and the number of the part, from 1."""

    file: str
    number: int
    passage: Passage

    @property
    def id(self) -> str:
        """Returns ``file#number``, which stays the same until the document changes."""
        return f"{self.file}#{self.number}"

    @property
    def text(self) -> str:
        """Returns the whole text of the chunk."""
        return self.passage.text

    @property
    def digest(self) -> str:
        """Returns a hash of the text, which shows whether a chunk with the same id has changed."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:12]


class SqliteFile:
    """A private SQLite file; readers see the state after the last complete update.

    Raises:
        SettingsError: The file cannot be opened.
    """

    schema: ClassVar[str]

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            private_file(path)
            with closing(self._connect()) as connection:
                connection.execute("PRAGMA page_size = 8192")
                connection.execute("PRAGMA journal_mode = WAL")
                connection.executescript(self.schema)
        except (OSError, sqlite3.Error) as error:
            raise SettingsError(
                f"the index at {path} cannot be opened: {error}: "
                + (cure_of(error) if is_full(error) or isinstance(error, OSError) else "delete the file to index anew")
            ) from error

    def _read(self, query: str, *values: object) -> Iterator[Any]:
        with closing(self._connect()) as connection:
            yield from connection.execute(query, values)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Committed at the end of the block, rolled back if it raises or the process dies."""
        with closing(self._connect()) as connection, connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self._path, timeout=60, isolation_level=None)


class TextStore(SqliteFile):
    """The store of the documents and chunks of a folder, in SQLite."""

    schema = """
    CREATE TABLE IF NOT EXISTS file (name TEXT PRIMARY KEY, digest TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE IF NOT EXISTS chunk (
      file TEXT NOT NULL, number INTEGER NOT NULL, page INTEGER, text TEXT NOT NULL, ends BLOB NOT NULL,
      PRIMARY KEY (file, number)
    ) WITHOUT ROWID;
    """

    def files(self) -> dict[str, str]:
        """Returns all documents by name, with the hashes of their content."""
        return dict(self._read("SELECT name, digest FROM file ORDER BY name"))

    def chunks(self) -> Iterator[Chunk]:
        """Iterates over all chunks, document by document."""
        return map(_chunk, self._read(f"{_SELECT} ORDER BY file, number"))

    def ids(self) -> tuple[str, ...]:
        """Returns the ids of all chunks, in the order of ``chunks``."""
        rows = self._read("SELECT file, number FROM chunk ORDER BY file, number")
        return tuple(f"{file}#{number}" for file, number in rows)

    def chunk(self, chunk_id: str) -> Chunk | None:
        """Returns the chunk of this id, if there is one."""
        file, _, number = chunk_id.rpartition("#")
        if not (number.isascii() and number.isdigit() and len(number) < 16):
            return None
        return next(map(_chunk, self._read(f"{_SELECT} WHERE file = ? AND number = ?", file, int(number))), None)

    @contextmanager
    def changing(self) -> Iterator[StoreTransaction]:
        """Runs the block as one transaction: either all its changes are stored or none."""
        with self._transaction() as connection:
            yield StoreTransaction(connection)


class StoreTransaction(TextStore):
    """A transaction of ``TextStore.changing``, which already sees its own changes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def _read(self, query: str, *values: object) -> Iterator[Any]:
        return self._connection.execute(query, values)

    def put(self, name: str, digest: str, passages: Iterable[Passage]) -> int:
        """Adds or replaces a document and returns the number of its chunks; on an error, the old document stays."""
        count = 0
        execute = self._connection.execute
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
        self._read("DELETE FROM chunk WHERE file = ?", name)
        self._read("DELETE FROM file WHERE name = ?", name)


def _chunk(row: tuple[str, int, int | None, str, bytes]) -> Chunk:
    file, number, page, text, ends = row
    return Chunk(file, number, Passage(text, tuple(array("I", ends)), page))


HELD = 16_000_000
"""Maximum number of characters of a folder's texts that are kept in memory."""


class Occurrences(NamedTuple):
    """The rows of the chunks that contain one keyword, ascending, and the counts of the keyword, both ``(m,)``."""

    rows: NDArray[np.int64]
    counts: NDArray[np.int64]


class Lexicon:
    """The words of all chunks in one state of the index, for searches by words."""

    def __init__(self, store: TextStore) -> None:
        self._store = store
        self.ids = store.ids()
        self._texts: list[str] | None = None

    def texts(self) -> Iterator[str]:
        """Yields the normalised texts of all chunks in order; those of a small folder then stay in memory."""
        if self._texts is not None:
            yield from self._texts
            return
        texts = []
        size = 0
        for chunk in self._store.chunks():
            text = plain(chunk.text)
            size += len(text)
            if size <= HELD:
                texts.append(text)
            yield text
        if size <= HELD:
            self._texts = texts

    def occurrences(self, keys: Sequence[str]) -> Mapping[str, Occurrences]:
        """Returns where these normalised keywords occur; rows are positions in ``ids``."""
        found = {key: (array("q"), array("q")) for key in keys}
        for row, text in enumerate(self.texts()):
            for key, (rows, counts) in found.items():
                count = text.count(key)
                if count:
                    rows.append(row)
                    counts.append(count)
        return {key: Occurrences(*map(np.array, both)) for key, both in found.items()}

    def shares(self, keywords: Sequence[str]) -> Mapping[str, float]:
        """Maps the id of each chunk to its share of these keywords, weighted by rarity; shares of 0 are left out."""
        keys = list(dict.fromkeys(filter(None, map(plain, keywords))))
        occurrences = self.occurrences(keys)
        sums = np.zeros(len(self.ids))
        rarities = {key: rarity(len(occurrences[key].rows), len(sums)) for key in keys}
        for key in keys:
            sums[occurrences[key].rows] += rarities[key]
        total = sum(rarities.values())
        return {self.ids[row]: float(sums[row] / total) for row in np.flatnonzero(sums).tolist()}


def rarity(n: int, chunks: int) -> float:
    """Returns the inverse document frequency of a word in n chunks, divided by that of a word in one chunk."""
    return inverse_frequency(n, chunks) / inverse_frequency(1, chunks) if n else 0.0
