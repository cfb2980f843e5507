"""Reads the documents of a folder: which there are, what they hold, and what they are about."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Self, cast
from zipfile import BadZipFile, ZipFile

from callsheet.graphs import CallsheetError, CatalogError, Problem
from callsheet.graphs.text.regex import linear
from callsheet.graphs.text.sanitizing import clean, hidden_in, one_line
from callsheet.retrievers.documents import document_formats
from callsheet.retrievers.documents.document_formats import FormatError, bounded, row_text
from callsheet.retrievers.documents.document_text import Block, content_words

_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """A file that is a document by its name, which is its path relative to the folder, with ``/``."""

    name: str
    path: Path
    digest: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The documents of a folder by name, without duplicates of content, and the files left out, with reasons."""

    documents: tuple[Found, ...]
    problems: tuple[Problem, ...] = ()


def documents_in(folder: Path, kinds: Collection[str]) -> Listing:
    """The documents of a folder and its subfolders.

    Hidden files and folders are skipped; files whose suffix is none of ``kinds`` are counted in one problem. Files that
    are empty, unreadable, duplicates, or links out of the folder are reported one by one.

    Raises:
        CatalogError: There is no such folder.
    """
    root = existing_folder(folder)
    documents: list[Found] = []
    problems: list[Problem] = []
    holder: dict[str, str] = {}
    others: Counter[str] = Counter()
    for path in _files(root):
        name = clean(path.relative_to(root).as_posix())
        if path.suffix.lower() not in kinds:
            others[one_line(path.suffix.lower()) or "no ending"] += 1
            continue
        if (why := _unfit(path, root)) is not None:
            problems.append(Problem(one_line(name), *why))
            continue
        try:
            digest = digest_of(path)
        except OSError as error:
            problems.append(Problem(name, "unreadable", f"cannot be read: {error.strerror}"))
            continue
        if digest in holder:
            problems.append(Problem(name, "duplicate", f"has the content of {holder[digest]}, which is indexed"))
            continue
        holder[digest] = name
        documents.append(Found(name, path, digest))
    if others:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
        message = f"not read: {counts}; kinds that are: {' '.join(sorted(kinds))}"
        problems.append(Problem("(other files)", "kind", message))
    return Listing(tuple(documents), tuple(problems))


def existing_folder(folder: Path) -> Path:
    """The absolute path of a folder; a ``CatalogError`` if there is none."""
    try:
        root = folder.expanduser().resolve()
        is_folder = root.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        raise CatalogError(f"no documents at {str(folder)[:80]!r}: it cannot be a path: {error.args[-1]}") from error
    if not is_folder:
        why = "it is a file: give the folder that it is in" if root.exists() else "there is no such folder"
        raise CatalogError(f"no documents at {folder}: {why}")
    return root


