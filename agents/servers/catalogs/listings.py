"""What servers say of themselves, and what they said last, for when they are down."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from callsheet.agents.tools.tool_result import Kind
from callsheet.graphs.catalog.formats.mcp_format import Entries
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.storage import cache_folder, private_folder, replace_text
from callsheet.graphs.text.sanitizing import clean, shown

LATE = 10.0
"""Seconds of silence after which it is said which servers are waited for."""
_LOG = logging.getLogger(__name__)
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server says of itself.

    Attributes:
        tools: Entries of ``tools/list`` as the server sent them.
        name: Its name for people.
        version: Its version.
        description: What it says that it is for.
        instructions: What it tells a model that uses it.
        error: Why it could not be listed, last lines of its standard error included; empty when it was.
        kind: The sort of trouble.
        seconds: How long start and listing took.
    """

    tools: tuple[Any, ...] = ()
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
    """What a server said when it last answered.

    Attributes:
        listing: That.
        when: When it was, in UTC, ISO 8601 to the second.
        reached: SHA-256 of the entry that it was reached by then.
    """

    listing: Listing
    when: str
    reached: str = ""


class LastListings:
    """The last answer of every server, one file each, which only a newer answer replaces.

    Args:
        folder: ``listings`` in ``CALLSHEET_HOME``, else in the user's cache, by default.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or cache_folder() / "listings"

    def keep(self, agent_id: str, server: ServerConfig, listing: Listing) -> None:
        """Keeps an answer; a reader meets the old one or the new one, whole. Where nothing can be kept, nothing is."""
        file = self._file(agent_id, server)
        said = {name: value for name, value in asdict(listing).items() if name in _KEPT}
        with suppress(OSError):
            private_folder(file.parent)
            replace_text(file, json.dumps({"agent": agent_id, "reached": _reached(server), **said}))

    def last(self, agent_id: str, server: ServerConfig) -> LastKnown | None:
        """The last answer of a server, if it is known and can be read."""
        try:
            file = self._file(agent_id, server)
            when = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat(timespec="seconds")
            kept = json.loads(file.read_text(encoding="utf-8"))
            found = clean({name: kept[name] for name in _KEPT})
            return LastKnown(Listing(**{**found, "tools": tuple(found["tools"])}), when, str(kept.get("reached", "")))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def fresh(self, agent_id: str, server: ServerConfig, seconds: float) -> LastKnown | None:
        """The last answer of a server, if it is no older than so many seconds and its entry is the same as then."""
        with suppress(OSError):
            if 0 <= time.time() - self._file(agent_id, server).stat().st_mtime <= seconds and seconds:
                known = self.last(agent_id, server)
                return known if known and known.reached == _reached(server) else None
        return None

    def _file(self, agent_id: str, server: ServerConfig) -> Path:
        """One for each server as it is reached, so that a new command does not inherit what another one said."""
        reached = [agent_id, server.transport, server.command, *server.args, server.cwd, server.url]
        return self._folder / f"{hashlib.sha256(json.dumps(reached).encode()).hexdigest()[:32]}.json"


def _reached(server: ServerConfig) -> str:
    """What tells this entry of a server from another one of the same command: its variables and headers too."""
    entry = server.model_dump(mode="json", include={"transport", "command", "args", "env", "cwd", "url", "headers"})
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()


@contextmanager
def late_ones_named(tasks: Mapping[str, asyncio.Task[Listing]]) -> Iterator[None]:
    """Says in the log which servers have not answered when ``LATE`` has passed.

    Args:
        tasks: What lists each server, by agent id.
    """

    def tell() -> None:
        late = [shown(name) for name, task in tasks.items() if not task.done()]
        named = ", ".join(late[:_MOST_NAMED]) + (f" and {more} more" if (more := len(late) - _MOST_NAMED) > 0 else "")
        _LOG.warning("no answer for %g s from %s: waiting", LATE, named)

    timer = asyncio.get_running_loop().call_later(LATE, tell)
    try:
        yield
    finally:
        timer.cancel()


@dataclass(frozen=True, slots=True)
class Difference:
    """What is new between two answers, by names of tools."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self.added or self.changed or self.removed)


def difference(before: Listing | None, after: Listing) -> Difference:
    """What a server changed since its last answer."""
    old, new = Entries.of(before.tools if before else ()).tools, Entries.of(after.tools).tools
    return Difference(
        tuple(name for name in new if name not in old),
        tuple(name for name, entry in new.items() if name in old and old[name] != entry),
        tuple(name for name in old if name not in new),
    )
