"""Changes of stored files that other processes make."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from callsheet.graphs.storage.database import Database

if TYPE_CHECKING:
    from psycopg import Connection

CHANNEL = "callsheet"
"""Channel of the notifications; the payload is the schema, the token of the writer and the name of a file."""
_LOG = logging.getLogger(__name__)
_CHECK_SECONDS, _RETRY_SECONDS = 10.0, 2.0


def listen(database: Database, changed: Callable[[str], None]) -> threading.Event:
    """Calls a function with the name of each file that another process changes, in a thread.

    When it begins to listen, and again after a lost connection, the function is called with an empty name: any file
    may have changed.

    Returns:
        An event that ends it when set.
    """
    stop = threading.Event()

    def listening() -> None:
        warned = False
        while not stop.is_set():
            try:
                with database.connect() as connection:
                    connection.execute(f"LISTEN {CHANNEL}")
                    warned = False
                    changed("")
                    while not stop.is_set():
                        _hear(database, connection, changed, stop)
                        connection.execute("SELECT 1")  # a connection that was dropped silently is noticed
            except Exception as error:  # noqa: BLE001 it goes on listening, whatever the function raises
                if not warned:
                    _LOG.warning("changes by other processes are not seen: %s", error)
                warned = True
                stop.wait(_RETRY_SECONDS)

    threading.Thread(target=listening, name="callsheet-store", daemon=True).start()
    return stop


def _hear(
    database: Database, connection: Connection[Any], changed: Callable[[str], None], stop: threading.Event
) -> None:
    end = time.monotonic() + _CHECK_SECONDS
    while not stop.is_set() and time.monotonic() < end:
        for notice in connection.notifies(timeout=0.5):
            schema, token, name = notice.payload.split(" ", 2)
            if schema == database.schema and token != database.token:
                changed(name)
