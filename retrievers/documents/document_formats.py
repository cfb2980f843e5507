"""Reads documents by the loaders of langchain-community, in a separate process with limited memory and time.

The process runs this file by its path and imports only modules beside it, so it starts quickly. It reads one line of
JSON per file, ``{"loader", "path", "seconds", "most", "largest"}``. It writes ``{"text", "page"}`` for each part of the
text, and ends with ``{"end": null}``, ``{"missing": loader}`` or ``{"wrong": message}``.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time
from codecs import lookup
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, NamedTuple
from zipfile import ZipFile

if TYPE_CHECKING:
    from langchain_core.documents import Document

_PIECE = 1_000_000
"""Maximum number of characters of an answer."""
_HEAD = 2_000
"""Number of bytes in which a file may declare its encoding."""
_DECLARED = re.compile(
    r"(?ais)(?:<meta\b[^<>]*\bcharset\s*=|<\?xml\b[^<>]*\bencoding\s*=|-\*-[^\n*]*\bcoding:"
    r"|\bvim?:[^\n]{0,200}\bfileencoding=)\s*[\"']?([\w.-]{3,30})"
)
"""The declaration of an encoding in a web page, in XML, or in a comment for an editor."""
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")


class FormatError(ValueError):
    """Raised if a file cannot be read within the limits; the message is shown to people."""


def text(path: str) -> Iterable[Document]:
    """Reads plain text and Markdown in any encoding."""
    from langchain_community.document_loaders import TextLoader

    return TextLoader(path, encoding=_encoding(path)).lazy_load()


def html(path: str) -> Iterable[Document]:
    """Reads a web page as Markdown, with its headings, lists and tables, without links, scripts and pictures."""
    from langchain_community.document_transformers import MarkdownifyTransformer

    plain: dict[str, Any] = {"escape_misc": False, "escape_underscores": False}
    return MarkdownifyTransformer(strip=["a", "img"], **plain).transform_documents(list(text(path)))


def csv(path: str) -> Iterator[Document]:
    """Reads a table: each row as ``column: value; ...`` by the names in the first row."""
    from langchain_community.document_loaders import CSVLoader

    encoding = _encoding(path)
    with Path(path).open(encoding=encoding, newline="") as file:
        delimiter = max(",;\t|", key=file.readline(_PIECE).count)
    how: dict[str, Any] = {"delimiter": delimiter, "restkey": "", "restval": ""}
    for row in CSVLoader(path, csv_args=how, encoding=encoding).lazy_load():
        row.page_content = "; ".join(cell for cell in row.page_content.split("\n") if not cell.endswith(": "))
        yield row


def pdf(path: str) -> Iterable[Document]:
    """Reads a PDF page by page; a scan without a text layer has no text."""
    from langchain_community.document_loaders import PyPDFLoader

    return PyPDFLoader(path).lazy_load()


def word(path: str) -> Iterable[Document]:
    """Reads a Word document; each cell of a table is a paragraph."""
    from langchain_community.document_loaders import Docx2txtLoader

    return Docx2txtLoader(path).lazy_load()


class DocumentFormat(NamedTuple):
    """A kind of document.

    Attributes:
        name: The name of the format in messages.
        suffixes: The suffixes of its files, in lower case.
        read: Returns the text of the file at a path, in parts.
        is_text: Whether the file itself is text, so that its beginning can be shown without ``read``.
        is_core: Whether documents of this kind are read without the extra ``documents``.
    """

    name: str
    suffixes: tuple[str, ...]
    read: Callable[[str], Iterable[Document]]
    is_text: bool = False
    is_core: bool = False


def reader_in(module: str, function: str) -> Callable[[str], Iterable[Document]]:
    """Returns a function of another module of this folder as a reader; the first call loads the module."""

    def read(path: str) -> Iterable[Document]:
        documents: Iterable[Document] = getattr(_module(module), function)(path)
        return documents

    return read


FORMATS: tuple[DocumentFormat, ...] = (
    DocumentFormat("text", (".txt", ".text", ".md", ".markdown", ".rst"), text, is_text=True, is_core=True),
    DocumentFormat("CSV", (".csv", ".tsv"), csv, is_text=True, is_core=True),
    DocumentFormat("HTML", (".html", ".htm"), html),
    DocumentFormat("PDF", (".pdf",), pdf),
    DocumentFormat("Word", (".docx",), word),
)
"""All kinds of documents; one line adds a kind, with ``reader_in`` if its reader is in a module of its own."""
LOADERS: Mapping[str, DocumentFormat] = {suffix: each for each in FORMATS for suffix in each.suffixes}
"""The format of a file by its suffix."""


def suffixes(*, core: bool) -> str:
    """Returns the suffixes of documents that need the extra ``documents``; with ``core``, of those that do not."""
    return " ".join(suffix for each in FORMATS if each.is_core == core for suffix in each.suffixes)


def _encoding(path: str) -> str:
    """Returns the encoding of a text file.

    A byte order mark decides; without one, it is UTF-8 if the text is valid UTF-8, else as declared, else as detected.

    Raises:
        FormatError: The file is not text, or the encoding cannot be detected with certainty.
    """
    content = Path(path).read_bytes()
    if content.startswith(_BYTE_ORDER_MARKS):
        return "utf-16"
    if b"\0" in content:
        raise FormatError("it contains zero bytes, so it is not text: save it as UTF-8")
    with suppress(UnicodeDecodeError):
        content.decode()
        return "utf-8-sig"
    for name in _DECLARED.findall(content[:_HEAD].decode("latin-1")):
        with suppress(LookupError, UnicodeError):
            # As browsers have it, who declares ISO 8859-1 means Windows-1252, which has more characters.
            declared: str = lookup(name).name.replace("iso8859-1", "cp1252")
            content.decode(declared)
            return declared
    encoding = _module("languages").encoding_of(content)
    if encoding:
        return str(encoding)
    raise FormatError("its encoding is not certain: save it as UTF-8")


@cache
def _module(name: str) -> ModuleType:
    """Loads another module of this folder by path, because this file does not run as part of a package."""
    spec: Any = spec_from_file_location(f"callsheet_{name}", Path(__file__).with_name(f"{name}.py"))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _documents(loader: str, path: str, largest: int) -> Iterable[Document]:
    size = Path(path).stat().st_size
    if loader == "Word":
        with ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    if size > largest:
        raise FormatError(f"it has {size:,} bytes, and at most {largest:,} can be read: split it")
    (read,) = (each.read for each in FORMATS if each.name == loader)
    return read(path)


def _pieces(content: str) -> Iterator[str]:
    """Cuts a text into pieces at blank lines; if there is none, at a line break, or else at a space."""
    start = 0
    while (end := start + _PIECE) < len(content):
        cut = max(content.rfind("\n\n", start, end) + 2, start + 1)
        if cut == start + 1:
            cut = content.rfind("\n", start, end) + 1 or content.rfind(" ", start, end) + 1 or end
        yield content[start:cut]
        start = cut
    yield content[start:]


def serve_orders(orders: IO[str], answers: IO[str], memory: int) -> None:
    """Reads the files that ``orders`` name, one JSON line each, and writes their texts to ``answers``.

    ``memory`` is the maximum number of bytes that the process may use.
    """
    import langchain_community.document_loaders.text  # noqa: F401 (before the time of a file begins)

    # macOS does not heed every limit: there the time alone is limited.
    _limit("RLIMIT_CORE", 0)
    _limit("RLIMIT_AS", memory)
    for line in orders:
        order = json.loads(line)
        _limit("RLIMIT_CPU", math.ceil(time.process_time() + order["seconds"]))  # then the system ends this process
        for answer in _answers(order, memory):
            answers.write(json.dumps(answer) + "\n")
        answers.flush()


def _answers(order: Mapping[str, Any], memory: int) -> Iterator[dict[str, Any]]:
    loader = order["loader"]
    remaining = order["most"]
    try:
        for document in _documents(loader, order["path"], order["largest"]):
            remaining -= len(document.page_content)
            if remaining < 0:
                raise FormatError(
                    f"its text has more than {order['most']:,} characters, out of proportion to its size: split it"
                )
            page = document.metadata.get("page")  # from 0
            for piece in _pieces(document.page_content):
                yield {"text": piece, "page": None if page is None else int(page) + 1}
        yield {"end": None}
    except MemoryError:
        yield {"wrong": f"to read it takes more than {memory:,} bytes of memory: split it"}
    except FormatError as error:
        yield {"wrong": str(error)}
    except ImportError:
        yield {"missing": loader}
    except RecursionError:
        yield {"wrong": f"its {loader} is nested too deeply"}
    except Exception as error:  # noqa: BLE001 a library that reads files of others may raise anything
        why = error.__cause__ or error  # some loaders wrap it
        yield {"wrong": f"not a readable {loader} file: {type(why).__name__}: {str(why)[:300]}"}


def _limit(kind: str, most: int) -> None:
    with suppress(ImportError, ValueError, OSError):  # Windows has no such module
        import resource

        limit = getattr(resource, kind)
        resource.setrlimit(limit, (most, resource.getrlimit(limit)[1]))


if __name__ == "__main__":
    # Output that a library prints must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    serve_orders(sys.stdin, answers, int(sys.argv[1]))
