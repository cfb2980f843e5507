"""One schema of a Postgres database, which several processes and machines share."""

from __future__ import annotations

import errno
import os
import threading
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, LiteralString

from callsheet.graphs.catalog.errors import CallsheetError, SettingsError, TrustError
from callsheet.graphs.storage.database_address import VALID, split_address

if TYPE_CHECKING:
    from psycopg import Connection

_LOCK_SECONDS, _IDLE_SECONDS, _RETRY_SECONDS = 30, 1.0, 2.0
_FOR_TRANSACTION: LiteralString = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
_FOR_SESSION: LiteralString = "SELECT pg_advisory_lock(hashtextextended(%s, 0))"
# libpq's: a host that has vanished is noticed in ten seconds, not in the minutes of TCP.
_TIMEOUTS: dict[str, Any] = {
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
}
_MIGRATIONS: LiteralString = "CREATE TABLE IF NOT EXISTS migrations (part text PRIMARY KEY, version int NOT NULL)"
_FILES = (
    "CREATE SEQUENCE versions",
    "CREATE TABLE files (name text PRIMARY KEY, content bytea NOT NULL, version bigint NOT NULL, "
    "modified timestamptz NOT NULL)",
)


class DatabaseError(CallsheetError, OSError):
    """The database does not answer, or refuses."""

    def __str__(self) -> str:
        """The message, without a number."""
        return str(self.strerror)


