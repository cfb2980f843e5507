"""Loaders of files by kind; callers can add more."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Protocol
from zipfile import BadZipFile, ZipFile

from callsheet.graphs import CallsheetError
from callsheet.retrievers.documents.reading.chunking import Block
from callsheet.retrievers.documents.reading.document_formats import FORMATS, FormatError, row_text

LARGEST_HELD = 64_000_000
"""Maximum size in bytes of an unpacked file that is read at once; text and CSV are streamed and can be larger."""
_READ, _SAMPLE = 1_000_000, 200_000


class DocumentError(CallsheetError, ValueError):
    """A file is not a valid document of its kind."""


class Loader(Protocol):
    """Reads one kind of file."""

    def __call__(self, path: Path) -> Iterator[Block]:
        """The text of the file in order.

        Raises:
            DocumentError: It is broken, encrypted or too large; any other exception counts as that too.
            ImportError: What reads this kind is not installed; the message names it.
        """
        ...


def load_text(path: Path) -> Iterator[Block]:
    """Plain text and Markdown, streamed: UTF-8, UTF-16 with its mark, or the encoding that it most likely has."""
    with path.open(encoding=encoding_of(path), errors="replace") as file:
        yield from _paragraphs(file)


def load_csv(path: Path) -> Iterator[Block]:
    """A table, streamed: each row as ``column: value; ...`` by the names in the first row."""
    with path.open(encoding=encoding_of(path), errors="replace", newline="") as file:
        delimiter = _delimiter(file.readline(_SAMPLE))
        file.seek(0)
        rows = csv.reader(file, delimiter=delimiter)
        try:
            header = [name.strip() for name in next(rows, [])]
            for row in rows:
                yield Block(row_text(header, row))
        except csv.Error as error:
            raise DocumentError(f"not a table: {error}, line {rows.line_num}") from error


@dataclass(frozen=True, slots=True)
class FormatLoader:
    """A loader of a format that a library reads; ``Reader`` runs it in a separate process.

    Attributes:
        format: Its name in ``FORMATS``.
        kind: Its name for people.
    """

    format: str
    kind: str

    def __call__(self, path: Path) -> Iterator[Block]:
        """The text of the file in order, read in this process, without bounds of memory and time."""
        encoding = self.check(path)
        try:
            for text, page in FORMATS[self.format](path, encoding):
                yield Block(text, page)
        except FormatError as error:
            raise DocumentError(str(error)) from error
        except ImportError as error:
            raise not_installed(self.kind, str(error)) from error

    def check(self, path: Path) -> str:
        """The encoding of a file that may be read; empty for what is no text.

        Raises:
            DocumentError: It is too large.
        """
        if self.format == "docx":
            _check_unpacked(path)
        else:
            _check_size(path.stat().st_size)
        return encoding_of(path) if self.format == "html" else ""


load_html = FormatLoader("html", "HTML")
load_pdf = FormatLoader("pdf", "PDF")
load_docx = FormatLoader("docx", "Word")

LOADERS: Mapping[str, Loader] = {
    ".txt": load_text,
    ".text": load_text,
    ".md": load_text,
    ".markdown": load_text,
    ".rst": load_text,
    ".csv": load_csv,
    ".tsv": load_csv,
    ".html": load_html,
    ".htm": load_html,
    ".pdf": load_pdf,
    ".docx": load_docx,
}
"""Loaders by suffix in lower case."""


def encoding_of(path: Path) -> str:
    """The encoding of a text file: from its byte order mark, UTF-8 if its beginning is valid, otherwise the likeliest.

    Raises:
        DocumentError: The file is not text.
    """
    with path.open("rb") as file:
        sample = file.read(_SAMPLE)
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if b"\0" in sample:
        raise DocumentError("it contains zero bytes, so it is not text")
    try:
        # The sample may end in the middle of a character, which takes at most four bytes.
        sample[: sample.rfind(b"\n") + 1 or max(len(sample) - 3, 1)].decode("utf-8")
    except UnicodeDecodeError:
        from charset_normalizer import from_bytes

        best = from_bytes(sample).best()
        if best is None:
            raise DocumentError("its encoding is unknown: save it as UTF-8") from None
        return best.encoding
    return "utf-8-sig"


def _paragraphs(file: IO[str]) -> Iterator[Block]:
    """The text in pieces of a million characters that end with a blank line, or else a line, or else a word."""
    rest = ""
    while part := file.read(_READ):
        rest += part
        if len(part) == _READ:
            cut = rest.rfind("\n\n") + 2
            if cut < 2:
                cut = rest.rfind("\n") + 1 or rest.rfind(" ") + 1 or len(rest)
            yield Block(rest[:cut])
            rest = rest[cut:]
    yield Block(rest)


def _delimiter(first_line: str) -> str:
    """The most frequent of comma, semicolon, tab and bar in the first line."""
    return max(",;\t|", key=first_line.count)


def _check_unpacked(path: Path) -> None:
    try:
        with ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except BadZipFile as error:
        raise DocumentError(f"not a readable .docx: {error}") from error
    _check_size(size)


def _check_size(size: int) -> None:
    if size > LARGEST_HELD:
        raise DocumentError(f"{size:,} bytes to be read at once, {LARGEST_HELD:,} are allowed: split it")


def not_installed(kind: str, package: str) -> ImportError:
    """The error that names what has to be installed."""
    return ImportError(f"{kind} files need the extra documents, which is not installed: pip install {package}")
