"""Callsheet's data: files in local folders, or in a store that several machines share; locks and atomic writes."""

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
    """The folder for data that can be rebuilt, such as indexes: ``CALLSHEET_HOME``, otherwise the user's cache."""
    from platformdirs import user_cache_path

    return _home() or user_cache_path("callsheet")


def _home() -> Path | None:
    home = os.environ.get("CALLSHEET_HOME")
    return Path(home).expanduser() if home else None


def yes_from_environment() -> bool:
    """Returns whether ``CALLSHEET_YES`` agrees to start the commands that a catalog names."""
    return os.environ.get("CALLSHEET_YES", "").strip().lower() in {"1", "true", "yes", "on"}


@contextmanager
def file_lock(file: Path) -> Iterator[None]:
    """Lets one process at a time read a file and write it again, and creates its folder.

    ``TrustError``: The folder is not writable, or another process has held the lock for 30 seconds.
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
    """Returns whether an error, or one of its causes, says that the disk or the user's quota is full."""
    errors = [error]
    for one in errors:  # which grows meanwhile
        causes = (one.__cause__, one.__context__, *(one.exceptions if isinstance(one, BaseExceptionGroup) else ()))
        errors += [cause for cause in causes if cause is not None and cause not in errors]
    return any(getattr(one, "errno", 0) in (errno.ENOSPC, errno.EDQUOT) or _FULL in str(one) for one in errors)


def cure_of(error: BaseException) -> str:
    """Returns how to correct an error on writing one of our files."""
    return _FREE if is_full(error) else "set CALLSHEET_HOME to a writable folder"


def private_folder(folder: Path) -> Path:
    """Creates a folder with access for its owner only; an existing one is not changed."""
    if not folder.is_dir():
        if not folder.parent.is_dir():
            private_folder(folder.parent)
        folder.mkdir(mode=_FOLDER_MODE, exist_ok=True)
    return folder


def private_file(file: Path) -> Path:
    """Creates an empty file that only its owner can read, for a library to write; an existing one is not changed."""
    private_folder(file.parent)
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _FILE_MODE))
    return file


def replace_bytes(file: Path, content: bytes, *, mode: int = _FILE_MODE) -> None:
    """Replaces a file atomically: readers see the old content or the new, never a part.

    A symbolic link stays one, and its target is replaced. A pipe or a device is written to. A new file has the
    permissions ``mode`` less the umask, an existing one keeps its own.
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
    """The shared store does not answer, or refuses."""

    def __str__(self) -> str:
        """The message, without a number."""
        return str(self.strerror)


class SharedStore(Protocol):
    """A store that several machines share: texts in UTF-8 by name, read whole and replaced whole."""

    def read(self, name: str) -> bytes:
        """Returns the content; a ``FileNotFoundError`` or another ``OSError`` where there is none."""
        ...

    def write(self, name: str, content: bytes | None) -> None:
        """Replaces the content atomically, or removes it (None); an ``OSError`` if that cannot be done."""
        ...

    def locked(self, name: str) -> AbstractContextManager[None]:
        """Lets one thread of one process at a time in; a ``TrustError`` after 30 seconds, or if it is not writable."""
        ...

    def version(self, name: str) -> tuple[float, ...] | None:
        """Returns when it was last replaced, in seconds since 1970, and what else changes then.

        None if it is not there.
        """
        ...

    def catalog_version(self) -> str | None:
        """Returns a text that changes with each change of pins or listings.

        A ``StoreError`` if the store does not answer.
        """
        ...


class StoredFile:
    """A file by its path on this machine, or by its name in a shared store; its text form names it (``file_named``).

    A new one on this machine can be read by its owner only. Errors are those of ``SharedStore``.
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
        """Returns the content as text; a ``UnicodeDecodeError`` if it is not UTF-8."""
        return self.read().decode("utf-8")

    def replace(self, content: bytes) -> None:
        """Replaces the content: readers see the old one or the new one. Creates the file and its folder."""
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
        """Lets one process at a time read it and replace it."""
        return self._store.locked(self.name) if self._store else file_lock(self._path)

    def version(self) -> tuple[float, ...] | None:
        """Returns a value that changes with each replacement; None if there is no file, or it was never reached."""
        if self._store:
            return self._store.version(self.name)
        with suppress(OSError):
            state = self._path.stat()
            return state.st_mtime, state.st_mtime_ns, state.st_size
        return None

    def modified(self) -> float:
        """Returns when it was last replaced, in seconds since 1970; a ``FileNotFoundError`` if that is not known."""
        version = self.version()
        if version is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(self))
        return version[0]

    def sibling(self, name: str) -> StoredFile:
        """Returns the file of this name beside it."""
        return StoredFile("/".join([*self.name.split("/")[:-1], name]), self._store)


def shared_store() -> SharedStore | None:
    """Returns the store that ``CALLSHEET_STORE`` names; None if it names none, so that data are local files.

    ``SettingsError``: The address is invalid, or the extra ``postgres`` is not installed.
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
    """Returns a file that must not be lost, such as pins: in the shared store, else in the user's data folder."""
    return _shared_file(name) or StoredFile(str(state_folder() / name))


def cache_file(name: str) -> StoredFile:
    """Returns a file that can be rebuilt: in the shared store, else in the user's cache."""
    return _shared_file(name) or StoredFile(str(cache_folder() / name))


def file_named(name: str | Path | StoredFile) -> StoredFile:
    """Returns the file with this text form: ``store:`` and its name in the shared store, or a path.

    A file is itself.
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
