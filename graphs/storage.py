"""Stores Callsheet's data in local folders or in a store that several machines share, with locks and atomic writes."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from callsheet.graphs.errors import CallsheetError, SettingsError, TrustError

SHARED = "store:"  # begins the names of files in the shared store
_NAME = re.compile(r"(?:[\w-][\w.-]{0,99}/)?[\w-][\w.-]{0,199}", re.ASCII)
_LOCK_SECONDS = 30.0
_FULL = "disk is full"  # SQLite's message, which Chroma repeats
_FREE = "free some space, or set CALLSHEET_HOME to a folder on another disk, and try again; stored data is unchanged"
_FOLDER_MODE = 0o700
_FILE_MODE = 0o600


def state_folder() -> Path:
    """Returns the folder for consent and pins: ``CALLSHEET_HOME``, otherwise the user's data folder."""
    from platformdirs import user_data_path

    return _home() or user_data_path("callsheet")


def cache_folder() -> Path:
    """Returns the folder for data that can be rebuilt, such as indexes: ``CALLSHEET_HOME``, or the user's cache."""
    from platformdirs import user_cache_path

    return _home() or user_cache_path("callsheet")


def _home() -> Path | None:
    home = os.environ.get("CALLSHEET_HOME")
    return Path(home).expanduser() if home else None


def yes_from_environment() -> bool:
    """Returns whether ``CALLSHEET_YES`` gives consent to start the commands of a catalog."""
    return os.environ.get("CALLSHEET_YES", "").strip().lower() in {"1", "true", "yes", "on"}


@contextmanager
def file_lock(file: Path) -> Iterator[None]:
    """Locks a file, so that only one process at a time reads it and writes it again; creates its folder.

    Raises a ``TrustError`` if the folder is not writable, or if another process has held the lock for 30 seconds.
    """
    from filelock import FileLock, Timeout

    try:
        private_folder(file.parent)
        # Not in the folder of the file, which may be a repository.
        name = f"{hashlib.sha256(str(file.resolve()).encode()).hexdigest()[:16]}.lock"
        with FileLock(private_folder(state_folder() / "locks") / name, timeout=_LOCK_SECONDS, mode=_FILE_MODE):
            yield
    except Timeout as error:
        raise TrustError(f"another process has held {file} for {_LOCK_SECONDS:.0f} s: wait for it") from error
    except OSError as error:
        raise TrustError(f"{file} cannot be written: {error.strerror or error}: {cure_of(error)}") from error


def is_full(error: BaseException) -> bool:
    """Returns whether an error, or one of its causes, is a full disk or an exhausted quota."""
    errors = [error]
    for one in errors:  # which grows meanwhile
        causes = (one.__cause__, one.__context__, *(one.exceptions if isinstance(one, BaseExceptionGroup) else ()))
        errors += [cause for cause in causes if cause is not None and cause not in errors]
    return any(getattr(one, "errno", 0) in (errno.ENOSPC, errno.EDQUOT) or _FULL in str(one) for one in errors)


def cure_of(error: BaseException) -> str:
    """Returns advice on how to correct an error that occurred when a file of Callsheet was written."""
    return _FREE if is_full(error) else "set CALLSHEET_HOME to a writable folder"


def private_folder(folder: Path) -> Path:
    """Creates a folder that only its owner can access; an existing folder is not changed."""
    if not folder.is_dir():
        if not folder.parent.is_dir():
            private_folder(folder.parent)
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    return folder


def private_file(file: Path) -> Path:
    """Creates an empty file that only its owner can read, so that a library writes to it; an existing one stays."""
    private_folder(file.parent)
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE))
    return file


def replace_bytes(file: Path, content: bytes, *, mode: int = _FILE_MODE) -> None:
    """Replaces a file atomically: readers see the old content or the new content, never a mixture.

    A symbolic link is kept, and its target is replaced. A pipe or a device is written to directly. A new file has the
    permissions ``mode`` less the umask; an existing file keeps its own.
    """
    file = file.resolve()
    existed = file.exists()
    if existed and not file.is_file():
        file.write_bytes(content)
        return
    new = file.with_name(f".{file.name}.{uuid.uuid4().hex}")
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(handle, "wb") as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())
        if existed:
            new.chmod(file.stat().st_mode & 0o777)
        new.replace(file)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise


class StoreError(CallsheetError, OSError):
    """Raised if the shared store does not answer or refuses a request."""

    def __str__(self) -> str:
        """The message, without a number."""
        return str(self.strerror)


