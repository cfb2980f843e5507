"""Folders and files for the data of Callsheet: locks, private permissions, atomic writes."""

from __future__ import annotations

import errno
import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from callsheet.graphs.catalog.errors import TrustError

_LOCK_SECONDS = 30.0
_FULL = "disk is full"  # SQLite's message, which Chroma repeats
_FREE = "free some space, or set CALLSHEET_HOME to a folder on another disk, and try again; stored data is unchanged"
_FOLDER_MODE, _FILE_MODE = 0o700, 0o600


def state_folder() -> Path:
    """The folder for consent and pins: ``CALLSHEET_HOME``, otherwise the user's data folder."""
    if home := os.environ.get("CALLSHEET_HOME"):
        return Path(home).expanduser()
    from platformdirs import user_data_path

    return user_data_path("callsheet")


def cache_folder() -> Path:
    """The folder for data that can be rebuilt, such as indexes: ``CALLSHEET_HOME``, otherwise the user's cache."""
    if home := os.environ.get("CALLSHEET_HOME"):
        return Path(home).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("callsheet")


def yes_from_environment() -> bool:
    """Whether ``CALLSHEET_YES`` agrees to start the commands that a catalog names."""
    return os.environ.get("CALLSHEET_YES", "").strip().lower() in {"1", "true", "yes", "on"}


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Locks a file for one process at a time, to read it and write it again; creates its folder.

    Raises:
        TrustError: The folder is not writable, or another process has held the lock for 30 seconds.
    """
    from filelock import FileLock, Timeout

    try:
        private_folder(file.parent)
        with FileLock(_lock_file(file), timeout=_LOCK_SECONDS, mode=_FILE_MODE):
            yield
    except Timeout as error:
        raise TrustError(f"another process has held {file} for {_LOCK_SECONDS:.0f} s: wait for it") from error
    except OSError as error:
        raise TrustError(f"{file} cannot be written: {error.strerror or error}: {cure_of(error)}") from error


def is_full(error: BaseException) -> bool:
    """Whether an error, or one of its causes, says that the disk or the user's quota is full."""
    stack, seen = [error], set[int]()
    while stack:
        item = stack.pop()
        if getattr(item, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or _FULL in str(item):
            return True
        seen.add(id(item))
        causes = [item.__cause__, item.__context__, *(item.exceptions if isinstance(item, BaseExceptionGroup) else ())]
        stack += [cause for cause in causes if cause is not None and id(cause) not in seen]
    return False


def cure_of(error: BaseException) -> str:
    """How to correct an error on writing one of our files."""
    return _FREE if is_full(error) else "set CALLSHEET_HOME to a writable folder"


def _lock_file(file: Path) -> Path:
    """Not in the folder of the file, which may be a repository."""
    folder = private_folder(state_folder() / "locks")
    return folder / f"{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:16]}.lock"


def private_folder(folder: Path) -> Path:
    """Creates a folder with access for its owner only; an existing one is not changed.

    Raises:
        OSError: The folder cannot be created.
    """
    if not folder.is_dir():
        if not folder.parent.is_dir():
            private_folder(folder.parent)
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    return folder


def private_file(file: Path) -> Path:
    """Creates an empty file that only its owner can read, for a library to write; an existing one is not changed.

    SQLite gives its additional files the same mode.

    Raises:
        OSError: The file cannot be created.
    """
    private_folder(file.parent)
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE))
    return file


def replace_text(file: Path, text: str, *, mode: int = _FILE_MODE) -> None:
    """``replace_bytes`` for text in UTF-8."""
    replace_bytes(file, text.encode(), mode=mode)


def replace_bytes(file: Path, content: bytes, *, mode: int = _FILE_MODE, exact: bool = False) -> None:
    """Replaces a file atomically: readers see the old content or the new, never a part.

    A symbolic link stays one, and its target is replaced. A pipe or a device is written to.

    Args:
        file: A file in an existing folder.
        content: The new content.
        mode: Permissions, before the umask; for the owner only by default.
        exact: The permissions without the umask, as those of the file that is replaced.

    Raises:
        OSError: The file cannot be written.
    """
    file = file.resolve()
    if file.exists() and not file.is_file():
        file.write_bytes(content)
        return
    new = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())
        if exact:
            new.chmod(mode)
        new.replace(file)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise
