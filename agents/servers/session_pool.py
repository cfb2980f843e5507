"""The MCP sessions of a program: one per run and server, on the background event loop.

A session must be left by the task that entered it, and callers run on several loops. So all sessions live on one
background loop, each owned by one task there.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from callsheet.agents.calls.call_context import LOOP, CallRequest, Permit, ask_of_caller, progress_of_caller
from callsheet.agents.calls.limits import Limits
from callsheet.agents.calls.tool_result import Fault, KeptResults, Outcome, failed, outcome_of
from callsheet.agents.servers.catalogs.listings import Listing, late_ones_named
from callsheet.agents.servers.catalogs.server_resources import read_outcome, read_request
from callsheet.agents.servers.circuit_breaker import Circuits
from callsheet.agents.servers.oauth.addresses import page_hint
from callsheet.agents.servers.session import Session
from callsheet.graphs.catalog.errors import CallsheetError
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.text.sanitizing import clean

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


_LAST_GOODBYE = 8.0
_BETWEEN_WAVES = 3.0


class SessionPool:
    """The sessions of a program; safe from any thread and any event loop.

    Args:
        limits: Limits of every exchange.
        environ: Variables for ``${VAR}``; by default the environment of the process.
        results: Stores media and long results.
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        environ: Mapping[str, str] | None = None,
        results: KeptResults | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.circuits = Circuits(self.limits)
        self.results = results or KeptResults()
        self._environ = os.environ if environ is None else environ
        self._open = OpenSessions(self.limits, self._environ, self._listed)
        self._watchers: list[Listed] = []
        self._turns = asyncio.Semaphore(self.limits.calls)
        self._server_turns: dict[str, asyncio.Semaphore] = {}
        self._held: Counter[str] = Counter()
        self._paused: set[str] = set()
        self._lock = threading.Lock()

    def watch(self, watcher: Listed) -> None:
        """Calls back with every answer of a server to ``tools/list`` in a run; the callback must return quickly."""
        self._watchers.append(watcher)

    async def list_tools(self, server: ServerConfig) -> Listing:
        """Starts a server, lists its tools and stops it; an error is in the listing. An A2A agent's card is read."""
        return await LOOP.awaited(self._list(server))

    def list_all(self, servers: Mapping[str, ServerConfig]) -> dict[str, Listing]:
        """Lists several servers in parallel, and blocks until all have answered or failed."""
        return LOOP.blocking(self._list_all(servers))

    async def call(
        self,
        run_id: str,
        agent_id: str,
        server: ServerConfig,
        tool: str,
        args: Mapping[str, Any],
        *,
        repeatable: bool = False,
        permit: Permit = lambda: "",
        reads: bool = False,
    ) -> Outcome:
        """Calls a tool in the run's session with its server, which is started or replaced as necessary.

        Args:
            run_id: The run that owns the session.
            agent_id: Id of the server.
            server: Its configuration.
            tool: The server's own name of the tool.
            args: The arguments.
            repeatable: Whether two calls have the same effect as one. A call with a broken connection is sent again, in
                a new session, only if it is repeatable or certainly did not run.
            permit: The final check.
            reads: Whether ``tool`` is a resource, a template or a prompt (``server_resources``), to be read.

        Raises:
            CancelledError: The caller was cancelled; the session is closed then.
        """
        waiting = progress_of_caller(), ask_of_caller()
        request = CallRequest(run_id, agent_id, server, tool, args, repeatable, permit, reads, *waiting)
        return await LOOP.awaited(self._call(request))

    def call_blocking(
        self,
        run_id: str,
        agent_id: str,
        server: ServerConfig,
        tool: str,
        args: Mapping[str, Any],
        *,
        repeatable: bool = False,
        permit: Permit = lambda: "",
        reads: bool = False,
    ) -> Outcome:
        """As ``call``, for callers without an event loop."""
        request = CallRequest(run_id, agent_id, server, tool, args, repeatable, permit, reads)
        return LOOP.blocking(self._call(request))

    @contextmanager
    def held(self, run_id: str) -> Iterator[None]:
        """Keeps the sessions of a run open while a part of it is at work, and for three seconds after that.

        A run ends its sessions itself (``close_run``), unless it is cancelled or dies between two steps. A run that is
        interrupted to ask a person keeps its sessions until they are idle for too long; when it resumes, its servers
        are listed again before any call.
        """
        from langgraph.errors import GraphBubbleUp

        with self._lock:
            self._held[run_id] += 1
            resumed = run_id in self._paused
            self._paused.discard(run_id)
        wait: float | None = 0.0
        try:
            if resumed:
                # Later calls queue behind this and wait for the listings.
                LOOP.submit(self._open.relist(run_id))
            yield
            wait = _BETWEEN_WAVES
        except GraphBubbleUp:
            wait = None
            raise
        finally:
            self._let_go(run_id, wait)

    async def settled(self, run_id: str, agents: Collection[str]) -> None:
        """Waits until pending listings of these servers in a run have been passed to all watchers."""
        if self._open.any:
            await LOOP.awaited(self._open.settled(run_id, agents))

    async def close_run(self, run_id: str) -> None:
        """Ends the sessions of one run, and waits until their processes have ended."""
        if self._open.any:
            await LOOP.awaited(self._open.close(run_id))

    def close(self, run_id: str | None = None) -> None:
        """As ``close_run`` for callers without an event loop; without a run, ends all sessions."""
        if self._open.any:
            LOOP.blocking(self._open.close(run_id), _LAST_GOODBYE)

    def _listed(self, agent_id: str, server: ServerConfig, listing: Listing, user: str) -> None:
        for watcher in self._watchers:
            watcher(agent_id, server, listing, user)

    def _let_go(self, run_id: str, wait: float | None) -> None:
        with self._lock:
            self._held[run_id] -= 1
            if not self._held[run_id]:
                del self._held[run_id]
            if wait is None:
                self._paused.add(run_id)
        if wait is not None and self._open.any:
            LOOP.submit(self._close_unheld(run_id, wait))

    async def _close_unheld(self, run_id: str, wait: float) -> None:
        await asyncio.sleep(wait)
        with self._lock:
            in_use = run_id in self._held or (wait > 0 and run_id in self._paused)
        if not in_use:
            await self._open.close(run_id)

    async def _list_all(self, servers: Mapping[str, ServerConfig]) -> dict[str, Listing]:
        gate = asyncio.Semaphore(self.limits.starts)

        async def one(server: ServerConfig) -> Listing:
            async with gate:
                return await self._list(server)

        tasks = {name: asyncio.create_task(one(server)) for name, server in servers.items()}
        try:
            with late_ones_named(tasks):
                listings = await asyncio.gather(*tasks.values())
        finally:
            await self._open.gone()
        return dict(zip(servers, listings, strict=True))

    async def _list(self, server: ServerConfig) -> Listing:
        began = time.monotonic()
        try:
            listing = await (self._card(server) if server.transport == "a2a" else self._greeted(server))
        except CallsheetError as error:
            return Listing(error=str(error), kind="start")
        except Fault as fault:
            listing = Listing(error=str(fault), kind=fault.kind)
        return replace(listing, seconds=time.monotonic() - began)

    async def _greeted(self, server: ServerConfig) -> Listing:
        session = self._open.alone(server)
        try:
            return await session.listing()
        finally:
            self._open.end(session)

    async def _card(self, server: ServerConfig) -> Listing:
        from callsheet.agents.servers.a2a.agent import read_card

        return await read_card(server, self.limits, self._environ)

    async def _call(self, request: CallRequest) -> Outcome:
        began, agent_id = time.monotonic(), request.agent_id
        try:
            request = replace(request, args=clean(dict(request.args)))
            json.dumps(request.args, allow_nan=False, default=str)
        except CallsheetError as error:
            return failed(agent_id, request.tool, "refused", f"the arguments are {error}")
        except ValueError:  # it would be sent as null
            return failed(
                agent_id, request.tool, "refused", "the arguments contain a number that JSON does not support"
            )
        async with self._server_turn(request), self._turns:
            if why := self.circuits.barred(agent_id):
                return failed(agent_id, request.tool, "refused", why)
            try:
                outcome, again = await self._asked(request)
                if again:
                    outcome, _ = await self._asked(request)
            except BaseException:
                self.circuits.given_up(agent_id)
                raise
            self.circuits.told(agent_id, outcome)
        return replace(outcome, seconds=time.monotonic() - began)

    def _server_turn(self, request: CallRequest) -> asyncio.Semaphore:
        """The semaphore of one server, which may have its own limit."""
        if (turns := self._server_turns.get(request.agent_id)) is None:
            most = request.server.callsheet.limits.get("server_calls", self.limits.server_calls)
            turns = self._server_turns[request.agent_id] = asyncio.Semaphore(max(1, int(most)))
        return turns

    async def _asked(self, request: CallRequest) -> tuple[Outcome, bool]:
        """The outcome of a call, and whether it may be sent again."""
        sent = False
        try:
            key = (request.run_id, request.agent_id, request.user)
            session = await self._open.ready(key, request.server, asks=request.ask is not None)
            if why := request.permit():
                return failed(request.agent_id, request.tool, "refused", why), False
            limits = session.limits.own(request.server.callsheet.tools.get(request.tool, {}))
            sent = True
            call = "tools/call", {"name": request.tool, "arguments": request.args}
            method, params = read_request(request.tool, request.args) if request.reads else call
            result = await session.ask(method, params, limits.call, request.progress, request.ask)
        except Fault as fault:
            effect = fault.effect if sent else "none"
            hint = page_hint(request.agent_id) if fault.kind == "sign_in" else ""
            outcome = failed(request.agent_id, request.tool, fault.kind, f"{fault}{hint}", effect)
            # A server that crashed, or one that restarted and lost the session.
            return outcome, fault.kind == "crash" and (effect == "none" or request.repeatable)
        except CallsheetError as error:
            return failed(request.agent_id, request.tool, "start", str(error)), False
        keep = self.results.of(request.run_id, request.agent_id, request.tool)
        convert = read_outcome if request.reads else outcome_of
        read: Callable[[Any], Outcome] = partial(convert, request.agent_id, request.tool, limits=limits, keep=keep)
        try:
            outcome = await asyncio.to_thread(read, result)  # media and long texts are written to files
        except Exception as error:  # noqa: BLE001 (the call was made: whatever is wrong with its result, it is data)
            why = f"it ran, and its result could not be read: {type(error).__name__}: {error}"
            outcome = failed(request.agent_id, request.tool, "protocol", why, "reported")
        return replace(outcome, error=session.hidden(outcome.error)), False


def beside_sessions(work: Coroutine[Any, Any, None]) -> None:
    """Runs work on the loop of all sessions, and blocks; its calls of tools change no threads."""
    LOOP.blocking(work)


@atexit.register
def _close_all() -> None:
    """Ends all servers with this process; those that do not end are killed by their sessions."""
    if LOOP.started and any_live():
        with suppress(TimeoutError, CancelledError):
            LOOP.blocking(end_all(), _LAST_GOODBYE)
