"""From a file to its text. Each kind of file has a loader, and a caller may bring more."""

from __future__ import annotations

import csv
import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol
from zipfile import ZipFile

from callsheet.graphs import CallsheetError
from callsheet.retrievers.documents.passages import Block

if TYPE_CHECKING:
    from docx.table import Table

LARGEST_HELD = 64_000_000
"""Bytes of a file, unpacked, that a loader may hold at once; text and CSV are streamed and may be larger."""
_READ, _SAMPLE = 1_000_000, 200_000
_SCRIPTS = re.compile(r"(?is)<(script|style|template|noscript)\b.*?</\1\s*>|<!--.*?-->")
_TITLE = re.compile(r"(?is)<title[^>]*>(.*?)</title>")


class DocumentError(CallsheetError, ValueError):
    """A file cannot be read as the document that its name says it is."""


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
                yield Block(_row(header, row))
        except csv.Error as error:
            raise DocumentError(f"not a table: {error}, line {rows.line_num}") from error


def load_html(path: Path) -> Iterator[Block]:
    """A web page: headings, paragraphs, lists and tables, without scripts and pictures."""
    try:
        from markdownify import markdownify
    except ImportError as error:
        raise _not_installed("HTML", "markdownify") from error
    _check_size(path.stat().st_size)
    source = path.read_text(encoding=encoding_of(path), errors="replace")
    title = _TITLE.search(source)
    body = _TITLE.sub("", _SCRIPTS.sub(" ", source))
    if title:
        yield Block(markdownify(title.group(1)))
    yield Block(markdownify(body, strip=["a", "img"], heading_style="ATX", escape_misc=False, escape_underscores=False))


def load_pdf(path: Path) -> Iterator[Block]:
    """A PDF, page by page. A scanned one without a text layer gives nothing."""
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError as error:
        raise _not_installed("PDF", "pypdf") from error
    _check_size(path.stat().st_size)
    # What it mends or finds odd it logs, line after line; what it cannot read it raises.
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise DocumentError("it is encrypted: save it without a password")
        for number, page in enumerate(reader.pages, 1):
            yield Block(page.extract_text(), page=number)
    except PyPdfError as error:
        raise DocumentError(f"not a readable PDF: {error}") from error


def load_docx(path: Path) -> Iterator[Block]:
    """A Word document (.docx): paragraphs and tables in order."""
    try:
        from docx import Document
        from docx.opc.exceptions import OpcError
        from docx.table import Table
    except ImportError as error:
        raise _not_installed("Word", "python-docx") from error
    _check_unpacked(path)
    try:
        for part in Document(str(path)).iter_inner_content():
            if isinstance(part, Table):
                yield from _table(part)
            else:
                yield Block(part.text)
    except (OpcError, KeyError, ValueError) as error:
        raise DocumentError(f"not a readable .docx: {error}") from error


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
"""By the ending of the file's name, in lower case."""


def encoding_of(path: Path) -> str:
    """The encoding of a text file: by its mark, UTF-8 where its beginning is that, else the likeliest.

    Raises:
        DocumentError: It is no text.
    """
    with path.open("rb") as file:
        sample = file.read(_SAMPLE)
    if sample.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if b"\0" in sample:
        raise DocumentError("it holds zero bytes, so it is not text")
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
    """What parts the cells: of comma, semicolon, tab and bar the one that the first line holds most of."""
    return max(",;\t|", key=first_line.count)


def _row(header: list[str], row: list[str]) -> str:
    cells = []
    for place, value in enumerate(row):
        name = header[place] if place < len(header) else ""
        if value.strip():
            cells.append(f"{name}: {value.strip()}" if name else value.strip())
    return "; ".join(cells)


def _table(table: Table) -> Iterator[Block]:
    rows = [[cell.text for cell in row.cells] for row in table.rows]
    header = [name.strip() for name in rows[0]] if rows else []
    for row in rows[1:] or rows:
        yield Block(_row(header if len(rows) > 1 else [], row))


def _check_unpacked(path: Path) -> None:
    from zipfile import BadZipFile

    try:
        with ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except BadZipFile as error:
        raise DocumentError(f"not a readable .docx: {error}") from error
    _check_size(size)


def _check_size(size: int) -> None:
    if size > LARGEST_HELD:
        raise DocumentError(f"{size:,} bytes to be held at once, {LARGEST_HELD:,} are allowed: split it")


def _not_installed(kind: str, package: str) -> ImportError:
    return ImportError(f"{kind} files need the extra documents, which is not installed: pip install {package}")
