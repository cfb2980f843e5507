"""Lists the documents of a folder, reads their texts, and summarises what they are about."""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple, cast

from callsheet.graphs import CallsheetError, CatalogError, Problem
from callsheet.graphs.errors import needs_extra
from callsheet.graphs.text.credentials import is_secret_name, secrets_in
from callsheet.graphs.text.hidden import escaped_line, hidden_in
from callsheet.graphs.text.regex import linear
from callsheet.graphs.text.unicode import clean
from callsheet.retrievers.documents import document_formats
from callsheet.retrievers.documents.document_formats import LOADERS
from callsheet.retrievers.documents.document_text import Block, content_words


class Found(NamedTuple):
    """A document in a folder: its path relative to the folder (with ``/``), its full path, and its hash."""

    name: str
    path: Path
    digest: str


class FolderListing(NamedTuple):
    """The documents of a folder, without duplicates, and the files that were left out, with reasons."""

    documents: tuple[Found, ...]
    problems: tuple[Problem, ...] = ()


def documents_in(folder: Path) -> FolderListing:
    """Lists the documents of a folder and its subfolders.

    Hidden files and folders are skipped; files of other kinds are counted in one problem. Files that are empty,
    unreadable, duplicates, or links out of the folder are reported one by one.

    Raises:
        CatalogError: There is no such folder.
    """
    root = existing_folder(folder)
    documents: dict[str, Found] = {}
    problems: list[Problem] = []
    others: Counter[str] = Counter()
    for path in _files(root):
        name = clean(path.relative_to(root).as_posix())
        if path.suffix.lower() not in LOADERS:
            others[escaped_line(path.suffix.lower()) or "no ending"] += 1
            continue
        try:
            kind_and_reason = _unfit(path, root)
            if kind_and_reason:
                problems.append(Problem(escaped_line(name), *kind_and_reason))
                continue
            digest = digest_of(path)
            if digest in documents:
                same = f"has the content of {documents[digest].name}, which is indexed"
                problems.append(Problem(escaped_line(name), "duplicate", same))
            else:
                documents[digest] = Found(name, path, digest)
        except OSError as error:
            problems.append(Problem(escaped_line(name), "unreadable", f"cannot be read: {error.strerror}"))
        except RuntimeError:  # Python 3.11 and 3.12
            problems.append(Problem(escaped_line(name), "link", "is a link that leads to itself"))
    if others:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
        message = f"not read: {counts}; these kinds are read: {' '.join(sorted(LOADERS))}"
        problems.append(Problem("(other files)", "kind", message))
    return FolderListing(tuple(documents.values()), tuple(problems))


def existing_folder(folder: Path) -> Path:
    """Returns the absolute path of a folder.

    Raises:
        CatalogError: There is no such folder.
    """
    try:
        root = folder.expanduser().resolve()
        is_folder = root.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        raise CatalogError(f"no documents at {str(folder)[:80]!r}: it cannot be a path: {error.args[-1]}") from error
    if not is_folder:
        raise CatalogError(f"no documents at {folder}: there is no such folder")
    return root


