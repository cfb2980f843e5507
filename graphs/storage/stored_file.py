"""Files of Callsheet's data: in local folders, or in a store that several machines share."""

from __future__ import annotations

import os
import re
from abc import ABC, abstractmethod
from collections.abc import Hashable
from contextlib import AbstractContextManager
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol

from callsheet.graphs.catalog.errors import CallsheetError, SettingsError
from callsheet.graphs.storage.local_files import cache_folder, locked, private_folder, replace_bytes, state_folder

SHARED = "store:"
"""The names of files in the shared store begin with it."""
_NAME = re.compile(r"(?:[\w-][\w.-]{0,99}/)?[\w-][\w.-]{0,199}", re.ASCII)


class StoreError(CallsheetError, OSError):
    """The shared store does not answer, or refuses."""

    def __str__(self) -> str:
        """The message, without a number."""
        return str(self.strerror)


class StoredFile(ABC):
    """A text in UTF-8 that is read whole and replaced whole. Its text form names it (``file_named``)."""

    @abstractmethod
    def read(self) -> bytes:
        """The content.

        Raises:
            FileNotFoundError: There is no such file.
            OSError: It cannot be read.
        """

    @abstractmethod
    def replace(self, content: bytes) -> None:
        """Replaces the content atomically: readers see the old one or the new one. Creates the file and its folder.

        Raises:
            OSError: It cannot be written.
        """

    @abstractmethod
    def remove(self) -> None:
        """Removes the file, if it exists.

        Raises:
            OSError: It cannot be removed.
        """

    @abstractmethod
    def locked(self) -> AbstractContextManager[None]:
        """Lets one process at a time read it and replace it.

        Raises:
            TrustError: It is not writable, or another process has held the lock for 30 seconds.
        """

    @abstractmethod
    def version(self) -> Hashable:
        """A value that changes with each replacement; None if there is no file, or it was never reached."""

    @abstractmethod
    def modified(self) -> float:
        """When it was last replaced, in seconds since 1970.

        Raises:
            FileNotFoundError: There is no such file.
            OSError: It cannot be read.
        """

    @abstractmethod
    def sibling(self, name: str) -> StoredFile:
        """The file of this name beside it."""

    def text(self) -> str:
        """The content as text.

        Raises:
            FileNotFoundError, OSError: As for ``read``.
            UnicodeDecodeError: It is not UTF-8.
        """
        return self.read().decode("utf-8")


class LocalFile(StoredFile):
    """A file on this machine; a new one can be read by its owner only."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        """Its path."""
        return str(self.path)

    def read(self) -> bytes:
        """As in ``StoredFile``."""
        return self.path.read_bytes()

    def replace(self, content: bytes) -> None:
        """As in ``StoredFile``."""
        private_folder(self.path.parent)
        replace_bytes(self.path, content)

    def remove(self) -> None:
        """As in ``StoredFile``."""
        self.path.unlink(missing_ok=True)

    def locked(self) -> AbstractContextManager[None]:
        """As in ``StoredFile``."""
        return locked(self.path)

    def version(self) -> Hashable:
        """Time and size."""
        try:
            state = self.path.stat()
        except OSError:
            return None
        return state.st_mtime_ns, state.st_size

    def modified(self) -> float:
        """As in ``StoredFile``."""
        return self.path.stat().st_mtime

    def sibling(self, name: str) -> StoredFile:
        """As in ``StoredFile``."""
        return LocalFile(self.path.with_name(name))


class SharedStore(Protocol):
    """A store that several machines share."""

    def file(self, name: str) -> StoredFile:
        """The file of this name."""
        ...

    def catalog_version(self) -> Hashable:
        """A value that changes with each change of pins or listings, of which catalogs are made.

        Raises:
            StoreError: The store does not answer, or refuses.
        """
        ...


def shared_store() -> SharedStore | None:
    """The store that ``CALLSHEET_STORE`` names; None if it names none, so that data are local files.

    Raises:
        SettingsError: The address is invalid, or the extra ``postgres`` is not installed.
    """
    address = os.environ.get("CALLSHEET_STORE", "").strip()
    return _store_at(address) if address else None


@cache
def _store_at(address: str) -> SharedStore:
    """The store at an address, found by entry point because this package must not import ``langgraph``."""
    plugins = tuple(entry_points(group="callsheet.stores", name="langgraph"))
    if not plugins:
        raise SettingsError("nothing is installed that opens a shared store: install callsheet itself")
    opened: SharedStore = plugins[0].load()(address)
    return opened


def state_file(name: str) -> StoredFile:
    """A file that must not be lost, such as pins: in the shared store if there is one, else in the user's data folder.

    Raises:
        SettingsError: ``CALLSHEET_STORE`` is invalid.
    """
    return _shared_file(name) or LocalFile(state_folder() / name)


def cache_file(name: str) -> StoredFile:
    """A file that can be rebuilt: in the shared store if there is one, else in the user's cache.

    Raises:
        SettingsError: ``CALLSHEET_STORE`` is invalid.
    """
    return _shared_file(name) or LocalFile(cache_folder() / name)


def file_named(name: str | Path | StoredFile) -> StoredFile:
    """The file with this text form: ``store:`` and its name in the shared store, or a path; a file is itself.

    Raises:
        SettingsError: It is in the shared store, and ``CALLSHEET_STORE`` names none; or the name is invalid.
    """
    if isinstance(name, StoredFile):
        return name
    if not isinstance(name, str) or not name.startswith(SHARED):
        return LocalFile(Path(name).expanduser())
    if (file := _shared_file(name.removeprefix(SHARED))) is None:
        raise SettingsError(f"{name} is in a shared store: set CALLSHEET_STORE to its address")
    return file


def _shared_file(name: str) -> StoredFile | None:
    """The file in the shared store; None if there is none."""
    if (store := shared_store()) is None:
        return None
    if not _NAME.fullmatch(name):
        raise SettingsError(f"{name[:100]!r} cannot be the name of a stored file: name it as in pins/team.json")
    return store.file(name)
