"""Connections to a database for threads that read at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

from callsheet.graphs.storage.database import Database, DatabaseError

if TYPE_CHECKING:
    from psycopg import Connection

Result = TypeVar("Result")


class Connections:
    """As many connections as threads read at once; idle ones are used again, and stay open."""

    def __init__(self, database: Database, settings: Sequence[LiteralString] = ()) -> None:
        self._database, self._settings = database, settings
        self._idle: list[tuple[ExitStack, Connection[Any]]] = []
        self._inherited: list[object] = []
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._leave_to_parent)

    def read(self, work: Callable[[Connection[Any]], Result]) -> Result:
        """What ``work`` reads with a connection of its own; if an idle one was lost, it is called again with another.

        Raises:
            DatabaseError: The database does not answer, or refuses.
        """
        while (idle := self._unused()) is not None:
            opened, connection = idle
            try:
                with self._used(opened, connection):
                    return work(connection)
            except DatabaseError:
                if not connection.closed:
                    raise
        opened = ExitStack()
        connection = opened.enter_context(self._database.connect())
        with self._used(opened, connection):
            for statement in self._settings:
                connection.execute(statement)
            return work(connection)

    def _unused(self) -> tuple[ExitStack, Connection[Any]] | None:
        try:
            return self._idle.pop()
        except IndexError:  # another thread may have taken the last one
            return None

    @contextmanager
    def _used(self, opened: ExitStack, connection: Connection[Any]) -> Iterator[None]:
        with ExitStack() as failing:
            failing.push(opened.__exit__)  # closes the connection, and names the error
            yield
            failing.pop_all()
        self._idle.append((opened, connection))

    def _leave_to_parent(self) -> None:
        """In a forked process: the connections are the parent's; closing them here would end them there."""
        self._inherited.append(self._idle)
        self._idle = []