def digest_of(path: Path) -> str:
    """Returns the SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _files(root: Path) -> Iterator[Path]:
    for where, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(where, name)


def _unfit(path: Path, root: Path) -> tuple[str, str] | None:
    """Returns kind and reason of a problem that excludes a file; None if there is none."""
    name = path.relative_to(root).as_posix()
    if "\n" in name or hidden_in(name) or any("\ud800" <= letter <= "\udfff" for letter in name):
        return "unreadable", "its name is not UTF-8, or holds characters that are not seen: rename it"
    if path.is_symlink() and not path.resolve().is_relative_to(root):
        return "link", "is a link that leads out of the folder: copy the file"
    if not path.is_file():
        return "unreadable", "is not a regular file"
    if path.stat().st_size == 0:
        return "empty", "is empty"
    return None


class DocumentError(CallsheetError, ValueError):
    """Raised if a file is not a valid document of its kind."""


_WAIT = 5
"""The timeout of a file, by its maximum processor time."""
_IDLE = 30.0
"""Seconds after which the process ends if it reads nothing."""
_GROWTH = 20
"""Characters of text per byte of a file, beyond the fixed maximum."""
_OUT_OF_TIME = getattr(signal, "SIGXCPU", 0)


@dataclass
class Reader:
    """Reads one document at a time in a separate process, which starts on first use and ends when it is idle.

    Attributes:
        memory: Maximum memory of the process, in bytes.
        seconds, rate: Maximum processor time per file, and more per megabyte of it; the timeout is five times that.
        most: Maximum number of characters of a file's text, plus 20 per byte of the file.
        largest: Maximum size of an unpacked file, in bytes.
    """

    memory: int = 1_500_000_000
    seconds: float = 60
    rate: float = 20
    most: int = 4_000_000
    largest: int = 64_000_000
    _process: subprocess.Popen[str] | None = None
    _idle: threading.Timer | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def close(self) -> None:
        """Ends the process."""
        with self._lock:
            process = self._process
            self._process = None
        if process is not None:
            process.kill()
            process.communicate()

    def blocks(self, path: Path) -> Iterator[Block]:
        """Iterates over the text of a file in order; the suffix of the file selects the reader.

        Raises:
            DocumentError: The file is broken, or exceeds a limit.
            ImportError: The package for this format is not installed; the message names the extra.
        """
        with self._lock:
            if self._idle is not None:
                self._idle.cancel()
            try:
                yield from self._read(LOADERS[path.suffix.lower()].name, path)
            finally:
                self._idle = threading.Timer(_IDLE, self.close)
                self._idle.daemon = True
                self._idle.start()

    def _read(self, loader: str, path: Path) -> Iterator[Block]:
        size = path.stat().st_size
        seconds = self.seconds + self.rate * size / 1e6
        order = {
            "loader": loader,
            "path": str(path.resolve()),
            "seconds": seconds,
            "most": self.most + _GROWTH * size,
            "largest": self.largest,
        }
        process = self._started()
        ended = False
        late = threading.Timer(_WAIT * seconds, process.kill)
        late.start()
        try:
            orders = cast("IO[str]", process.stdin)
            answers = cast("IO[str]", process.stdout)
            with suppress(BrokenPipeError):  # the process has ended; so has its output
                orders.write(json.dumps(order) + "\n")
                orders.flush()
            for line in answers:
                if not line.endswith("\n"):  # it ended in the middle of an answer
                    break
                answer = json.loads(line)
                if "text" in answer:
                    yield Block(answer["text"], answer["page"])
                    continue
                ended = True
                if "missing" in answer:
                    raise ImportError(f"to read this {loader} file {needs_extra('documents')}")
                if "wrong" in answer:
                    raise DocumentError(answer["wrong"])
                return
            why = f"cannot be read: the process that read it ended with status {process.wait()}"
            if process.returncode in (-_OUT_OF_TIME, -signal.SIGKILL):
                too_long = f"to read it takes more than {seconds:.0f} s of computing"
                why = f"{too_long}, or more than this machine has: split it"
            raise DocumentError(why)
        finally:
            late.cancel()
            if not ended:
                self.close()

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(  # noqa: S603 (our own script)
                [sys.executable, "-P", str(Path(document_formats.__file__)), str(self.memory)],
                env=_without_secrets(os.environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
            )
        return self._process


def _without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables for a program that reads files of others, and needs no keys for that."""
    secret = {name for name, value in environment.items() if is_secret_name(name) or secrets_in((value,))}
    return {name: value for name, value in environment.items() if name not in secret}


READER = Reader()
"""The reader that all indexes share."""
atexit.register(READER.close)

MOST_TOPICS = 300
"""Maximum number of characters of the topics of an overview."""
MOST_TERMS = 600
"""Maximum number of characters of the terms of an overview."""
_HEAD = 20_000
"""Number of characters of a document that an overview reads."""
_DOCUMENTS = 200
"""Number of documents that it reads."""
_NOT_UTF_8 = re.compile(r"(?<!\S)[^\s\ufffd]*\ufffd\S*")
_HEADINGS = linear(r"(?m)^#{1,3}\s+(.{2,80}?)\s*#*$")


class Overview(NamedTuple):
    """The subject of a folder: headings or names of its documents, and the most common words of its text files."""

    topics: str
    terms: str = ""


def overview_of(folder: Path) -> Overview:
    """Summarises a folder by the names and beginnings of its documents; raises as ``documents_in`` does."""
    topics: dict[str, None] = {}
    terms: Counter[str] = Counter()
    for document in documents_in(folder).documents[:_DOCUMENTS]:
        head = ""
        if LOADERS[document.path.suffix.lower()].is_text:
            with document.path.open(encoding="utf-8-sig", errors="replace") as file:
                # Words that are not in UTF-8 are left out: they are not worth a guess.
                head = _NOT_UTF_8.sub(" ", str(clean(file.read(_HEAD))))
        headings = [heading.rstrip(".").replace(". ", ", ") for heading in _HEADINGS.findall(head)]
        topics |= dict.fromkeys(headings or [re.sub(r"[\W_]+", " ", document.path.stem).strip()])
        terms.update(word for paragraph in head.split("\n\n") for word in content_words(paragraph))
    common = _within((word for word, _ in terms.most_common(MOST_TERMS)), ", ", MOST_TERMS)
    return Overview(_within(topics, "; ", MOST_TOPICS) or "no documents yet", common)


def _within(items: Iterable[str], separator: str, most: int) -> str:
    """Joins the first items, up to this total length."""
    text = separator.join(items)
    if len(text) <= most:
        return text
    return text[:most].rpartition(separator)[0]
