"""Answers of servers to ``tools/list``, and a store of the last answers, for servers that are down."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from callsheet.agents.calls.tool_result import Kind
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.storage import StoredFile, cache_file, file_named
from callsheet.graphs.text.sanitizing import clean, shown

LATE = 10.0
"""Seconds after which the log names the servers that have not answered."""
_LOG = logging.getLogger(__name__)
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Listing:
    """A server's description of itself.

    Attributes:
        tools: Entries of ``tools/list`` as sent by the server.
        resources: Resources, templates and prompts in the form of tools (``server_resources``).
        missing: Why some of these are missing; empty if all are there.
        name: Display name.
        version: Version.
        description: Description.
        instructions: Instructions for a model.
        error: Why it could not be listed, with the last lines of standard error; empty if it was.
        kind: The kind of error.
        seconds: Duration of start and listing.
    """

    tools: tuple[Any, ...] = ()
    resources: tuple[Any, ...] = ()
    missing: str = ""
    name: str = ""
    version: str = ""
    description: str = ""
    instructions: str = ""
    error: str = ""
    kind: Kind = ""
    seconds: float = 0.0


_KEPT = tuple(field.name for field in fields(Listing) if field.name not in ("error", "kind", "seconds"))


@dataclass(frozen=True, slots=True)
class LastKnown:
    """The last answer of a server.

    Attributes:
        when: Time of the answer in UTC, ISO 8601 to the second.
        reached: SHA-256 of the server's entry at that time.
    """

    listing: Listing
    when: str
    reached: str = ""


class LastListings:
    """The last answer of every server, in one file each.

    Args:
        folder: By default ``listings`` in the shared store, or else in ``CALLSHEET_HOME`` or the user's cache.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def keep(self, agent_id: str, server: ServerConfig, listing: Listing) -> None:
        """Stores an answer atomically; errors of the storage are ignored."""
        file = self._file(agent_id, server)
        said = {name: getattr(listing, name) for name in _KEPT}
        with suppress(OSError):
            file.replace(json.dumps({"agent": agent_id, "reached": _reached(server), **said}).encode())

    def last(self, agent_id: str, server: ServerConfig) -> LastKnown | None:
        """The last answer of a server, if it is stored and readable."""
        try:
            file = self._file(agent_id, server)
            when = datetime.fromtimestamp(file.modified(), UTC).isoformat(timespec="seconds")
            kept = json.loads(file.text())
            found = clean({name: kept[name] for name in _KEPT})
            lists = {name: tuple(found[name]) for name in ("tools", "resources")}
            return LastKnown(Listing(**{**found, **lists}), when, str(kept.get("reached", "")))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def fresh(self, agent_id: str, server: ServerConfig, seconds: float) -> LastKnown | None:
        """The last answer of a server, if it is recent enough and its entry has not changed."""
        with suppress(OSError):
            if 0 <= time.time() - self._file(agent_id, server).modified() <= seconds and seconds:
                known = self.last(agent_id, server)
                return known if known and known.reached == _reached(server) else None
        return None

    def _file(self, agent_id: str, server: ServerConfig) -> StoredFile:
        """One file per server entry, so that a new command does not inherit the answer of another one."""
        reached = [agent_id, server.transport, server.command, *server.args, server.cwd, server.url, server.openapi]
        name = f"{hashlib.sha256(json.dumps(reached).encode()).hexdigest()[:32]}.json"
        return cache_file(f"listings/{name}") if self._folder is None else file_named(self._folder / name)


def _reached(server: ServerConfig) -> str:
    """Digest of a server's entry, with its variables and headers."""
    entry = server.model_dump(mode="json", include={"transport", "command", "args", "env", "cwd", "url", "headers"})
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()


@contextmanager
def late_ones_named(tasks: Mapping[str, asyncio.Task[Listing]]) -> Iterator[None]:
    """Logs which servers have not answered after ``LATE`` seconds; ``tasks`` list the servers, by agent id."""

    def tell() -> None:
        late = [shown(name) for name, task in tasks.items() if not task.done()]
        named = ", ".join(late[:_MOST_NAMED]) + (f" and {more} more" if (more := len(late) - _MOST_NAMED) > 0 else "")
        _LOG.warning("no answer for %g s from %s: waiting", LATE, named)

    timer = asyncio.get_running_loop().call_later(LATE, tell)
    try:
        yield
    finally:
        timer.cancel()
