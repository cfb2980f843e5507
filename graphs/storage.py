"""Where Callsheet keeps what a user decided, and how a file is replaced without ever being half written."""

from __future__ import annotations

import hashlib
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from callsheet.graphs.errors import TrustError

_LOCK_SECONDS = 30.0


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
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(_lock_of(file), timeout=_LOCK_SECONDS):
            yield
    except Timeout as error:
        raise TrustError(f"another process has held {file} for {_LOCK_SECONDS:.0f} s: wait for it") from error
    except OSError as error:
        raise TrustError(
            f"{file} cannot be written: {error.strerror or error}: set CALLSHEET_HOME to a folder that can be"
        ) from error


def _lock_of(file: Path) -> Path:
    """Not beside the file, which may be in somebody's repository."""
    folder = state_folder() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:16]}.lock"


def replace_text(file: Path, text: str, *, private: bool = False) -> None:
    """Writes a file anew; whoever reads it meets the old text or the new, never a part.

    Args:
        file: In a folder that is there.
        text: What it shall hold.
        private: Whether only its owner may read it.

    Raises:
        OSError: It cannot be written.
    """
    new = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o666)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as sink:
            sink.write(text)
            sink.flush()
            os.fsync(sink.fileno())
        new.replace(file)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise
