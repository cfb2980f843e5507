"""Stores files that replicas share as items of LangGraph's ``PostgresStore``."""

from __future__ import annotations

import errno
import os
import re
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, LiteralString
from urllib.parse import parse_qsl

from callsheet.graphs import SettingsError, TrustError
from callsheet.graphs.errors import needs_extra
from callsheet.graphs.storage import SHARED, StoreError

if TYPE_CHECKING:
    from langgraph.store.base import Item
    from psycopg import Connection

FILES = ("callsheet", "files")
"""The namespace of the files, by name."""
VERSIONS = ("callsheet", "versions")
"""The namespace of the version of the catalog, which is under the key ``catalog``."""
_OF_CATALOG = ("pins/", "listings/")
_SCHEMA = re.compile("[a-z_][a-z0-9_]{0,39}")
_LOCK_SECONDS = 30.0
_LOOK_SECONDS = 0.02
_IDLE_SECONDS = 1.0
_RETRY_SECONDS = 2.0
_RECENT = 1.0
_UNREACHABLE_SECONDS = 30.0
_LOCK: LiteralString = "SELECT pg_try_advisory_lock(hashtextextended(%s, 0))"
_UNLOCK: LiteralString = "SELECT pg_advisory_unlock(hashtextextended(%s, 0))"
_VALID = "a store is postgresql://user:password@host/database[?schema=name], the name in lower case, signs escaped"
# libpq's: a host that has vanished is noticed in ten seconds, not in the minutes of TCP.
_TIMEOUTS: Any = {"connect_timeout": 5, "tcp_user_timeout": 10_000, "keepalives_idle": 5, "keepalives_interval": 2}