class Database:
    """One schema of a Postgres database. It is created and migrated with the first connection.

    All threads share one connection; what runs long takes its own (``connect``).

    Args:
        address: ``postgresql://user:password@host/database``. Its parameter ``schema`` names the schema, ``callsheet``
            by default; the other parameters are libpq's.
        create: Creates and migrates the schema with the first connection; otherwise it must exist.

    Attributes:
        schema: Name of the schema.
        token: Tells this object's notifications from those of others.

    Raises:
        SettingsError: The address is invalid, or the extra ``postgres`` is not installed.
    """

    def __init__(self, address: str, *, create: bool = True) -> None:
        try:
            import psycopg
            import psycopg.conninfo
        except ImportError as error:
            raise SettingsError("a store in Postgres needs an extra: pip install 'callsheet[postgres]'") from error
        conninfo, self.schema = split_address(address)
        try:
            told = psycopg.conninfo.conninfo_to_dict(conninfo)
        except psycopg.Error:
            raise SettingsError(VALID) from None  # its message may show a part of the password
        self._conninfo, self._create, self._password = conninfo, create, str(told.get("password") or "")
        self._name = f"{told.get('host', 'localhost')}/{told.get('dbname', '')}, schema {self.schema}"
        self._lock = threading.RLock()
        self._shared: Connection[Any] | None = None
        self._inherited: list[object] = []
        self._local = threading.local()  # ``open``: the connection of this thread's transaction
        self._used, self._failed = 0.0, (0.0, "")
        self._migrated: set[str] = set()
        self.token = uuid.uuid4().hex[:12]
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._leave_to_parent)

    def __str__(self) -> str:
        """Host, database and schema, without user and password."""
        return self._name

    @contextmanager
    def transaction(self) -> Iterator[Connection[Any]]:
        """The shared connection in a transaction, which is committed at the end; a nested block is part of the outer.

        Raises:
            DatabaseError: The database does not answer, or refuses.
        """
        if (open_already := getattr(self._local, "open", None)) is not None:
            yield open_already
            return
        if not self._lock.acquire(timeout=_LOCK_SECONDS):
            raise DatabaseError(errno.EBUSY, f"the store at {self} has been busy for {_LOCK_SECONDS} s")
        try:
            with self._named_errors(), self._in_transaction(self._checked()) as connection:
                yield connection
        finally:
            self._used = time.monotonic()
            self._lock.release()

    @contextmanager
    def locked(self, name: str) -> Iterator[Connection[Any]]:
        """A transaction that is the only one with this name, over all processes.

        Raises:
            TrustError: Another process has held the lock for 30 seconds.
            DatabaseError: As for ``transaction``.
        """
        nested = getattr(self._local, "open", None) is not None
        with self.transaction() if nested else self._own_transaction() as connection:
            self._wait(connection, _FOR_TRANSACTION, name, _LOCK_SECONDS)
            yield connection

    @contextmanager
    def exclusive(self, name: str, seconds: float) -> Iterator[Connection[Any]]:
        """Lets one process at a time in, for as long as it takes; the connection that it returns holds the lock.

        Raises:
            TrustError: Another process has been in for this time.
            DatabaseError: As for ``transaction``, or the lock was lost meanwhile.
        """
        with self.connect() as connection:
            self._wait(connection, _FOR_SESSION, name, seconds)
            yield connection
            connection.execute("SELECT 1")  # the lock was held all the time

    @contextmanager
    def connect(self) -> Iterator[Connection[Any]]:
        """A connection of its own that commits each statement, in this schema.

        Raises:
            DatabaseError: As for ``transaction``.
        """
        with self._named_errors(), self._opened() as connection:
            yield connection

    def migrate(self, part: str, statements: Sequence[str]) -> None:
        """Applies in one transaction the statements, only ever appended to, that have not been applied here yet.

        Raises:
            DatabaseError: As for ``transaction``, or the part was made by a newer version of Callsheet.
        """
        if part in self._migrated:
            return
        with self.transaction() as connection:
            done = self._version_of(connection, part)
        if done != len(statements):
            with self.locked("migrations") as connection:
                self._apply(connection, part, statements)
        self._migrated.add(part)

    @contextmanager
    def _own_transaction(self) -> Iterator[Connection[Any]]:
        """A transaction on a connection of its own, for which no other thread waits."""
        with self.connect() as own, self._in_transaction(own) as connection:
            yield connection

    @contextmanager
    def _in_transaction(self, connection: Connection[Any]) -> Iterator[Connection[Any]]:
        with connection.transaction():
            self._local.open = connection
            try:
                yield connection
            finally:
                self._local.open = None

    def _leave_to_parent(self) -> None:
        """In a forked process: the connection is the parent's; closing it here would end it there."""
        self._inherited.append(self._shared)
        self._shared, self._lock, self._local = None, threading.RLock(), threading.local()

    def _wait(self, connection: Connection[Any], lock: LiteralString, name: str, seconds: float) -> None:
        from psycopg.errors import LockNotAvailable

        try:
            connection.execute("SELECT set_config('lock_timeout', %s, false)", [f"{seconds:.0f}s"])
            connection.execute(lock, [f"{self.schema} {name}"])
        except LockNotAvailable as error:
            raise TrustError(f"another process has held {name} in {self} for {seconds:.0f} s: wait for it") from error

    def _checked(self) -> Connection[Any]:
        """The shared connection, opened anew if it was lost."""
        if self._shared is not None and not self._shared.closed:
            if time.monotonic() - self._used < _IDLE_SECONDS:
                return self._shared
            with suppress(Exception):
                self._shared.execute("SELECT 1")
                return self._shared
            self._shared.close()
        failed, why = self._failed
        if time.monotonic() - failed < _RETRY_SECONDS:  # so that a dead host costs one timeout, not one for each call
            raise DatabaseError(errno.EIO, why)
        try:
            self._shared = self._opened()
        except Exception as error:
            self._failed = (time.monotonic(), self._told(error))
            raise
        return self._shared

    def _opened(self) -> Connection[Any]:
        import psycopg

        connection = psycopg.connect(self._conninfo, autocommit=True, **_TIMEOUTS)
        try:
            connection.execute("SELECT set_config('search_path', %s || ', public', false)", [f'"{self.schema}"'])
            connection.execute("SELECT set_config('lock_timeout', %s, false)", [f"{_LOCK_SECONDS}s"])
            if "files" not in self._migrated:
                self._created(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _created(self, connection: Connection[Any]) -> None:
        if self._version_of(connection, "files") != len(_FILES):
            if not self._create:
                raise DatabaseError(errno.ENOENT, f"there is no store at {self}")
            with connection.transaction():
                connection.execute(_FOR_TRANSACTION, [f"{self.schema} migrations"])
                if connection.execute("SELECT to_regnamespace(%s)", [f'"{self.schema}"']).fetchone() == (None,):
                    connection.execute(f'CREATE SCHEMA "{self.schema}"'.encode())
                connection.execute(_MIGRATIONS)
                self._apply(connection, "files", _FILES)
        self._migrated.add("files")

    def _version_of(self, connection: Connection[Any], part: str) -> int:
        """How many statements of a part were applied."""
        there = connection.execute("SELECT to_regclass(%s)", [f'"{self.schema}".migrations']).fetchone()
        if there == (None,):
            return 0
        row = connection.execute("SELECT version FROM migrations WHERE part = %s", [part]).fetchone()
        return int(row[0]) if row else 0

    def _apply(self, connection: Connection[Any], part: str, statements: Sequence[str]) -> None:
        done = self._version_of(connection, part)
        if done > len(statements):
            raise DatabaseError(errno.EPROTO, f"{self} was written by a newer version of Callsheet: update this one")
        for statement in statements[done:]:
            connection.execute(statement.encode())
        connection.execute(
            "INSERT INTO migrations VALUES (%s, %s) ON CONFLICT (part) DO UPDATE SET version = EXCLUDED.version",
            [part, len(statements)],
        )

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raise DatabaseError(errno.EIO, self._told(error)) from error

    def _told(self, error: BaseException) -> str:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        told = lines[0].replace(self._password, "***") if self._password else lines[0]
        return f"the store at {self} cannot be used: {told}"


def store_address() -> str:
    """The address of the shared store, ``CALLSHEET_STORE``; empty if there is none."""
    return os.environ.get("CALLSHEET_STORE", "").strip()


def shared_database() -> Database | None:
    """The shared store; None if there is none, so that data are local files.

    Raises:
        SettingsError: As for ``Database``.
    """
    return database_at(address) if (address := store_address()) else None


@cache
def database_at(address: str) -> Database:
    """The database at an address: one object, and so one shared connection, for each.

    Raises:
        SettingsError: As for ``Database``.
    """
    return Database(address)
