"""The MCP sessions of a program: one per run and server, each owned by one task of the background event loop.

Because a local server takes seconds to start, it waits after its run for the next run of the same user, which lists its
tools again before any call.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakSet

from callsheet.agents.calls.call_context import LOOP, Asks, CallRequest, Limits, Permit, ReadsAnswer, TaskCall
from callsheet.agents.calls.credentials import Caller, Credentials
from callsheet.agents.calls.outcome import Fault, Outcome, failed_outcome
from callsheet.agents.calls.tool_result import KeptResults, outcome_of
from callsheet.agents.servers.catalogs.listings import PATIENCE, Listing, read_request
from callsheet.agents.servers.circuits import Circuits
from callsheet.agents.servers.faults import cleaned_request, failed_call
from callsheet.agents.servers.server_tasks import TaskFollower, TaskState, unfinished_outcome
from callsheet.agents.servers.session import Session
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.errors import CallsheetError
from callsheet.graphs.text.hidden import shown

Key = tuple[str, str, str]
"""A key of a session: run, agent and user (``Caller.key``)."""
_WAITING = "\0waiting"
"""In the place of a run: the session waits for another run of its agent and user."""
Listed = Callable[[str, ServerConfig, Listing, str], object]
"""A callback for answers to ``tools/list``: agent, server, answer, and the user to whom the answer is restricted."""
LATE = 10.0
"""Seconds after which the log names servers that have not answered yet."""
_LOG = logging.getLogger(__name__)
_MOST_RELISTINGS = 10
_MOST_NAMED = 5
_LAST_GOODBYE = 8.0
_BETWEEN_WAVES = 3.0
_LIVE: WeakSet[Session] = WeakSet()


@dataclass(frozen=True, slots=True)
class _ReadyCall:
    """A call that may be sent now."""

    session: Session
    method: str
    params: Mapping[str, object]
    limits: Limits


class SessionPool:
    """The sessions of a program, safe from any thread and event loop. ``results`` stores media and long results."""

    def __init__(self, *, limits: Limits | None = None, results: KeptResults | None = None) -> None:
        self.limits = limits or Limits()
        self.circuits = Circuits(self.limits)
        self.results = results or KeptResults()
        self._watchers: list[Listed] = []
        self._turns = asyncio.Semaphore(self.limits.calls)
        self._server_turns: dict[str, asyncio.Semaphore] = {}
        self._held: Counter[str] = Counter()
        self._paused: set[str] = set()
        self._lock = threading.Lock()
        # Only the loop of the sessions changes these.
        self._sessions: dict[Key, Session] = {}
        self._ending: set[Session] = set()

    def watch(self, watcher: Listed) -> None:
        """Calls ``watcher`` with every answer of a server to ``tools/list`` in a run; it must return quickly."""
        self._watchers.append(watcher)

    async def list_tools(self, server: ServerConfig) -> Listing:
        """Starts a server, lists its tools and stops it; an error becomes a part of the listing."""
        return await LOOP.awaited(self._list(server))

    def list_all(
        self,
        servers: Mapping[str, ServerConfig],
        *,
        hurried: Collection[str] = (),
        heard: Callable[[str, Listing], object] = lambda name, listing: None,
    ) -> dict[str, Listing]:
        """Lists several servers in parallel, and blocks until all have answered or failed.

        Those in ``hurried`` have ``PATIENCE`` seconds together. ``heard`` is called with each answer as it comes, in a
        thread.
        """
        return LOOP.blocking(self._list_all(servers, hurried, heard))

    def call(
        self,
        run_id: str,
        agent_id: str,
        server: ServerConfig,
        tool: str,
        args: Mapping[str, object],
        *,
        repeatable: bool = False,
        harmless: bool = False,
        permit: Permit = lambda: None,
        reads: ReadsAnswer | None = None,
    ) -> Coroutine[Any, Any, Outcome]:
        """Calls a tool in the run's session with its server, which is started or replaced as necessary.

        A call is sent again once, if it is ``repeatable`` or ``harmless``, or certainly did not run: in a new session
        if the connection broke; or when a server that was busy says, if that is within ten seconds. ``permit`` is the
        final check. With ``reads``, ``tool`` is a resource, a template or a prompt, to be read.

        Raises:
            CancelledError: The caller was cancelled; the session is closed then.
        """
        request = CallRequest(run_id, agent_id, server, tool, args, repeatable, permit, reads, harmless=harmless)
        return LOOP.awaited(self._call(request))

    def follow(
        self, run_id: str, agent_id: str, server: ServerConfig, tool: str, task: TaskCall
    ) -> Coroutine[Any, Any, Outcome]:
        """Waits for the end of a task as which a server works on an earlier call, and returns the outcome of the call.

        Raises:
            CancelledError: The caller was cancelled; the server has been asked to cancel the task.
        """
        request = CallRequest(run_id, agent_id, server, tool, {}, repeatable=True, permit=lambda: None, task=task)
        return LOOP.awaited(self._picked_up(request, task))

    @contextmanager
    def held(self, run_id: str) -> Iterator[None]:
        """Keeps the sessions of a run open within the block, and for three seconds after it.

        A run closes its sessions itself (``close_run``), unless it is cancelled or dies between two steps. A run that
        is interrupted to ask a person keeps its sessions until they have been idle for too long; when it resumes, its
        servers are listed again before any call.
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
                LOOP.submit(self._relist(run_id))
            yield
            wait = _BETWEEN_WAVES
        except GraphBubbleUp:
            wait = None
            raise
        finally:
            with self._lock:
                self._held[run_id] -= 1
                if not self._held[run_id]:
                    del self._held[run_id]
                if wait is None:
                    self._paused.add(run_id)
            if wait is not None and self._any:
                LOOP.submit(self._close_unheld(run_id, wait))

    async def settled(self, run_id: str, agents: Collection[str]) -> None:
        """Waits until pending listings of these servers in a run have been passed to all watchers."""
        if self._any:
            await LOOP.awaited(self._settled(run_id, agents))

    async def close_run(self, run_id: str) -> None:
        """Ends the sessions of one run and waits for their processes; ``reusable`` sessions are kept."""
        if self._any:
            await LOOP.awaited(self._close(run_id))

    def close(self, run_id: str | None = None) -> None:
        """Ends sessions as ``close_run`` does, for callers without an event loop; without a run, ends all of them."""
        if self._any:
            LOOP.blocking(self._close(run_id), _LAST_GOODBYE)

    def cool(self) -> None:
        """Ends the sessions that are kept for other runs, without waiting; for example after a change of the policy."""
        if self._sessions:
            LOOP.submit(self._cool())

    @property
    def _any(self) -> bool:
        return bool(self._sessions or self._ending)

    async def _ready(self, key: Key, server: ServerConfig, caller: Caller, *, asks: Asks = "") -> Session:
        """Returns the run's session with a server after its tools are listed; starts or replaces it if necessary."""
        session = self._sessions.get(key)
        if session is None or session.retired or (session.server, session.caller) != (server, caller):
            if session is not None:
                session.retire()
                self._ending.add(session)
            self._forget_lost()
            session = self._waiting(server, key, asks=asks) or self._opened(server, key, caller, asks=asks)
            self._sessions[key] = session
        try:
            await asyncio.shield(session.telling)
        except Fault:
            if not session.reused:
                raise
            session.hang_up()  # it died, or hangs, since its last run
            return await self._ready(key, server, caller, asks=asks)
        return session

    def _waiting(self, server: ServerConfig, key: Key, *, asks: Asks) -> Session | None:
        """Returns a session of an earlier run of the same user; ends one that was started differently."""
        waiting = (_WAITING, *key[1:])
        session = self._sessions.get(waiting)
        if session is None or session.asks != asks:
            return None
        del self._sessions[waiting]
        if not session.fits(server):
            self._end(session)
            return None
        session.reused = True
        self._tell(key, session)
        return session

    def _forget_lost(self) -> None:
        """Drops sessions that have ended, and after a fork those of the parent process."""
        here = asyncio.get_running_loop()
        self._ending = {one for one in self._ending if not one.gone}
        self._sessions = {key: one for key, one in self._sessions.items() if one.loop is here and not one.gone}

    def _opened(self, server: ServerConfig, key: Key, caller: Caller, *, asks: Asks) -> Session:
        def changed() -> None:
            session.outdated = True
            if session.telling.done() and not session.retired:
                self._tell(key, session)

        session = self._made(server, caller, changed, asks=asks)
        session.idle = True
        self._tell(key, session)
        return session

    def _made(
        self, server: ServerConfig, caller: Caller, changed: Callable[[], object] = lambda: None, *, asks: Asks = ""
    ) -> Session:
        kind: type[Session] = Session
        if server.transport == "openapi":
            from callsheet.agents.servers.http_api import ApiSession

            kind = ApiSession
        session = kind(server, self.limits, changed, caller, asks=asks)
        _LIVE.add(session)
        return session

    def _tell(self, key: Key, session: Session) -> None:
        async def tell() -> None:
            for _ in range(_MOST_RELISTINGS):
                session.outdated = False
                listing = await session.listing()
                user = key[2] if session.personal else ""
                for watcher in self._watchers:
                    # In a thread: comparing and searching a listing takes time, and other sessions go on.
                    await asyncio.to_thread(watcher, key[1], session.server, listing, user)
                if not session.outdated:
                    return

        session.telling = asyncio.create_task(tell())
        # ``_ready`` raises its error; nobody may be waiting any more.
        session.telling.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def _relist(self, run_id: str) -> None:
        """Lists the tools of a run's servers again, before any other request to them."""
        for key, session in self._sessions.items():
            if key[0] == run_id and not session.retired and session.telling.done():
                self._tell(key, session)

    async def _settled(self, run_id: str, agents: Collection[str]) -> None:
        """Waits for pending listings; their errors are raised by ``_ready``."""
        sessions = [one for (run, agent, _), one in self._sessions.items() if run == run_id and agent in agents]
        pending = [session.telling for session in sessions if not session.telling.done()]
        if pending:
            await asyncio.wait(pending)

    async def _close(self, run_id: str | None) -> None:
        self._forget_lost()
        for key in [key for key in self._sessions if run_id in (None, key[0])]:
            session = self._sessions.pop(key)
            waiting = (_WAITING, *key[1:])
            if run_id is None or not session.reusable:
                self._end(session)
                continue
            if waiting in self._sessions:
                self._end(self._sessions.pop(waiting))
            self._sessions[waiting] = session
        await self._cool(self.limits.warm)
        await self._gone()

    async def _cool(self, most: int = 0) -> None:
        """Ends all but the last of the sessions that wait for another run."""
        self._forget_lost()
        waiting = [key for key in self._sessions if key[0] == _WAITING]
        for key in waiting[: max(0, len(waiting) - most)]:
            self._end(self._sessions.pop(key))

    async def _close_unheld(self, run_id: str, wait: float) -> None:
        await asyncio.sleep(wait)
        with self._lock:
            in_use = run_id in self._held or (wait > 0 and run_id in self._paused)
        if not in_use:
            await self._close(run_id)

    def _end(self, session: Session) -> None:
        self._ending.add(session)
        session.end()

    async def _gone(self) -> None:
        """Waits until all ending sessions have ended."""
        ending = list(self._ending)
        await asyncio.gather(*(session.ended() for session in ending))
        self._ending.difference_update(ending)

    async def _list_all(
        self, servers: Mapping[str, ServerConfig], hurried: Collection[str], heard: Callable[[str, Listing], object]
    ) -> dict[str, Listing]:
        gate = asyncio.Semaphore(self.limits.starts)

        async def one(name: str, server: ServerConfig) -> Listing:
            async with gate:
                began = time.monotonic()
                try:
                    async with asyncio.timeout(PATIENCE if name in hurried else None):
                        listing = await self._list(server)
                except TimeoutError:
                    listing = Listing(error=f"no answer within {PATIENCE:g} s", kind="timeout")
                listing = replace(listing, seconds=time.monotonic() - began)
            await asyncio.to_thread(heard, name, listing)
            return listing

        tasks = {name: asyncio.create_task(one(name, server)) for name, server in servers.items()}
        timer = asyncio.get_running_loop().call_later(LATE, _name_late, tasks)
        try:
            listings = await asyncio.gather(*tasks.values())
        finally:
            timer.cancel()
            await self._gone()
        return dict(zip(servers, listings, strict=True))

    async def _list(self, server: ServerConfig) -> Listing:
        try:
            if server.transport == "a2a":
                from callsheet.agents.servers.a2a.agent import read_card

                return await read_card(server, self.limits)
            session = self._made(server, Credentials().of(server, partial=True))
            try:
                return await session.listing()
            finally:
                self._end(session)
        except CallsheetError as error:
            return Listing(error=str(error), kind="start")
        except Fault as fault:
            return Listing(error=str(fault), kind=fault.kind)

    async def _call(self, request: CallRequest) -> Outcome:
        began = time.monotonic()
        cleaned = cleaned_request(request)
        if isinstance(cleaned, Outcome):
            return cleaned
        request = cleaned
        wait: float | None = None
        for is_last in (False, True):
            if wait is not None:
                # Without a turn, which other calls may use meanwhile.
                await asyncio.sleep(wait)
            async with self._turns_of(request), self._turns:
                ready = await self._ready_call(request)
                if isinstance(ready, _ReadyCall):
                    limits = ready.limits
                    asked = (ready.method, ready.params, limits.call, request.progress, request.ask)
                    try:
                        result = await ready.session.ask(*asked, longest=limits.longest_call, asks=request.asks)
                        unfinished = None if request.reads else unfinished_outcome(ready.session, result)
                    except (Fault, CallsheetError) as error:
                        outcome, wait = failed_call(request, error, sent=True)
                    else:
                        wait = None
                        outcome = unfinished or await self._outcome(request, ready.session.hidden, limits, result)
                else:
                    outcome, wait = ready
            if wait is None or is_last:
                break
        if outcome.task and request.task is None:
            # Without a turn: how much a server does at once, it decides itself.
            outcome = await self._followed(request, TaskCall(outcome.task, outcome.interval))
        return self._counted(request, outcome, began)

    async def _picked_up(self, request: CallRequest, task: TaskCall) -> Outcome:
        began = time.monotonic()
        return self._counted(request, await self._followed(request, task), began)

    def _counted(self, request: CallRequest, outcome: Outcome, began: float) -> Outcome:
        """Returns the outcome of a call with its duration, after it was counted for its server."""
        self.circuits.told(request.circuit, outcome)
        return outcome.model_copy(update={"seconds": time.monotonic() - began})

    async def _followed(self, request: CallRequest, task: TaskCall) -> Outcome:
        """Returns the outcome of a call on which its server works as a task, when the task has ended."""
        key = (request.run_id, request.agent_id, request.caller.key)
        server = request.server.callsheet
        ready = partial(self._ready, key, request.server, request.caller, asks=request.asks)
        try:
            limits = self.limits.own(server.limits).own(server.tools.get(request.tool, {}))
            follower = TaskFollower(ready, limits, request.progress, request.ask, task)
            result = await follower.result(TaskState.known(task))
        except (Fault, CallsheetError) as error:
            return failed_call(request, error, sent=True)[0]
        if isinstance(result, Outcome):
            return result
        return await self._outcome(request, follower.hidden, limits, result)

    def _turns_of(self, request: CallRequest) -> asyncio.Semaphore:
        """Returns the semaphore for the concurrent calls of a server."""
        agent_id = request.agent_id
        if agent_id not in self._server_turns:
            most = request.server.callsheet.limits.get("server_calls", self.limits.server_calls)
            self._server_turns[agent_id] = asyncio.Semaphore(max(1, int(most)))
        return self._server_turns[agent_id]

    async def _ready_call(self, request: CallRequest) -> _ReadyCall | tuple[Outcome, float | None]:
        """Returns a call that may be sent now, with its session.

        Otherwise the outcome of the call, and after how many seconds it may be tried again, or None.
        """
        agent_id = request.agent_id
        tool = request.tool
        refusal = self.circuits.refusal(request.circuit)
        if refusal:
            return failed_outcome(agent_id, tool, "refused", refusal.reason), None
        try:
            key = (request.run_id, agent_id, request.caller.key)
            session = await self._ready(key, request.server, request.caller, asks=request.asks)
            refusal = request.permit()
            if refusal:
                return failed_outcome(agent_id, tool, "refused", refusal.reason), None
            limits = session.limits.own(request.server.callsheet.tools.get(tool, {}))
            if request.reads:
                method, params = read_request(tool, request.args)
                return _ReadyCall(session, method, params, limits)
        except (Fault, CallsheetError) as error:
            return failed_call(request, error, sent=False)
        params = {"name": tool, "arguments": request.args, **(request.task.params if request.task else {})}
        return _ReadyCall(session, "tools/call", params, limits)

    async def _outcome(
        self, request: CallRequest, hidden: Callable[[str], str], limits: Limits, result: Mapping[str, object]
    ) -> Outcome:
        """Reads the raw answer to a call."""
        agent_id = request.agent_id
        tool = request.tool
        keep = self.results.of(request.run_id, agent_id, tool)
        read = request.reads or outcome_of
        try:
            # In a thread: media and long texts are written to files.
            outcome: Outcome = await asyncio.to_thread(read, agent_id, tool, result, limits, keep)
        except Exception as error:  # noqa: BLE001 (the call was made: whatever is wrong with its result, it is data)
            why = f"it ran, and its result could not be read: {type(error).__name__}: {error}"
            outcome = failed_outcome(agent_id, tool, "protocol", why, "reported")
        return outcome.model_copy(update={"error": hidden(outcome.error)})


def _name_late(tasks: Mapping[str, asyncio.Task[Listing]]) -> None:
    late = [shown(name) for name, task in tasks.items() if not task.done()]
    named = ", ".join(late[:_MOST_NAMED])
    if len(late) > _MOST_NAMED:
        named += f" and {len(late) - _MOST_NAMED} more"
    _LOG.warning("no answer for %g s from %s: waiting", LATE, named)


async def end_all() -> None:
    """Ends all sessions on the running event loop and waits for them; it cannot end those of other loops."""
    live = [session for session in list(_LIVE) if session.loop is asyncio.get_running_loop()]
    for session in live:
        session.end()
    await asyncio.gather(*(session.ended() for session in live))


@atexit.register
def close_all() -> None:
    """Ends all servers when this process ends; the sessions kill those that do not end."""
    if LOOP.started and _LIVE:
        with suppress(TimeoutError, CancelledError):
            LOOP.blocking(end_all(), _LAST_GOODBYE)
