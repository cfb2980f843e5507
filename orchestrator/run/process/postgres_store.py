"""Files that replicas share: items of LangGraph's ``PostgresStore``."""

from __future__ import annotations

import errno
import os
import threading
import time
import uuid
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar
from urllib.parse import unquote

from callsheet.graphs import SettingsError, TrustError
from callsheet.graphs.storage import SHARED, StoredFile, StoreError

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore, Item
    from psycopg import Connection

T = TypeVar("T")
FILES, VERSIONS = ("callsheet", "files"), ("callsheet", "versions")
"""Namespaces of files by name, and of the version key ``catalog``."""
_OF_CATALOG = ("pins/", "listings/")
_LOCK_SECONDS, _LOOK_SECONDS, _IDLE_SECONDS, _RETRY_SECONDS, _RECENT = 30.0, 0.02, 1.0, 2.0, 1.0
_LOCK: LiteralString = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
_UNLOCK: LiteralString = "SELECT pg_advisory_unlock(hashtextextended(%s, 0))"
_VALID = "a store is postgresql://user:password@host/database[?schema=name], the name in lower case, signs escaped"
# libpq's: a host that has vanished is noticed in ten seconds, not in the minutes of TCP.
_TIMEOUTS: dict[str, Any] = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
}


class PostgresFiles:
    """The files in one schema of a Postgres database, which LangGraph's ``PostgresStore`` creates and migrates.

    Connections are opened when they are needed, and used again.

    Args:
        address: ``postgresql://user:password@host/database``. Its parameter ``schema`` names the schema, ``callsheet``
            by default; the other parameters are libpq's.

    Raises:
        SettingsError: The address is invalid, or the extra ``postgres`` is not installed.
    """

    def __init__(self, address: str) -> None:
        try:
            from psycopg import Error
            from psycopg.conninfo import conninfo_to_dict, make_conninfo
        except ImportError as error:
            raise SettingsError("a store in Postgres needs an extra: pip install 'callsheet[postgres]'") from error
        place, _, query = address.partition("?")
        options = {
            name: unquote(value) for name, _, value in (pair.partition("=") for pair in query.split("&")) if name
        }
        self._schema = options.pop("schema", "callsheet")
        if not place.startswith(("postgresql://", "postgres://")) or not _is_schema(self._schema):
            raise SettingsError(_VALID)
        try:
            self._conninfo = make_conninfo(place, **options)
            known = conninfo_to_dict(self._conninfo)
        except Error:
            raise SettingsError(_VALID) from None  # its message may show a part of the password
        self._password = str(known.get("password") or "")
        self._name = f"{known.get('host', 'localhost')}/{known.get('dbname', '')}, schema {self._schema}"
        self._idle: list[tuple[float, Connection[Any]]] = []
        self._inherited: list[object] = []
        self._local = threading.local()  # ``connection``: the one that holds this thread's locks
        self._is_set_up, self._failed = False, (-_RETRY_SECONDS, "")
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._leave_to_parent)

    def __str__(self) -> str:
        """Host, database and schema, without user and password."""
        return self._name

    def file(self, name: str) -> StoredFile:
        """As in ``SharedStore``."""
        return SharedFile(self, name)

    def catalog_version(self) -> Hashable:
        """As in ``SharedStore``."""
        item = self.run(lambda store: store.get(VERSIONS, "catalog"))
        return None if item is None else str(item.value["version"])

    def run(self, work: Callable[[BaseStore], T]) -> T:
        """What ``work`` returns for the store.

        Raises:
            StoreError: The database does not answer, or refuses.
        """
        from langgraph.store.postgres import PostgresStore

        with self._connection() as connection:
            return work(PostgresStore(connection))

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Lets one process at a time in; what this thread writes meanwhile goes over the connection with the lock.

        Raises:
            TrustError: Another process has held the lock for 30 seconds.
            StoreError: The database does not answer, or the lock was lost meanwhile.
        """
        before = getattr(self._local, "connection", None)
        with self._connection() as connection, self._lock(connection, name):
            self._local.connection = connection
            try:
                yield
            finally:
                self._local.connection = before

    @contextmanager
    def _lock(self, connection: Connection[Any], name: str) -> Iterator[None]:
        # By short statements: one that waits in the database would keep CREATE INDEX CONCURRENTLY of the setup waiting.
        lock, end = [f"{self._schema} {name}"], time.monotonic() + _LOCK_SECONDS
        while connection.execute(_LOCK, lock).fetchone() != (True,):
            if time.monotonic() > end:
                raise TrustError(f"another process has held {name} in {self} for {_LOCK_SECONDS:.0f} s: wait for it")
            time.sleep(_LOOK_SECONDS)
        try:
            yield
        finally:
            connection.execute(_UNLOCK, lock)  # an error if the lock was lost meanwhile

    @contextmanager
    def _connection(self) -> Iterator[Connection[Any]]:
        """The connection with this thread's locks, or one that nobody else uses meanwhile."""
        from psycopg import Error

        held = getattr(self._local, "connection", None)
        try:
            connection = held or self._unused() or self._opened()
            try:
                yield connection
            except BaseException:
                if held is None:
                    connection.close()
                raise
        except Error as error:
            raise StoreError(errno.EIO, self._message(error)) from error
        if held is None:
            self._idle.append((time.monotonic(), connection))

    def _unused(self) -> Connection[Any] | None:
        with suppress(IndexError):  # another thread may take the last one
            while True:
                used, connection = self._idle.pop()
                with suppress(Exception):
                    if time.monotonic() - used > _IDLE_SECONDS:
                        connection.execute("SELECT 1")
                    if not connection.closed:
                        return connection
                connection.close()
        return None

    def _opened(self) -> Connection[Any]:
        import psycopg

        failed, why = self._failed
        if time.monotonic() - failed < _RETRY_SECONDS:  # so that a dead host costs one timeout, not one for each call
            raise StoreError(errno.EIO, why)
        try:
            connection = psycopg.connect(self._conninfo, autocommit=True, **_TIMEOUTS)
        except psycopg.Error as error:
            self._failed = (time.monotonic(), self._message(error))
            raise
        try:
            connection.execute("SELECT set_config('search_path', %s || ', public', false)", [f'"{self._schema}"'])
            if not self._is_set_up:
                self._set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_up(self, connection: Connection[Any]) -> None:
        from langgraph.store.postgres import PostgresStore

        with self._lock(connection, "its setup"):
            if connection.execute("SELECT to_regnamespace(%s)", [f'"{self._schema}"']).fetchone() == (None,):
                connection.execute(f'CREATE SCHEMA "{self._schema}"'.encode())
            PostgresStore(connection).setup()
        self._is_set_up = True

    def _leave_to_parent(self) -> None:
        """In a forked process: the connections are the parent's; closing them here would end them there."""
        self._inherited.append((self._idle, self._local))
        self._idle, self._local = [], threading.local()

    def _message(self, error: BaseException) -> str:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        shown = first.replace(self._password, "***") if self._password else first
        return f"the store at {self} cannot be used: {shown}"


