"""Checkpoints that other programs keep in a SQLite file or in Postgres; they are only read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol, TypeVar

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from callsheet.graphs import SettingsError

T = TypeVar("T")
Reader = Callable[[BaseCheckpointSaver[Any], Any], T]
"""Reads from a saver and its connection, whose rows are found by the names of columns."""
_POSTGRES = ("postgresql://", "postgres://")
_SECONDS = 5
_WAL = b"\x02\x02"
_CURES = {
    "SQLITE_BUSY": "another program has locked it: try again when it has finished, or stop it",
    "SQLITE_CANTOPEN": "its log (-wal) or its folder cannot be used: copy the file with its log to another folder",
    "SQLITE_CORRUPT": "it is damaged or half-written: copy a file in use with `sqlite3 FILE '.backup COPY'`",
    "SQLITE_NOTADB": "this is no SQLite database: give the file of LangGraph's SqliteSaver",
    "SQLITE_READONLY": "its program was killed while it wrote: start that program once, which repairs the file",
    "SQLITE_ERROR": "these are no checkpoints of LangGraph's SqliteSaver: give the file that the program gave to it",
}


class CheckpointDatabase(Protocol):
    """A database with checkpoints of LangGraph.

    Attributes:
        name: What it is called on the page.
    """

    name: str

    def read(self, reader: Reader[T]) -> T:
        """What the reader finds in the database; blocks.

        Raises:
            SettingsError: It cannot be read.
        """
        ...


def checkpoint_database(place: str) -> CheckpointDatabase:
    """The database at a place: a file, or an address ``postgresql://...``.

    Raises:
        SettingsError: It is an address of something else, or the extra ``postgres`` is not installed.
    """
    if place.startswith(_POSTGRES):
        return PostgresDatabase(place)
    if "://" in place:
        scheme = place.partition("://")[0]
        raise SettingsError(f"runs cannot be read from {scheme}://: give a SQLite file or postgresql://...")
    return SqliteFile(Path(place).expanduser())


class UnreadableError(SettingsError):
    """A checkpoint cannot be deserialized."""


class _PlainSerializer(JsonPlusSerializer):
    """Makes only types of LangGraph and LangChain: what else a foreign file names is not imported."""

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=None)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The value.

        Raises:
            UnreadableError: It is encrypted, pickled or damaged.
        """
        try:
            return super().loads_typed(data)
        except Exception as error:
            raise UnreadableError(
                f"a checkpoint cannot be read: {error}: it is encrypted, pickled, or of another version of LangGraph"
            ) from error


class SqliteFile:
    """The file of a ``SqliteSaver`` or ``AsyncSqliteSaver``, which its program may be writing."""

    def __init__(self, file: Path) -> None:
        self.name, self._given, self._file = file.name, file, file.resolve()

    def read(self, reader: Reader[T]) -> T:
        """What the reader finds."""
        while True:
            at_rest = self._at_rest()
            try:
                found = self._read(reader, "immutable=1" if at_rest else "mode=ro")
            except SettingsError:
                raise
            except Exception as error:  # damaged content may raise anything
                if at_rest == self._at_rest():
                    raise self._unreadable(error) from error
            else:
                if at_rest is None or at_rest == self._at_rest():
                    return found

    def _at_rest(self) -> tuple[int, int] | None:
        """Size and time of a file in WAL mode that nobody has open; None for others, which SQLite locks for a reader.

        SQLite would create a log beside such a file, even to read it. So it is read without, and again if a program
        opened or changed it meanwhile.
        """
        log, index = (Path(f"{self._file}{ending}") for ending in ("-wal", "-shm"))
        try:
            if not self._file.is_file():
                raise SettingsError(f"there is no file {self._given} with runs: give the one that the program writes")
            with self._file.open("rb") as opened:
                wal = opened.read(20)[18:] == _WAL
            if not wal or index.exists() or (log.exists() and log.stat().st_size):
                return None
            told = self._file.stat()
        except OSError as error:
            raise SettingsError(f"{self._given} with runs cannot be read: {error.strerror or error}") from error
        return told.st_size, told.st_mtime_ns

    def _read(self, reader: Reader[T], how: str) -> T:
        from langgraph.checkpoint.sqlite import SqliteSaver

        with closing(sqlite3.connect(f"{self._file.as_uri()}?{how}", timeout=_SECONDS, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            saver = SqliteSaver(connection, serde=_PlainSerializer())
            saver.is_setup = True  # its setup writes
            return reader(saver, connection)

    def _unreadable(self, error: Exception) -> SettingsError:
        code: str = getattr(error, "sqlite_errorname", "")
        cure = next((cure for name, cure in _CURES.items() if code.startswith(name)), "")
        return _not_read(str(self._given), error, cure)


class PostgresDatabase:
    """The database of a ``PostgresSaver`` or ``AsyncPostgresSaver``.

    Args:
        address: As the saver takes it.
    """

    def __init__(self, address: str) -> None:
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ImportError as error:
            raise SettingsError("runs in Postgres need an extra: pip install 'callsheet[postgres]'") from error
        try:
            told = conninfo_to_dict(address)
        except psycopg.Error:
            # Its message may show a part of the password.
            raise SettingsError("an address of runs is postgresql://user:password@host/database") from None
        self.name = f"{told.get('host', 'localhost')}/{told.get('dbname', '')}"
        self._address, self._password = address, str(told.get("password") or "")

    def read(self, reader: Reader[T]) -> T:
        """What the reader finds."""
        from langgraph.checkpoint.postgres import PostgresSaver
        from psycopg import Connection
        from psycopg.rows import DictRow, dict_row

        try:
            with Connection[DictRow].connect(
                self._address, autocommit=True, connect_timeout=_SECONDS, row_factory=dict_row
            ) as connection:
                connection.execute("SET default_transaction_read_only = on")
                return reader(PostgresSaver(connection, serde=_PlainSerializer()), connection)
        except SettingsError:
            raise
        except Exception as error:  # as for a file
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> SettingsError:
        import psycopg

        absent = isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn)
        cure = "these are no checkpoints of LangGraph's PostgresSaver: give the address that the program gave to it"
        told = _not_read(self.name, error, cure if absent else "")
        return SettingsError(str(told).replace(self._password, "***")) if self._password else told


def _not_read(place: str, error: Exception, cure: str) -> SettingsError:
    told = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return SettingsError(f"runs in {place} cannot be read: {told}{cure and f': {cure}'}")