class PostgresFiles:
    """The files in one schema of a Postgres database, which LangGraph's ``PostgresStore`` creates and migrates.

    One connection serves all threads of a process. It is opened when it is needed.

    Args:
        address: ``postgresql://user:password@host/database``. Its parameter ``schema`` names the schema, ``callsheet``
            by default; the other parameters are libpq's.

    Raises:
        SettingsError: The address is invalid, or the extra ``postgres`` is not installed.
    """

    _used: float

    def __init__(self, address: str) -> None:
        try:
            from psycopg import Error
            from psycopg.conninfo import conninfo_to_dict, make_conninfo
        except ImportError as error:
            raise SettingsError(f"a store in Postgres {needs_extra('postgres')}") from error
        place, _, query = address.partition("?")
        options = dict(parse_qsl(query, keep_blank_values=True))
        self._schema = options.pop("schema", "callsheet")
        if not place.startswith(("postgresql://", "postgres://")) or not _SCHEMA.fullmatch(self._schema):
            raise SettingsError(_VALID)
        try:
            self._conninfo = make_conninfo(place, **options)
            known = conninfo_to_dict(self._conninfo)
        except Error:
            raise SettingsError(_VALID) from None  # its message may show a part of the password
        self._password = str(known.get("password") or "")
        self._name = f"{known.get('host', 'localhost')}/{known.get('dbname', '')}, schema {self._schema}"
        self._inherited = list[object]()
        self._failed = (-_RETRY_SECONDS, "")
        self._opened: Connection[Any] | None = None
        self._versions: dict[str, tuple[float, tuple[float, ...] | None]] = {}  # and until when they hold
        self._begin()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin)

    def __str__(self) -> str:
        """Host, database and schema, without user and password."""
        return self._name

    def read(self, name: str) -> bytes:
        """Reads as in ``SharedStore``; raises a ``StoreError`` if the database does not answer or refuses."""
        item = self._get(FILES, name)
        if item is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", f"{SHARED}{name}")
        return str(item.value["text"]).encode()

    def write(self, name: str, content: bytes | None) -> None:
        """Writes as in ``SharedStore``; a changed content gives the catalog a new version in the same statement."""
        from langgraph.store.base import PutOp
        from langgraph.store.postgres import PostgresStore

        value = None if content is None else {"text": content.decode()}
        puts = [PutOp(FILES, name, value, index=False)]
        before = self._get(FILES, name) if name.startswith(_OF_CATALOG) else None
        if name.startswith(_OF_CATALOG) and (before is None or before.value != value):
            puts.append(PutOp(VERSIONS, "catalog", {"version": uuid.uuid4().hex}, index=False))
        with self._connection() as connection:
            PostgresStore(connection).batch(puts)
        self._versions.pop(name, None)

    def version(self, name: str) -> tuple[float, ...] | None:
        """Returns a version that is at most a second old; if the database does not answer, the last known one."""
        when, version = self._versions.get(name, (0.0, None))
        if time.monotonic() > when:
            when = time.monotonic() + _UNREACHABLE_SECONDS
            with suppress(OSError):
                item = self._get(FILES, name)
                when = time.monotonic() + _RECENT
                version = None if item is None else (item.updated_at.timestamp(),)
            self._versions[name] = when, version
        return version

    def catalog_version(self) -> str | None:
        """Reads the version of the catalog from the database each time."""
        item = self._get(VERSIONS, "catalog")
        return None if item is None else str(item.value["version"])

    def _get(self, namespace: tuple[str, ...], name: str) -> Item | None:
        from langgraph.store.postgres import PostgresStore

        with self._connection() as connection:
            return PostgresStore(connection).get(namespace, name)

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Locks as in ``SharedStore``; also raises a ``TrustError`` if the connection is lost meanwhile."""
        here = self._locks[name]
        if not here.acquire(timeout=_LOCK_SECONDS):
            raise self._busy(name)
        try:
            self._wait_for(name, lambda: self._taken(name))
            try:
                yield
            finally:
                try:
                    with self._connection() as connection:  # which is closed if the lock was lost meanwhile
                        connection.execute(_UNLOCK, self._key(name))
                finally:
                    self._holding.remove(name)
        except StoreError as error:
            raise TrustError(f"{SHARED}{name} cannot be written: {error}") from error
        finally:
            here.release()

    def _taken(self, name: str) -> bool:
        with self._connection() as connection:
            if connection.execute(_LOCK, self._key(name)).fetchone() != (True,):
                return False
            self._holding.append(name)  # before any other thread can open another connection
            return True

    def _wait_for(self, name: str, attempt: Callable[[], bool]) -> None:
        """Tries again and again: a statement that waited would keep CREATE INDEX CONCURRENTLY of a setup waiting."""
        end = time.monotonic() + _LOCK_SECONDS
        while not attempt():
            if time.monotonic() > end:
                raise self._busy(name)
            time.sleep(_LOOK_SECONDS)

    def _key(self, name: str) -> list[str]:
        return [f"{self._schema} {name}"]

    def _busy(self, name: str) -> TrustError:
        return TrustError(f"another process has held {name} in {self} for {_LOCK_SECONDS:.0f} s: wait for it")

    @contextmanager
    def _connection(self) -> Iterator[Connection[Any]]:
        """The connection, for one thread at a time; one that was lost is opened again, unless a lock went with it."""
        from psycopg import Error

        try:
            with self._using:
                if self._opened and not self._holding and time.monotonic() - self._used > _IDLE_SECONDS:
                    with suppress(Error):
                        self._opened.execute("SELECT 1")
                if self._opened is None or (self._opened.closed and not self._holding):
                    self._opened = self._connect()
                yield self._opened
                self._used = time.monotonic()
        except Error as error:
            raise StoreError(errno.EIO, self._message(error)) from error

    def _connect(self) -> Connection[Any]:
        import psycopg
        from langgraph.store.postgres import PostgresStore

        failed, why = self._failed
        if time.monotonic() - failed < _RETRY_SECONDS:  # so that a dead host costs one timeout, not one for each call
            raise StoreError(errno.EIO, why)
        try:
            connection: Connection[Any] = psycopg.connect(self._conninfo, autocommit=True, **_TIMEOUTS)
        except psycopg.Error as error:
            self._failed = (time.monotonic(), self._message(error))
            raise
        try:
            connection.execute("SELECT set_config('search_path', %s || ', public', false)", [f'"{self._schema}"'])
            key = self._key("its setup")
            self._wait_for("its setup", lambda: connection.execute(_LOCK, key).fetchone() == (True,))
            if connection.execute("SELECT to_regnamespace(%s)", [f'"{self._schema}"']).fetchone() == (None,):
                connection.execute(f'CREATE SCHEMA "{self._schema}"'.encode())
            PostgresStore(connection).setup()
            connection.execute(_UNLOCK, key)
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin(self) -> None:
        """No connection and no lock yet; in a forked process those of its parent stay, for it, as they are."""
        self._inherited.append(self._opened)
        self._opened = None
        self._used = 0.0
        self._holding: list[str] = []
        self._using: Any = threading.RLock()
        self._locks: defaultdict[str, Any] = defaultdict(threading.RLock)

    def _message(self, error: BaseException) -> str:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        shown = first.replace(self._password, "***") if self._password else first
        return f"the store at {self} cannot be used: {shown}"