class SharedStore(Protocol):
    """The protocol of a store that several machines share: UTF-8 texts by name, read and replaced as a whole."""

    def read(self, name: str) -> bytes:
        """Returns the content of an entry; raises a ``FileNotFoundError`` or another ``OSError`` if there is none."""
        ...

    def write(self, name: str, content: bytes | None) -> None:
        """Replaces an entry atomically, or removes it if ``content`` is None; raises an ``OSError`` if that fails."""
        ...

    def locked(self, name: str) -> AbstractContextManager[None]:
        """Runs the block in one thread of one process at a time; raises a ``TrustError`` after 30 seconds."""
        ...

    def version(self, name: str) -> tuple[float, ...] | None:
        """Returns values that change with each replacement; the first is its time, in seconds since 1970.

        None if there is no such entry.
        """
        ...

    def catalog_version(self) -> str | None:
        """Returns a text that changes with each change of pins or listings.

        Raises a ``StoreError`` if the store does not answer.
        """
        ...


class StoredFile:
    """A file on this machine, by its path, or in a shared store, by its name.

    ``str`` returns a text from which ``file_named`` finds the file again. A new file on this machine can be read by its
    owner only. Errors are those of ``SharedStore``.
    """

    def __init__(self, name: str, store: SharedStore | None = None) -> None:
        self.name = name
        self._store = store
        self._path = Path(name)

    def __str__(self) -> str:
        """Its path, or its name in the shared store."""
        return f"{SHARED}{self.name}" if self._store else self.name

    def read(self) -> bytes:
        """Returns the content."""
        return self._store.read(self.name) if self._store else self._path.read_bytes()

    def text(self) -> str:
        """Returns the content as text; raises a ``UnicodeDecodeError`` if it is not UTF-8."""
        return self.read().decode("utf-8")

    def replace(self, content: bytes) -> None:
        """Replaces the content atomically; creates the file and its folder if they do not exist."""
        if self._store:
            self._store.write(self.name, content)
        else:
            private_folder(self._path.parent)
            replace_bytes(self._path, content)

    def remove(self) -> None:
        """Removes the file, if it exists."""
        if self._store:
            self._store.write(self.name, None)
        else:
            self._path.unlink(missing_ok=True)

    def locked(self) -> AbstractContextManager[None]:
        """Runs the block while no other process reads or replaces the file under this lock."""
        return self._store.locked(self.name) if self._store else file_lock(self._path)

    def version(self) -> tuple[float, ...] | None:
        """Returns a value that changes with each replacement; None if there is no file."""
        if self._store:
            return self._store.version(self.name)
        with suppress(OSError):
            state = self._path.stat()
            return state.st_mtime, state.st_mtime_ns, state.st_size
        return None

    def modified(self) -> float:
        """Returns the time of the last replacement, in seconds since 1970; a ``FileNotFoundError`` if unknown."""
        version = self.version()
        if version is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(self))
        return version[0]

    def sibling(self, name: str) -> StoredFile:
        """Returns the file with this name in the same folder."""
        return StoredFile("/".join([*self.name.split("/")[:-1], name]), self._store)


def shared_store() -> SharedStore | None:
    """Returns the store that ``CALLSHEET_STORE`` names; None if it is not set, so that data are local files.

    Raises a ``SettingsError`` if the address is invalid, or if the extra ``postgres`` is not installed.
    """
    address = os.environ.get("CALLSHEET_STORE", "").strip()
    return _store_at(address) if address else None


@cache
def _store_at(address: str) -> SharedStore:
    """Returns the store at an address, found by entry point because this package must not import ``langgraph``."""
    plugins = tuple(entry_points(group="callsheet.stores", name="langgraph"))
    if not plugins:
        raise SettingsError("nothing is installed that opens a shared store: install callsheet itself")
    opened: SharedStore = plugins[0].load()(address)
    return opened


def state_file(name: str) -> StoredFile:
    """Returns a file for data that must not be lost, in the shared store or else in the user's data folder."""
    return _shared_file(name) or StoredFile(str(state_folder() / name))


def cache_file(name: str) -> StoredFile:
    """Returns a file for data that can be rebuilt, in the shared store or else in the user's cache."""
    return _shared_file(name) or StoredFile(str(cache_folder() / name))


def file_named(name: str | Path | StoredFile) -> StoredFile:
    """Returns the file for a text: ``store:`` followed by a name in the shared store, or else a path.

    A ``StoredFile`` is returned unchanged.
    """
    if isinstance(name, StoredFile):
        return name
    if not isinstance(name, str) or not name.startswith(SHARED):
        return StoredFile(str(Path(name).expanduser()))
    file = _shared_file(name.removeprefix(SHARED))
    if file is None:
        raise SettingsError(f"{name} is in a shared store: set CALLSHEET_STORE to its address")
    return file


def _shared_file(name: str) -> StoredFile | None:
    """The file in the shared store; None if there is no store; ``SettingsError``: the store or the name is invalid."""
    store = shared_store()
    if store is None:
        return None
    if not _NAME.fullmatch(name):
        raise SettingsError(f"{name[:100]!r} cannot be the name of a stored file: name it as in pins/team.json")
    return StoredFile(name, store)