def digest_of(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _files(root: Path) -> Iterator[Path]:
    for where, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(where, name)


def _unfit(path: Path, root: Path) -> tuple[str, str] | None:
    """Kind and reason of a problem that excludes a file; None if there is none."""
    if any("\ud800" <= letter <= "\udfff" for letter in path.name):
        return "unreadable", "its name is not UTF-8: rename it"
    if "\n" in (name := path.relative_to(root).as_posix()) or hidden_in(name):
        return "unreadable", "its name holds characters that are not seen, or the end of a line: rename it"
    try:
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            return "link", "is a link that leads out of the folder: copy the file"
        if not path.is_file():
            return "unreadable", "is not a regular file"
        if path.stat().st_size == 0:
            return "empty", "is empty"
    except OSError as error:
        return "unreadable", f"cannot be read: {error.strerror}"
    except RuntimeError:  # Python 3.11 and 3.12
        return "link", "is a link that leads to itself"
    return None


LARGEST_HELD = 64_000_000
"""Maximum size in bytes of an unpacked file that is read at once; text and CSV are streamed and can be larger."""
_READ, _SAMPLE = 1_000_000, 200_000


class DocumentError(CallsheetError, ValueError):
    """A file is not a valid document of its kind."""


Loader = Callable[[Path], Iterator[Block]]
"""Reads the text of a file in order, or raises a ``DocumentError``; any other exception counts as that too.

An ``ImportError`` names the package that reads this kind, where it is not installed.
"""


def load_text(path: Path) -> Iterator[Block]:
    """Plain text and Markdown, streamed: UTF-8, UTF-16 with its mark, or the encoding that it most likely has."""
    with path.open(encoding=encoding_of(path), errors="replace") as file:
        yield from _paragraphs(file)


def load_csv(path: Path) -> Iterator[Block]:
    """A table, streamed: each row as ``column: value; ...`` by the names in the first row."""
    with path.open(encoding=encoding_of(path), errors="replace", newline="") as file:
        delimiter = max(",;\t|", key=file.readline(_SAMPLE).count)
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
    """A loader of a format that a library reads in another process, by its names in ``FORMATS`` and for people."""

    format: str
    kind: str

    def __call__(self, path: Path) -> Iterator[Block]:
        """The text of the file in order, as ``Reader`` reads it."""
        with Reader() as reader:
            yield from reader.blocks(self, path)

    def check(self, path: Path) -> str:
        """The encoding of a file that may be read; empty for what is no text.

        Raises:
            DocumentError: It is too large.
        """
        size = _unpacked(path) if self.format == "docx" else path.stat().st_size
        if size > LARGEST_HELD:
            raise DocumentError(f"{size:,} bytes to be read at once, {LARGEST_HELD:,} are allowed: split it")
        return encoding_of(path) if self.format == "html" else ""


LOADERS: Mapping[str, Loader] = {
    **dict.fromkeys((".txt", ".text", ".md", ".markdown", ".rst"), load_text),
    **dict.fromkeys((".csv", ".tsv"), load_csv),
    **dict.fromkeys((".html", ".htm"), FormatLoader("html", "HTML")),
    ".pdf": FormatLoader("pdf", "PDF"),
    ".docx": FormatLoader("docx", "Word"),
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


def _unpacked(path: Path) -> int:
    try:
        with ZipFile(path) as archive:
            return sum(entry.file_size for entry in archive.infolist())
    except BadZipFile as error:
        raise DocumentError(f"not a readable .docx: {error}") from error


_MEMORY, _WAIT = 1_500_000_000, 5
_TEXT, _GROWTH = 4_000_000, 20
_OUT_OF_TIME = getattr(signal, "SIGXCPU", 0)


class Reader:
    """Reads one document at a time; HTML, PDF and Word in a separate process, which starts on first use.

    Args:
        memory: Maximum memory of the process, in bytes.
        seconds: Maximum processor time per file, in seconds; the timeout is five times that.
        rate: Additional seconds per megabyte of the file.
        text: Maximum number of characters of a file's text, plus 20 per byte of the file.
    """

    def __init__(self, *, memory: int = _MEMORY, seconds: float = 60, rate: float = 20, text: int = _TEXT) -> None:
        self._memory, self._seconds, self._rate, self._text = memory, seconds, rate, text
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def blocks(self, loader: Loader, path: Path) -> Iterator[Block]:
        """The text of a file in order.

        Raises:
            DocumentError: The file is broken, or exceeds a limit.
            ImportError: The package for this format is not installed; the message names it.
        """
        size = path.stat().st_size
        most = self._text + _GROWTH * size
        if isinstance(loader, FormatLoader):
            yield from self._apart(loader, path, most, self._seconds + self._rate * size / 1e6)
            return
        try:
            for _, block in bounded(((block.text, block) for block in loader(path)), most):
                yield block
        except FormatError as error:
            raise DocumentError(str(error)) from error

    def _apart(self, loader: FormatLoader, path: Path, most: int, seconds: float) -> Iterator[Block]:
        order = {"format": loader.format, "path": str(path.resolve()), "encoding": loader.check(path)}
        process, ended = self._started(), False
        late = threading.Timer(_WAIT * seconds, process.kill)
        late.start()
        try:
            orders, answers = cast("IO[str]", process.stdin), cast("IO[str]", process.stdout)
            with suppress(BrokenPipeError):  # the process has ended; so has its output
                orders.write(json.dumps({**order, "seconds": seconds, "most": most}) + "\n")
                orders.flush()
            for answer in map(json.loads, answers):
                if "text" not in answer:
                    ended = True
                    if "missing" in answer:
                        cure = f"pip install {answer['missing']}"
                        raise ImportError(
                            f"{loader.kind} files need the extra documents, which is not installed: {cure}"
                        )
                    if "wrong" in answer:
                        raise DocumentError(answer["wrong"])
                    return
                yield Block(answer["text"], answer["page"])
            why = f"cannot be read: the process that read it ended with status {process.wait()}"
            if process.returncode in (-_OUT_OF_TIME, -signal.SIGKILL):
                why = (
                    f"to read it takes more than {seconds:.0f} s of computing, or more than this machine has: split it"
                )
            raise DocumentError(why)
        finally:
            late.cancel()
            if not ended:
                self.close()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(  # noqa: S603 (our own script)
                [sys.executable, "-P", str(Path(document_formats.__file__)), str(self._memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
            )
        return self._process


MOST_TOPICS, MOST_TERMS = 300, 600
_HEAD, _DOCUMENTS = 20_000, 200  # characters to read of a document, and number of documents
_HEADINGS = linear(r"(?m)^#{1,3}\s+(.{2,80}?)\s*#*$")


@dataclass(frozen=True, slots=True)
class Overview:
    """The subject of a folder: headings or names of its documents, and the words in most paragraphs of text files."""

    topics: str
    terms: str = ""


def overview_of(folder: Path) -> Overview:
    """Reads the names of a folder's documents, and the beginnings of those in plain text.

    Raises:
        CatalogError: There is no such folder.
    """
    topics: dict[str, None] = {}
    terms: Counter[str] = Counter()
    for document in documents_in(folder, set(LOADERS)).documents[:_DOCUMENTS]:
        head = ""
        if LOADERS[document.path.suffix.lower()] in (load_text, load_csv):
            with document.path.open(encoding="utf-8", errors="replace") as file:
                head = str(clean(file.read(_HEAD)))
        headings = [heading.rstrip(".").replace(". ", ", ") for heading in _HEADINGS.findall(head)]
        topics |= dict.fromkeys(headings or [re.sub(r"[\W_]+", " ", document.path.stem).strip()])
        terms.update(word for paragraph in head.split("\n\n") for word in content_words(paragraph))
    common = ", ".join(_within((word for word, _ in terms.most_common(MOST_TERMS)), MOST_TERMS))
    return Overview("; ".join(_within(topics, MOST_TOPICS)) or "no documents yet", common)


def _within(items: Iterator[str] | dict[str, None], most: int) -> Iterator[str]:
    """The first items, up to this total length."""
    length = 0
    for item in items:
        length += len(item) + 2
        if length > most:
            return
        yield item
