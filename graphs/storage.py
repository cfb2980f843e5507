"""Where Callsheet keeps what a user decided, and how a file is replaced without ever being half written."""

from __future__ import annotations

import os
import tempfile
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


def said_yes() -> bool:
    """Whether ``CALLSHEET_YES`` agrees to start the commands that a catalog names."""
    return os.environ.get("CALLSHEET_YES", "").strip().lower() in {"1", "true", "yes", "on"}


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Lets one process at a time read a file and write it anew.

    Raises:
        TrustError: Its folder cannot be written to, or another process has held it for half a minute.
    """
    from filelock import FileLock, Timeout

    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{file}.lock", timeout=_LOCK_SECONDS):
            yield
    except Timeout as error:
        raise TrustError(f"another process has held {file} for {_LOCK_SECONDS:.0f} s: wait for it") from error
    except OSError as error:
        raise TrustError(
            f"{file} cannot be written: {error.strerror or error}: set CALLSHEET_HOME to a folder that can be"
        ) from error


def replace_text(file: Path, text: str) -> None:
    """Writes a file anew, readable for its owner only; whoever reads it meets the old text or the new, never a part."""
    handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as new:
            new.write(text)
            new.flush()
            os.fsync(new.fileno())
        Path(name).replace(file)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
