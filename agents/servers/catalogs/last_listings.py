"""Stores the last answers and failures of servers, and decides how long an answer is used."""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from pydantic import BaseModel

from callsheet.agents.calls.outcome import Kind
from callsheet.agents.servers.catalogs.listings import Listing, clean_entries
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.storage import StoredFile, cache_file, file_named
from callsheet.graphs.text.credentials import is_secret_name
from callsheet.graphs.text.unicode import clean

_PAUSES = 10.0
_LEAST_PAUSE = 60.0
_LONGEST_PAUSE = 86_400.0
_MINUTES = 90.0
_LISTED = ("tools", "resources", "skills")
_TEXTS = ("missing", "name", "description", "instructions")
_HINTS = ("fresh", "public")
_STORED = (*_LISTED, *_TEXTS, *_HINTS)
_DIGITS = 8
"""Hexadecimal digits that tell two sign-ins apart: too few to try out what the secret was."""


class _Failure(BaseModel):
    reached: str
    number: int
    since: float
    until: float
    error: str
    kind: Kind


class LastListings:
    """Stores the last answer of every server, in a file for each, in the shared store or in the user's cache.

    Later failures are stored in ``failures``. After a failure, the server is not asked again for ten times the duration
    of the attempt, and for at least a minute if it did not answer; each further failure doubles this pause, up to a
    day.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def keep(self, agent_id: str, server: ServerConfig, listing: Listing) -> None:
        """Stores an answer atomically and deletes earlier failures; errors of the storage are ignored."""
        content = {name: getattr(listing, name) for name in _STORED}
        with suppress(OSError):
            about = {"agent": agent_id, "reached": _entry_digest(server), "whose": _whose(server)}
            text = json.dumps({**about, **content})
            self._file(agent_id, server).replace(text.encode())
            self.recovered(agent_id, server)

    def keep_later(self, agent_id: str, server: ServerConfig, listing: Listing) -> None:
        """Stores what a server listed in the middle of a run, so that a person can review it."""
        with suppress(OSError):
            lists = {"tools": listing.tools, "skills": listing.skills}
            content = json.dumps({"reached": _entry_digest(server), **lists})
            self._file(agent_id, server, "later").replace(content.encode())

    def later(self, agent_id: str, server: ServerConfig) -> Listing | None:
        """Returns the tools and skills that ``keep_later`` stored last.

        None if there are none, or if the entry of the server has changed since.
        """
        try:
            stored = json.loads(self._file(agent_id, server, "later").text())
            if stored["reached"] != _entry_digest(server):
                return None
            tools = tuple(clean_entries(stored["tools"]))
            return Listing(tools=tools, skills=tuple(clean_entries(stored["skills"])))
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def recovered(self, agent_id: str, server: ServerConfig) -> None:
        """Deletes the stored failures of a server."""
        with suppress(OSError):
            if (file := self._file(agent_id, server, "failures")).version():
                file.remove()

    def fail(self, agent_id: str, server: ServerConfig, failed: Listing) -> None:
        """Stores another failure of a server; errors of the storage are ignored."""
        before = self._failed(agent_id, server)
        number = before.number + 1 if before else 1
        pause = _PAUSES * failed.seconds
        if failed.kind == "timeout":
            pause = max(pause, _LEAST_PAUSE)
        elif failed.kind == "busy":
            pause = 0.0  # it has said itself when it can be asked
        now = time.time()
        until = now + min(_LONGEST_PAUSE, pause * 2 ** min(number - 1, 30))
        new = {"reached": _entry_digest(server), "number": number, "since": now, "until": until}
        with suppress(OSError):
            text = json.dumps({**new, "error": failed.error, "kind": failed.kind})
            self._file(agent_id, server, "failures").replace(text.encode())

    def failure(self, agent_id: str, server: ServerConfig) -> tuple[Listing, float] | None:
        """Returns the last failure, with the seconds until the server may be asked again; None if it has answered."""
        failure = self._failed(agent_id, server)
        if failure is None:
            return None
        left = max(0.0, failure.until - time.time())
        why = failure.error
        if left:
            ago = _duration(time.time() - failure.since)
            why = f"{why}\nIt failed {ago} ago, and is asked again in {_duration(left)}; `callsheet sync` asks it now"
        return Listing(error=why, kind=failure.kind, when="failed"), left

    def _failed(self, agent_id: str, server: ServerConfig) -> _Failure | None:
        try:
            known = _Failure.model_validate_json(self._file(agent_id, server, "failures").text())
        except (OSError, ValueError):
            return None
        return known if known.reached == _entry_digest(server) else None

    def last(self, agent_id: str, server: ServerConfig, *, within: float | None = None) -> Listing | None:
        """Returns the last answer of a server; None if none is stored or readable, or if it was for somebody else.

        With ``within``, the answer must still hold: at most this many seconds old, no older than its server allows, and
        for the same variables and headers.
        """
        try:
            file = self._file(agent_id, server)
            age = time.time() - file.modified()
            stored = json.loads(file.text())
            said, is_public = (stored[name] for name in _HINTS)
            if not is_public and _whose(server) not in (stored["whose"], ""):
                return None
            if within is not None and not 0 <= age < lifetime(server, said, within):
                return None
            if within is not None and stored["reached"] != _entry_digest(server):
                return None
            tools, resources, skills = (tuple(clean_entries(stored[name])) for name in _LISTED)
            texts = clean({name: stored[name] for name in _TEXTS})
            when = datetime.fromtimestamp(file.modified(), UTC).isoformat(timespec="seconds")
            return Listing(tools, resources, skills, **texts, when=when, fresh=said, public=is_public)
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return None

    def _file(self, agent_id: str, server: ServerConfig, folder: str = "listings") -> StoredFile:
        """Returns the file of a server entry: each has its own, so that a new command inherits no answer."""
        reached = [agent_id, server.transport, server.command, *server.args, server.cwd, server.url, server.openapi]
        name = f"{hashlib.sha256(json.dumps(reached).encode()).hexdigest()[:32]}.json"
        own = self._folder and self._folder / folder.removeprefix("listings")
        return cache_file(f"{folder}/{name}") if own is None else file_named(own / name)


def lifetime(server: ServerConfig, said: float | None, most: float) -> float:
    """Returns for how many seconds the last answer of a server is used.

    It is what the server said (``ttlMs``), at most ``most``. If it said nothing, it is ``most``. So it is if a local
    program said 0, which libraries send for authors who say nothing: to ask it again means to start it.
    """
    if said is None or (said == 0 and server.transport == "stdio"):
        return most
    return min(said, most)


def _whose(server: ServerConfig) -> str:
    """Returns a short digest of the values by which a server knows who asks; empty if one of them is not set.

    An answer that its server restricts to whoever asked (``cacheScope``) is used for the same values only.
    """
    try:
        expanded = server.expanded(os.environ)
    except CatalogError:
        return ""
    env = {name: value for name, value in expanded.env.items() if is_secret_name(name) or value != server.env[name]}
    values = json.dumps([expanded.url, expanded.args, expanded.headers, env], sort_keys=True)
    return hashlib.sha256(values.encode()).hexdigest()[:_DIGITS]


def _entry_digest(server: ServerConfig) -> str:
    entry = server.model_dump(mode="json", include={"transport", "command", "args", "env", "cwd", "url", "headers"})
    return hashlib.sha256(json.dumps(entry, sort_keys=True).encode()).hexdigest()


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds > _MINUTES else f"{max(0.0, seconds):.0f} s"
