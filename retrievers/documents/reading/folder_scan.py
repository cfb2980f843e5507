"""Lists the documents of a folder."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from callsheet.graphs import CatalogError, Problem
from callsheet.graphs.text.sanitizing import clean, hidden_in, one_line

_READ = 1 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """A file that is a document by its name.

    Attributes:
        name: Its path relative to the folder, with ``/``.
        path: Where it is.
        digest: SHA-256 of its content.
    """

    name: str
    path: Path
    digest: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The documents of a folder.

    Attributes:
        documents: The documents by name, without duplicates of content.
        problems: Files that were left out, with reasons.
    """

    documents: tuple[Found, ...]
    problems: tuple[Problem, ...] = ()


def documents_in(folder: Path, kinds: Collection[str]) -> Listing:
    """The documents of a folder and its subfolders.

    Hidden files and folders are skipped; files of other kinds are counted in one problem. Files that are empty,
    unreadable, duplicates, or links out of the folder are reported one by one.

    Args:
        folder: The folder.
        kinds: Suffixes, such as ``.md``.

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
    return Listing(tuple(documents), (*problems, *_of_other_kinds(others, kinds)))


def existing_folder(folder: Path) -> Path:
    """The absolute path of a folder.

    Raises:
        CatalogError: There is no such folder.
    """
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
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(_READ):
            digest.update(part)
    return digest.hexdigest()


def _files(root: Path) -> Iterator[Path]:
    for where, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(where, name)


def _unfit(path: Path, root: Path) -> tuple[str, str] | None:
    """Kind and reason of a problem that excludes a file; None if there is none."""
    if not _is_text(path.name):
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


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _of_other_kinds(others: Counter[str], kinds: Collection[str]) -> Sequence[Problem]:
    if not others:
        return ()
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
    return (Problem("(other files)", "kind", f"not read: {counts}; kinds that are: {' '.join(sorted(kinds))}"),)
