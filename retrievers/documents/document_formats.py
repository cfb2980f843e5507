"""HTML, PDF and Word read by libraries; also a process that does so for another one, within bounds of memory and time.

As a process it is run by path, and imports nothing of ours, so that it starts quickly. It reads a line of JSON for each
file, ``{"format", "path", "encoding", "seconds", "most"}``, and writes lines: ``{"text", "page"}`` for each part of the
text, at last ``{"end": null}``, ``{"missing": package}`` or ``{"wrong": message}``.

"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from docx.table import Table

_DROPPED = re.compile(r"<(script|style|template|noscript)\b|<!--", re.IGNORECASE)
_TITLE, _END_OF_TITLE = re.compile(r"<title\b", re.IGNORECASE), re.compile(r"</title\b", re.IGNORECASE)
_MOST_COLUMNS = 63  # of a table in Word


class FormatError(ValueError):
    """A file is not what its name says, or cannot be read within the bounds."""


Format = Callable[[Path, str], Iterator[tuple[str, int | None]]]
"""Reads parts of the text of a file in an encoding, each with its page where there are pages.

It raises a ``FormatError``, or an ``ImportError`` whose message is the package that reads the format.
"""


def html(path: Path, encoding: str) -> Iterator[tuple[str, int | None]]:
    """A web page: headings, paragraphs, lists and tables, without scripts and pictures."""
    try:
        from markdownify import markdownify
    except ImportError as error:
        raise ImportError("markdownify") from error
    title, body = _title_and_rest(without_scripts(path.read_text(encoding=encoding, errors="replace")))
    if title:
        yield markdownify(title), None
    yield markdownify(body, strip=["a", "img"], heading_style="ATX", escape_misc=False, escape_underscores=False), None


def without_scripts(source: str) -> str:
    """A page without scripts, styles, templates and comments; one that is never closed goes on to the end."""
    parts, at = [], 0
    while match := _DROPPED.search(source, at):
        parts.append(source[at : match.start()])
        at = _end_of(match)
    return " ".join((*parts, source[at:]))


def _end_of(match: re.Match[str]) -> int:
    closing = "-->" if match[1] is None else rf"</{match[1]}\s*>"
    end = re.compile(closing, re.IGNORECASE).search(match.string, match.end())
    return end.end() if end else len(match.string)


def _title_and_rest(source: str) -> tuple[str, str]:
    opened = _TITLE.search(source)
    begins = source.find(">", opened.end()) + 1 if opened else 0
    ends = _END_OF_TITLE.search(source, begins) if begins else None
    if not opened or not ends:
        return "", source
    return source[begins : ends.start()], source[: opened.start()] + source[source.find(">", ends.end()) + 1 :]


def pdf(path: Path, encoding: str) -> Iterator[tuple[str, int | None]]:
    """A PDF, page by page. A scanned one without a text layer gives nothing."""
    try:
        from pypdf import PdfReader
        from pypdf.errors import PyPdfError
    except ImportError as error:
        raise ImportError("pypdf") from error
    # What it mends or finds odd it logs, line after line; what it cannot read it raises.
    logging.getLogger("pypdf").setLevel(logging.ERROR)
    try:
        reader = PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise FormatError("it is encrypted: save it without a password")
        for number, page in enumerate(reader.pages, 1):
            yield page.extract_text(), number
    except PyPdfError as error:
        raise FormatError(f"not a readable PDF: {error}") from error


def docx(path: Path, encoding: str) -> Iterator[tuple[str, int | None]]:
    """A Word document (.docx): paragraphs and tables in order."""
    try:
        from docx import Document
        from docx.opc.exceptions import OpcError
        from docx.oxml.ns import qn
        from docx.table import Table
    except ImportError as error:
        raise ImportError("python-docx") from error
    try:
        document = Document(str(path))
        # A cell counts once for each column that it spans, so a number of nine digits is as many cells.
        for kind in ("w:gridSpan", "w:gridBefore", "w:gridAfter"):
            if any(int(span.get(qn("w:val"), "1")) > _MOST_COLUMNS for span in document.element.iter(qn(kind))):
                raise FormatError(f"not a readable .docx: a table has more than {_MOST_COLUMNS} columns")
        for part in document.iter_inner_content():
            yield from _table(part) if isinstance(part, Table) else [(part.text, None)]
    except FormatError:
        raise
    except (OpcError, KeyError, ValueError) as error:
        raise FormatError(f"not a readable .docx: {error}") from error


def _table(table: Table) -> Iterator[tuple[str, None]]:
    rows = [[cell.text for cell in row.cells] for row in table.rows]
    header = [name.strip() for name in rows[0]] if rows else []
    for row in rows[1:] or rows:
        yield row_text(header if len(rows) > 1 else [], row), None


def row_text(header: list[str], row: list[str]) -> str:
    """A row of a table as ``column: value; ...``."""
    cells = []
    for place, value in enumerate(row):
        name = header[place] if place < len(header) else ""
        if value.strip():
            cells.append(f"{name}: {value.strip()}" if name else value.strip())
    return "; ".join(cells)


FORMATS: Mapping[str, Format] = {"html": html, "pdf": pdf, "docx": docx}


def bounded(parts: Iterable[Any], most: int) -> Iterator[Any]:
    """The parts of a text, each a pair that begins with its text, while they have no more characters than this.

    Raises:
        FormatError: They have more.
    """
    remaining = most
    for part in parts:
        remaining -= len(part[0])
        if remaining < 0:
            raise FormatError(f"its text has more than {most:,} characters, out of proportion to its size")
        yield part


def serve(orders: IO[str], answers: IO[str], memory: int) -> None:
    """Reads files as it is told to, until there are no more orders, within so many bytes of memory."""
    # macOS does not heed every bound: there the time alone is bounded.
    _bound("RLIMIT_CORE", 0)
    _bound("RLIMIT_AS", memory)
    for line in orders:
        order = json.loads(line)
        _bound("RLIMIT_CPU", math.ceil(time.process_time() + order["seconds"]))  # then the system ends this process
        for answer in _answers(order, memory):
            answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _answers(order: Mapping[str, Any], memory: int) -> Iterator[dict[str, Any]]:
    try:
        read = FORMATS[order["format"]](Path(order["path"]), order["encoding"])
        for text, page in bounded(read, order["most"]):
            yield {"text": text, "page": page}
        yield {"end": None}
    except ImportError as error:
        yield {"missing": str(error)}
    except MemoryError:
        yield {"wrong": f"to read it takes more than {memory:,} bytes of memory"}
    except FormatError as error:
        yield {"wrong": str(error)}
    except Exception as error:  # noqa: BLE001 a library that reads files of others may raise anything
        yield {"wrong": f"cannot be read: {type(error).__name__}: {str(error)[:300]}"}


def _bound(kind: str, most: int) -> None:
    with suppress(ImportError, ValueError, OSError):  # Windows has no such module
        import resource

        limit = getattr(resource, kind)
        resource.setrlimit(limit, (most, resource.getrlimit(limit)[1]))


if __name__ == "__main__":
    # Output that a library prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve(sys.stdin, answers, int(sys.argv[1]))
