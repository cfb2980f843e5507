"""One file of Callsheet's data: in a local folder, or a row of the shared database."""

from __future__ import annotations

import os
import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, LiteralString

from callsheet.graphs.catalog.errors import SettingsError, TrustError
from callsheet.graphs.storage.change_listener import CHANNEL
from callsheet.graphs.storage.database import Database, DatabaseError, shared_database
from callsheet.graphs.storage.local_files import (
    cache_folder,
    locked,
    private_folder,
    replace_bytes,
    state_folder,
)

_SCHEME = "store:"
_RECENT = 1.0
_NAME = re.compile(r"(?:[\w-][\w.-]{0,99}/)?[\w-][\w.-]{0,199}", re.ASCII)
_WRITE = """
INSERT INTO files VALUES (%s, %s, nextval('versions'), coalesce(to_timestamp(%s), clock_timestamp()))
ON CONFLICT (name) DO UPDATE
SET content = EXCLUDED.content, version = EXCLUDED.version, modified = EXCLUDED.modified
"""
_CONTENT = "SELECT content FROM files WHERE name = %s"
_VERSION = "SELECT version FROM files WHERE name = %s"
_MODIFIED = "SELECT modified FROM files WHERE name = %s"


class StoredFile(ABC):
    """A file that is read whole and replaced whole. Its text form names it (``file_named``)."""

    @abstractmethod
    def read(self) -> bytes:
        """The content.

        Raises:
            FileNotFoundError: There is no such file.
            OSError: It cannot be read.
        """

    @abstractmethod
    def replace(self, content: bytes, *, modified: float | None = None) -> None:
        """Replaces the content at once: readers see the old one or the new one. Creates the file and its folder.

        Args:
            content: The new content.
            modified: The time that ``modified`` tells from then on; None: now.

        Raises:
            OSError: It cannot be written.
        """

    @abstractmethod
    def locked(self) -> AbstractContextManager[None]:
        """Lets one process at a time read it and replace it.

        Raises:
            TrustError: It is not writable, or another process has held the lock for 30 seconds.
        """

    @abstractmethod
    def remove(self) -> None:
        """Removes it, if it exists.

        Raises:
            OSError: It cannot be removed.
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
        """The content as UTF-8.

        Raises:
            FileNotFoundError, OSError: As for ``read``.
            UnicodeDecodeError: It is not UTF-8.
        """
        return self.read().decode("utf-8")


class LocalFile(StoredFile):
    """A file on this machine."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        """Its path."""
        return str(self.path)

    def read(self) -> bytes:
        """As in ``StoredFile``."""
        return self.path.read_bytes()

    def replace(self, content: bytes, *, modified: float | None = None) -> None:
        """As in ``StoredFile``; a new file can be read by its owner only."""
        private_folder(self.path.parent)
        replace_bytes(self.path, content)
        if modified is not None:
            os.utime(self.path, (modified, modified))

    def locked(self) -> AbstractContextManager[None]:
        """As in ``StoredFile``."""
        return locked(self.path)

    def remove(self) -> None:
        """As in ``StoredFile``."""
        self.path.unlink(missing_ok=True)

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


class DatabaseFile(StoredFile):
    """A row of the shared database. A changed content is announced to all processes that listen.

    Raises:
        SettingsError: The name is not that of a file, or of one in a folder.
    """

    def __init__(self, database: Database, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise SettingsError(f"{name[:100]!r} cannot be the name of a stored file: name it as in pins/team.json")
        self._database = database
        self.name = name
        self._last: tuple[float, Hashable] = (0.0, None)
        self._looking = threading.Lock()

    def __str__(self) -> str:
        """Its name in the store."""
        return f"{_SCHEME}{self.name}"

    def read(self) -> bytes:
        """As in ``StoredFile``."""
        return bytes(self._value(_CONTENT))

    def replace(self, content: bytes, *, modified: float | None = None) -> None:
        """As in ``StoredFile``."""
        with self._database.transaction() as connection:
            before = connection.execute(_CONTENT, [self.name]).fetchone()
            connection.execute(_WRITE, [self.name, content, modified])
            if before is None or bytes(before[0]) != content:
                self._announce(connection)
        self._last = (0.0, None)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """As in ``StoredFile``."""
        try:
            with self._database.locked(self.name):
                yield
        except DatabaseError as error:
            raise TrustError(f"{self} cannot be written: {error}") from error

    def remove(self) -> None:
        """As in ``StoredFile``."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM files WHERE name = %s", [self.name])
            self._announce(connection)
        self._last = (0.0, None)

    def version(self) -> Hashable:
        """A number, about a second old: only the first call waits for the database; later ones have it looked up."""
        when = self._last[0]
        if not when:
            self._looking.acquire()
            self._look()
        elif time.monotonic() - when > _RECENT and self._looking.acquire(blocking=False):
            threading.Thread(target=self._look, name="callsheet-store", daemon=True).start()
        return self._last[1]

    def _look(self) -> None:
        """Looks the version up; while the database does not answer, the last one holds."""
        try:
            known = self._value(_VERSION)
        except FileNotFoundError:
            known = None
        except OSError:
            known = self._last[1]
        self._last = (time.monotonic(), known)
        self._looking.release()

    def modified(self) -> float:
        """As in ``StoredFile``."""
        return float(self._value(_MODIFIED).timestamp())

    def sibling(self, name: str) -> StoredFile:
        """As in ``StoredFile``."""
        return DatabaseFile(self._database, "/".join([*self.name.split("/")[:-1], name]))

    def _value(self, query: LiteralString) -> Any:
        with self._database.transaction() as connection:
            row = connection.execute(query, [self.name]).fetchone()
        if row is None:
            raise FileNotFoundError(2, "no such file", str(self))
        return row[0]

    def _announce(self, connection: Any) -> None:
        connection.execute(
            "SELECT pg_notify(%s, %s)", [CHANNEL, f"{self._database.schema} {self._database.token} {self.name}"]
        )


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
        SettingsError: It is in the shared store, and ``CALLSHEET_STORE`` names none.
    """
    if isinstance(name, StoredFile):
        return name
    if not isinstance(name, str) or not name.startswith(_SCHEME):
        return LocalFile(Path(name).expanduser())
    if (file := _shared_file(name.removeprefix(_SCHEME))) is None:
        raise SettingsError(f"{name} is in a shared store: set CALLSHEET_STORE to its address")
    return file


def _shared_file(name: str) -> StoredFile | None:
    """The file in the shared store; None if there is none."""
    return DatabaseFile(database, name) if (database := shared_database()) else None
