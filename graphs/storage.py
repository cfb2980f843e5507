"""Where Callsheet keeps what a user decided, and how a file is replaced without ever being half written."""

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
_FULL = "disk is full"  # in the words of SQLite, and of what is built on it
_FREE = (
    "free some space, or set CALLSHEET_HOME to a folder on another disk, and do it again: what was kept is as it was"
)
_OWNER, _OWNER_FILE = 0o700, 0o600


def state_folder() -> Path:
    """The folder for agreements and pins: ``CALLSHEET_HOME``, else the user's data folder."""
    if home := os.environ.get("CALLSHEET_HOME"):
        return Path(home).expanduser()
    from platformdirs import user_data_path

    return user_data_path("callsheet")


def cache_folder() -> Path:
    """The folder for what can be had again, such as indexes: ``CALLSHEET_HOME``, else the user's cache."""
    if home := os.environ.get("CALLSHEET_HOME"):
        return Path(home).expanduser()
    from platformdirs import user_cache_path

    return user_cache_path("callsheet")


def said_yes() -> bool:
    """Whether ``CALLSHEET_YES`` agrees to start the commands that a catalog names."""
    return os.environ.get("CALLSHEET_YES", "").strip().lower() in {"1", "true", "yes", "on"}


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Lets one process of a user at a time read a file and write it anew; its folder is made.

    Raises:
        TrustError: Its folder cannot be written to, or another process has held it for half a minute.
    """
    from filelock import FileLock, Timeout

    try:
        private_folder(file.parent)
        with FileLock(_lock_of(file), timeout=_LOCK_SECONDS, mode=_OWNER_FILE):
            yield
    except Timeout as error:
        raise TrustError(f"another process has held {file} for {_LOCK_SECONDS:.0f} s: wait for it") from error
    except OSError as error:
        raise TrustError(f"{file} cannot be written: {error.strerror or error}: {cure_of(error)}") from error


def is_full(error: BaseException) -> bool:
    """Whether an error, or one that led to it, says that the disk is full, or the user's share of it."""
    todo, seen = [error], set[int]()
    while todo:
        one = todo.pop()
        if getattr(one, "errno", None) in (errno.ENOSPC, errno.EDQUOT) or _FULL in str(one):
            return True
        seen.add(id(one))
        found = [one.__cause__, one.__context__, *(one.exceptions if isinstance(one, BaseExceptionGroup) else ())]
        todo += [cause for cause in found if cause is not None and id(cause) not in seen]
    return False


def cure_of(error: BaseException) -> str:
    """What to do about a file of ours that cannot be written."""
    return _FREE if is_full(error) else "set CALLSHEET_HOME to a folder that can be"


def _lock_of(file: Path) -> Path:
    """Not beside the file, which may be in somebody's repository."""
    folder = private_folder(state_folder() / "locks")
    return folder / f"{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:16]}.lock"


def private_folder(folder: Path) -> Path:
    """The folder, made where it is missing, so that only its owner can enter it; one that is there stays as it is.

    Raises:
        OSError: It cannot be made.
    """
    if not folder.is_dir():
        if not folder.parent.is_dir():
            private_folder(folder.parent)
        folder.mkdir(mode=_OWNER, exist_ok=True)
    return folder


def private_file(file: Path) -> Path:
    """The file, made empty where it is missing, so that only its owner can read it; one that is there stays as it is.

    For what a library writes: SQLite gives the files beside its own the same mode.

    Raises:
        OSError: It cannot be made.
    """
    private_folder(file.parent)
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_FILE))
    return file


def replace_text(file: Path, text: str, *, mode: int = _OWNER_FILE) -> None:
    """``replace_bytes`` of a text, in UTF-8."""
    replace_bytes(file, text.encode(), mode=mode)


def replace_bytes(file: Path, content: bytes, *, mode: int = _OWNER_FILE) -> None:
    """Writes a file anew; whoever reads it meets the old content or the new, never a part.

    Args:
        file: In a folder that is there.
        content: What it shall hold.
        mode: Who may read it, less what the umask takes away; its owner alone by default.

    Raises:
        OSError: It cannot be written.
    """
    new = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())
        new.replace(file)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise
