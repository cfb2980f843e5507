"""The open sessions, one per run and server; all of them live on one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping

from callsheet.agents.servers.catalogs.listings import Listing
from callsheet.agents.servers.limits import Limits
from callsheet.agents.servers.session import Session
from callsheet.graphs.catalog.formats.server_config import ServerConfig

Key = tuple[str, str, str]
"""Run, agent and user."""
Listed = Callable[[str, ServerConfig, Listing, str], object]
"""Called with every answer of a server to ``tools/list``: agent, server, answer, and the user whom alone it is for."""
_MOST_RELISTINGS = 10
_LIVE: dict[Session, asyncio.AbstractEventLoop] = {}


class OpenSessions:
    """Opens sessions on demand, lists each before its first use, and ends them; passes each listing to ``listed``."""

    def __init__(self, limits: Limits, environ: Mapping[str, str], listed: Listed) -> None:
        self._limits, self._environ, self._listed = limits, environ, listed
        self._sessions: dict[Key, Session] = {}
        self._tellings: dict[Session, asyncio.Task[None]] = {}
        self._changed: set[Session] = set()
        self._ending: set[Session] = set()

    @property
    def any(self) -> bool:
        """Whether there are sessions."""
        return bool(self._sessions or self._ending)

    def runs(self) -> set[str]:
        """The runs with sessions."""
        return {run_id for run_id, _, _ in self._sessions}

    async def ready(self, key: Key, server: ServerConfig, *, asks: bool = False) -> Session:
        """The run's session with a server, started or replaced if necessary, after its tools are listed.

        A new session tells the server whether a person can be asked; with ``asks``, one can.

        Raises:
            Fault: It does not start, or does not list its tools.
            CatalogError: A variable of the server is not set.
        """
        session = self._session(key, server, asks=asks)
        await asyncio.shield(self._tellings[session])
        return session

    async def relist(self, run_id: str) -> None:
        """Lists the tools of a run's servers again, before any other request to them."""
        for key, session in self._sessions.items():
            if key[0] == run_id and not session.retired and self._tellings[session].done():
                self._tell(key, session)

    async def settled(self, run_id: str, agents: Collection[str]) -> None:
        """Waits for pending listings of a run's sessions; their errors are raised by ``ready``."""
        found = [session for (run, agent, _), session in self._sessions.items() if run == run_id and agent in agents]
        tellings = [self._tellings.get(session) for session in found]
        if pending := [telling for telling in tellings if telling and not telling.done()]:
            await asyncio.wait(pending)

    def alone(self, server: ServerConfig) -> Session:
        """A session without a run."""
        return self._opened(server, lambda: None, "")

    def end(self, session: Session) -> None:
        """Ends a session immediately."""
        self._ending.add(session)
        session.end()

    async def close(self, run_id: str | None) -> None:
        """Ends the sessions of a run, or all, and waits until their processes have ended."""
        for key in [key for key in self._sessions if run_id in (None, key[0])]:
            self.end(self._sessions.pop(key))
        await self.gone()

    async def gone(self) -> None:
        """Waits until all ending sessions have ended."""
        ending = list(self._ending)
        await asyncio.gather(*(session.ended() for session in ending))
        self._ending.difference_update(ending)

    def _session(self, key: Key, server: ServerConfig, *, asks: bool) -> Session:
        found = self._sessions.get(key)
        if found is not None and not found.retired and found.server == server:
            return found
        if found is not None:
            found.retire()
            self._ending.add(found)
        self._ending = {session for session in self._ending if not session.gone}
        self._sessions = {known: session for known, session in self._sessions.items() if not session.gone}
        session = self._opened(server, lambda: self._heard(key, session), key[2], asks=asks)
        session.idle = True
        self._sessions[key] = session
        self._tell(key, session)
        return session

    def _opened(self, server: ServerConfig, changed: Callable[[], object], user: str, *, asks: bool = False) -> Session:
        if server.transport == "openapi":
            from callsheet.agents.servers.http_api.api_session import ApiSession

            session: Session = ApiSession(server, self._environ, self._limits, changed, user)
        else:
            session = Session(server, self._environ, self._limits, changed, user, asks=asks)
        _LIVE[session] = asyncio.get_running_loop()
        session.when_gone(self._forget)
        return session

    def _forget(self, session: Session) -> None:
        _LIVE.pop(session, None)
        self._tellings.pop(session, None)
        self._changed.discard(session)

    def _heard(self, key: Key, session: Session) -> None:
        """The server announces that its tools have changed."""
        self._changed.add(session)
        if (telling := self._tellings.get(session)) is not None and telling.done() and not session.retired:
            self._tell(key, session)

    def _tell(self, key: Key, session: Session) -> None:
        task = asyncio.create_task(self._told(key, session))
        # ``ready`` raises its error; nobody may be waiting any more.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._tellings[session] = task

    async def _told(self, key: Key, session: Session) -> None:
        for _ in range(_MOST_RELISTINGS):
            self._changed.discard(session)
            listing = await session.listing()
            # In a thread: comparing and searching a listing takes time, and other sessions go on.
            user = key[2] if session.personal else ""
            await asyncio.to_thread(self._listed, key[1], session.server, listing, user)
            if session not in self._changed:
                return


async def end_all() -> None:
    """Ends all sessions on the running event loop and waits until they have ended; others cannot be ended from it."""
    loop = asyncio.get_running_loop()
    live = [session for session, own in list(_LIVE.items()) if own is loop]
    for session in live:
        session.end()
    await asyncio.gather(*(session.ended() for session in live))


def any_live() -> bool:
    """Whether this process has a session."""
    return bool(_LIVE)
