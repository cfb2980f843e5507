"""MCP behind one door: persistent sessions, one per run and server, on a loop of their own.

A session must be left by the task that entered it, and callers run on several loops; so all
sessions live on one background loop, each owned by one task there.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import time
from collections.abc import Mapping
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from callsheet.agents.background import BackgroundLoop
from callsheet.agents.calls import Fault, Kind, Limits, Outcome, failed, outcome_of
from callsheet.agents.session import Session
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.mcp import ServerConfig, clean

__all__ = ["Limits", "Listing", "Outcome", "SessionPool"]

_LOOP = BackgroundLoop("callsheet-mcp")
_LAST_GOODBYE = 8.0
_LIVE: set[Session] = set()


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


class SessionPool:
    """The sessions of a program; safe from any thread and any event loop.

    Args:
        limits: Bounds of time and size of every exchange.
        idle: Seconds without a call after which a session is closed.
        environ: Where ``${VAR}`` of a server is looked up; the process's own environment by default.
    """

    def __init__(
        self, *, limits: Limits | None = None, idle: float = 300.0, environ: Mapping[str, str] | None = None
    ) -> None:
        self.limits = limits or Limits()
        self._idle = idle
        self._environ = os.environ if environ is None else environ
        self._sessions: dict[tuple[str, str], Session] = {}
        self._ending: set[Session] = set()

    async def list_tools(self, server: ServerConfig) -> Listing:
        """Starts a server, lists its tools and stops it; a failure is in the listing, not raised."""
        return await _LOOP.awaited(self._list(server))

    def list_all(self, servers: Mapping[str, ServerConfig], *, at_once: int = 8) -> dict[str, Listing]:
        """Lists several servers side by side and blocks until all have answered or failed.

        Args:
            servers: By agent id.
            at_once: How many start at the same time; each has its own time limit.
        """
        return _LOOP.blocking(self._list_all(servers, at_once))

    async def call(
        self, run_id: str, agent_id: str, server: ServerConfig, tool: str, args: Mapping[str, Any]
    ) -> Outcome:
        """Calls a tool in the run's session with its server, which is started or replaced as needed.

        Raises:
            CancelledError: The caller was cancelled; the session is closed then.
        """
        return await _LOOP.awaited(self._call(run_id, agent_id, server, tool, args))

    def call_blocking(
        self, run_id: str, agent_id: str, server: ServerConfig, tool: str, args: Mapping[str, Any]
    ) -> Outcome:
        """As ``call``, for callers without an event loop."""
        return _LOOP.blocking(self._call(run_id, agent_id, server, tool, args))

    async def close_run(self, run_id: str) -> None:
        """Ends the sessions of one run and waits until their processes are gone."""
        if self._sessions or self._ending:
            await _LOOP.awaited(self._close(run_id))

    def close(self, run_id: str | None = None) -> None:
        """As ``close_run`` for callers without an event loop; without a run, ends all sessions."""
        if self._sessions or self._ending:
            _LOOP.blocking(self._close(run_id), _LAST_GOODBYE)

    async def _list_all(self, servers: Mapping[str, ServerConfig], at_once: int) -> dict[str, Listing]:
        gate = asyncio.Semaphore(at_once)

        async def one(server: ServerConfig) -> Listing:
            async with gate:
                return await self._list(server)

        try:
            listings = await asyncio.gather(*map(one, servers.values()))
        finally:
            await self._gone()
        return dict(zip(servers, listings, strict=True))

    async def _list(self, server: ServerConfig) -> Listing:
        began = time.monotonic()
        try:
            session = self._opened(server)
        except CatalogError as error:
            return Listing(error=str(error), kind="start")
        try:
            tools, client = await session.listing()
            about = client.server_info
            listing = Listing(
                tools=tuple(clean(tools)),
                name=(about.title or about.name) if about else "",
                version=about.version if about else "",
                description=getattr(about, "description", None) or "",
                instructions=client.session.instructions or "",
            )
        except Fault as fault:
            listing = Listing(error=str(fault), kind=fault.kind)
        finally:
            self._end(session)
        return replace(listing, seconds=time.monotonic() - began)

    async def _call(
        self, run_id: str, agent_id: str, server: ServerConfig, tool: str, args: Mapping[str, Any]
    ) -> Outcome:
        began = time.monotonic()
        try:
            params = {"name": tool, "arguments": clean(dict(args))}
            session, result = await self._ask((run_id, agent_id), server, params)
            outcome = outcome_of(agent_id, tool, result, self.limits)
            outcome = replace(outcome, error=session.hidden(outcome.error))
        except Fault as fault:
            outcome = failed(agent_id, tool, fault.kind, str(fault))
        except CatalogError as error:
            outcome = failed(agent_id, tool, "start", str(error))
        return replace(outcome, seconds=time.monotonic() - began)

    async def _ask(
        self, key: tuple[str, str], server: ServerConfig, params: Mapping[str, Any]
    ) -> tuple[Session, dict[str, Any]]:
        session = self._session(key, server)
        fresh = session.fresh
        try:
            return session, await session.ask("tools/call", params, self.limits.call)
        except Fault as fault:
            if fresh or not fault.unsent:
                raise
        # A restarted HTTP server refuses a session of its former life before it runs anything.
        session = self._session(key, server)
        return session, await session.ask("tools/call", params, self.limits.call)

    def _session(self, key: tuple[str, str], server: ServerConfig) -> Session:
        found = self._sessions.get(key)
        if found is not None and not found.retired and found.server == server:
            return found
        if found is not None:
            found.retire()
            self._ending.add(found)
        self._ending = {session for session in self._ending if not session.gone}
        self._sessions = {known: session for known, session in self._sessions.items() if not session.gone}
        self._sessions[key] = self._opened(server, self._idle)
        return self._sessions[key]

    def _opened(self, server: ServerConfig, idle: float | None = None) -> Session:
        session = Session(server, self._environ, self.limits, idle)
        _LIVE.add(session)
        session.when_gone(_LIVE.discard)
        return session

    def _end(self, session: Session) -> None:
        self._ending.add(session)
        session.end()

    async def _close(self, run_id: str | None) -> None:
        for key in [key for key in self._sessions if run_id in (None, key[0])]:
            self._end(self._sessions.pop(key))
        await self._gone()

    async def _gone(self) -> None:
        ending = list(self._ending)
        await asyncio.gather(*(session.ended() for session in ending))
        self._ending.difference_update(ending)


@atexit.register
def _close_all() -> None:
    """No server outlives this process; those that will not go are killed by their sessions."""
    if _LOOP.started and _LIVE:
        with suppress(TimeoutError, CancelledError):
            _LOOP.blocking(_end_all(), _LAST_GOODBYE)


async def _end_all() -> None:
    live = list(_LIVE)
    for session in live:
        session.end()
    await asyncio.gather(*(session.ended() for session in live))
