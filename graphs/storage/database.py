"""One schema of a Postgres database, which several processes and machines share."""

from __future__ import annotations

import errno
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any, LiteralString
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from callsheet.graphs.catalog.errors import CallsheetError, SettingsError, TrustError

if TYPE_CHECKING:
    from psycopg import Connection

CHANNEL = "callsheet"
"""Channel of the notifications; the payload is the schema, a blank and the name of a changed file."""
_LOG = logging.getLogger(__name__)
_SCHEMES = ("postgresql://", "postgres://")
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_LOCK_SECONDS, _IDLE_SECONDS, _RETRY_SECONDS = 30, 1.0, 2.0
# libpq's: a host that has vanished is noticed in ten seconds, not in the minutes of TCP.
_TIMEOUTS: dict[str, Any] = {"connect_timeout": 5, "tcp_user_timeout": 10_000, "keepalives_idle": 5}
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

    Attributes:
        schema: Name of the schema.

    Raises:
        SettingsError: The address is invalid, or the extra ``postgres`` is not installed.
    """

    def __init__(self, address: str) -> None:
        try:
            import psycopg  # noqa: F401
        except ImportError as error:
            raise SettingsError("a store in Postgres needs an extra: pip install 'callsheet[postgres]'") from error
        parts = urlsplit(address)
        options = dict(parse_qsl(parts.query))
        self.schema = options.pop("schema", "callsheet")
        if not is_address(address) or not _SCHEMA.fullmatch(self.schema):
            raise SettingsError(
                "a store is postgresql://user:password@host/database[?schema=name], the name in lower case: "
                f"not {parts.scheme or 'this'}://... with schema {self.schema!r}"
            )
        self._conninfo = urlunsplit(parts._replace(query=urlencode(options)))
        self._name = f"{parts.hostname or options.get('host', 'localhost')}{parts.path}, schema {self.schema}"
        self._lock = threading.RLock()
        self._shared: Connection[Any] | None = None
        self._open: Connection[Any] | None = None  # in a transaction
        self._used, self._failed = 0.0, (0.0, "")
        self._migrated: set[str] = set()

    def __str__(self) -> str:
        """Host, database and schema, without user and password."""
        return self._name

    @contextmanager
    def transaction(self) -> Iterator[Connection[Any]]:
        """The shared connection in a transaction, which is committed at the end; a nested block is part of the outer.

        Raises:
            DatabaseError: The database does not answer, or refuses.
        """
        with self._lock:
            if self._open is not None:
                yield self._open
                return
            with self._named_errors():
                connection = self._checked()
                with connection.transaction():
                    self._open = connection
                    try:
                        yield connection
                    finally:
                        self._open, self._used = None, time.monotonic()

    @contextmanager
    def locked(self, name: str) -> Iterator[Connection[Any]]:
        """A transaction that is the only one with this name, over all processes.

        Raises:
            TrustError: Another process has held the lock for 30 seconds.
            DatabaseError: As for ``transaction``.
        """
        with self.transaction() as connection:
            self._wait(connection, "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", name, _LOCK_SECONDS)
            yield connection

    @contextmanager
    def exclusive(self, name: str, seconds: float) -> Iterator[None]:
        """Lets one process at a time in, for as long as it takes; meanwhile, others can use the database.

        Args:
            name: What they exclude each other from.
            seconds: Maximum time to wait.

        Raises:
            TrustError: Another process has been in for this time.
            DatabaseError: As for ``transaction``.
        """
        with self.connect() as connection:
            self._wait(connection, "SELECT pg_advisory_lock(hashtextextended(%s, 0))", name, seconds)
            yield

    @contextmanager
    def connect(self) -> Iterator[Connection[Any]]:
        """A connection of its own that commits each statement, in this schema.

        Raises:
            DatabaseError: As for ``transaction``.
        """
        with self._named_errors(), self._opened() as connection:
            yield connection

    def migrate(self, part: str, statements: Sequence[str]) -> None:
        """Applies those of the statements that have not been applied here yet, in one transaction.

        Args:
            part: Name of what they create.
            statements: Only ever appended to.

        Raises:
            DatabaseError: As for ``transaction``, or the part was made by a newer version of Callsheet.
        """
        if part in self._migrated:
            return
        with self.locked("migrations") as connection:
            self._apply(connection, part, statements)

    def listen(self, changed: Callable[[str], None]) -> threading.Event:
        """Calls a function with the name of each file that any process changes, in a thread.

        After a lost connection, the function is called with an empty name: any file may have changed.

        Returns:
            An event that ends it when set.
        """
        stop = threading.Event()

        def listening() -> None:
            missed = False
            while not stop.is_set():
                try:
                    with self.connect() as connection:
                        connection.execute(f"LISTEN {CHANNEL}")
                        if missed:
                            changed("")
                        while not stop.is_set():
                            for notice in connection.notifies(timeout=0.5):
                                schema, _, name = notice.payload.partition(" ")
                                if schema == self.schema:
                                    changed(name)
                except DatabaseError as error:
                    if not missed:
                        _LOG.warning("changes by other processes are not seen: %s", error)
                    missed = True
                    stop.wait(_RETRY_SECONDS)

        threading.Thread(target=listening, name="callsheet-store", daemon=True).start()
        return stop

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
            connection.execute("SELECT set_config('search_path', %s || ', public', false)", [self.schema])
            if "files" not in self._migrated:
                self._created(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _created(self, connection: Connection[Any]) -> None:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"{self.schema} migrations"])
            if connection.execute("SELECT to_regclass(%s)", [f"{self.schema}.migrations"]).fetchone() == (None,):
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self.schema}".encode())
                connection.execute("CREATE TABLE migrations (part text PRIMARY KEY, version int NOT NULL)")
            self._apply(connection, "files", _FILES)

    def _apply(self, connection: Connection[Any], part: str, statements: Sequence[str]) -> None:
        row = connection.execute("SELECT version FROM migrations WHERE part = %s", [part]).fetchone()
        done = row[0] if row else 0
        if done > len(statements):
            raise DatabaseError(errno.EPROTO, f"{self} was written by a newer version of Callsheet: update this one")
        for statement in statements[done:]:
            connection.execute(statement.encode())
        connection.execute(
            "INSERT INTO migrations VALUES (%s, %s) ON CONFLICT (part) DO UPDATE SET version = EXCLUDED.version",
            [part, len(statements)],
        )
        self._migrated.add(part)

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            raise DatabaseError(errno.EIO, self._told(error)) from error

    def _told(self, error: BaseException) -> str:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return f"the store at {self} cannot be used: {lines[0]}"


def is_address(place: str) -> bool:
    """Whether this is the address of a database, rather than a folder."""
    return place.startswith(_SCHEMES)


def shared_database(address: str | None = None) -> Database | None:
    """The shared database; None if there is none, so that data are local files.

    Args:
        address: As in ``Database``; by default ``CALLSHEET_STORE``.

    Raises:
        SettingsError: As for ``Database``.
    """
    where = address or os.environ.get("CALLSHEET_STORE", "").strip()
    return _database(where) if where else None


@cache
def _database(address: str) -> Database:
    return Database(address)