class SharedFile(StoredFile):
    """A file as an item of the store."""

    def __init__(self, files: PostgresFiles, name: str) -> None:
        self._files, self.name = files, name
        self._seen: tuple[float, Hashable] = (0.0, None)
        self._looking = threading.Lock()

    def __str__(self) -> str:
        """Its name in the store."""
        return f"{SHARED}{self.name}"

    def read(self) -> bytes:
        """As in ``StoredFile``."""
        return str(self._existing().value["text"]).encode()

    def replace(self, content: bytes) -> None:
        """As in ``StoredFile``; a changed content gives the catalog another version in the same statement."""
        value = {"text": content.decode()}
        before = self._item()
        self._put(value, changes=before is None or before.value != value)

    def remove(self) -> None:
        """As in ``StoredFile``."""
        self._put(None, changes=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """As in ``StoredFile``."""
        try:
            with self._files.locked(self.name):
                yield
        except StoreError as error:
            raise TrustError(f"{self} cannot be written: {error}") from error

    def version(self) -> Hashable:
        """A time, about a second old: only the first call waits for the database; later ones have it looked up."""
        when = self._seen[0]
        if not when:
            self._looking.acquire()
            self._look()
        elif time.monotonic() - when > _RECENT and self._looking.acquire(blocking=False):
            threading.Thread(target=self._look, name="callsheet-store", daemon=True).start()
        return self._seen[1]

    def modified(self) -> float:
        """As in ``StoredFile``."""
        return self._existing().updated_at.timestamp()

    def sibling(self, name: str) -> StoredFile:
        """As in ``StoredFile``."""
        return self._files.file("/".join([*self.name.split("/")[:-1], name]))

    def _look(self) -> None:
        """Looks the version up; while the database does not answer, the last one holds."""
        version = self._seen[1]
        with suppress(OSError):
            item = self._item()
            version = item and item.updated_at
        self._seen = (time.monotonic(), version)
        self._looking.release()

    def _item(self) -> Item | None:
        return self._files.run(lambda store: store.get(FILES, self.name))

    def _existing(self) -> Item:
        if (item := self._item()) is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(self))
        return item

    def _put(self, value: dict[str, Any] | None, *, changes: bool) -> None:
        from langgraph.store.base import PutOp

        puts = [PutOp(FILES, self.name, value, index=False)]
        if changes and self.name.startswith(_OF_CATALOG):
            puts.append(PutOp(VERSIONS, "catalog", {"version": uuid.uuid4().hex}, index=False))
        self._files.run(lambda store: store.batch(puts))
        self._seen = (0.0, None)


def _is_schema(name: str) -> bool:
    return name.isascii() and name.isidentifier() and name == name.lower() and len(name) <= 40
