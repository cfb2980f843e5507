"""A connection to one MCP server, owned by one task; every failure is raised as a ``Fault``."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from importlib import import_module
from typing import Any

import anyio

from callsheet.agents.calls.call_context import Ask, Asks, Limits, Progress
from callsheet.agents.calls.credentials import Caller
from callsheet.agents.calls.outcome import Fault
from callsheet.agents.safety.secrets import hide_in_logs, named_in, of_server
from callsheet.agents.servers.catalogs.listings import (
    CacheHints,
    Listing,
    clean_entries,
    listed_resources,
    listed_skills,
    listed_tools,
)
from callsheet.agents.servers.faults import CLOSED, START, Faults
from callsheet.agents.servers.server_questions import CallClock, Heard, ServerQuestions
from callsheet.graphs.catalog.formats.server_config import ServerConfig

_GOODBYE = 4.0
_SETTLING = 0.5


class Session:
    """A connection that lives in the running loop until it is retired.

    Args:
        server: The server, variables not expanded; its own limits come before ``limits``.
        changed: Called when the server announces changed tools.
        caller: The user whose sign-in and own values it uses.
        asks: When a person can be asked for the server. A server of an older protocol, which asks while its call waits,
            is not told of one who can only be asked later.

    Attributes:
        retired: Whether it takes no new calls.
        personal: Whether its requests carry a user's own token or key, so that its answers are for that user only.
        hidden: Removes the server's secrets from a text.
        idle: Whether the session ends after ``limits.idle`` seconds without a request.
        reused: Whether it has served an earlier run.
        questions: Reads and answers the questions of the server.
        telling: The task that lists the tools and passes them on; ``outdated``, used by the pool: whether they have
            changed since.

    Raises:
        CatalogError: A variable of the server is not set.
        SettingsError: A limit of the server is invalid.
    """

    telling: asyncio.Task[None]

    def __init__(
        self,
        server: ServerConfig,
        limits: Limits,
        changed: Callable[[], object] = lambda: None,
        caller: Caller | None = None,
        *,
        asks: Asks = "",
    ) -> None:
        self.server = server
        self.caller = caller or Caller()
        self.asks = asks
        self._changed = changed
        self.personal = self.caller.personal
        self.retired = self.idle = self.outdated = self.reused = False
        self.loop = asyncio.get_running_loop()
        self.limits = limits.own(server.callsheet.limits)
        self._expanded = server.expanded(os.environ, self.caller.values)
        named = named_in(server, os.environ)
        self._faults = Faults(of_server(self._expanded, named, everything=True), self._expanded.url or "")
        self.hidden = self._faults.hidden
        self._redaction = of_server(self._expanded, named)
        hide_in_logs(self._redaction)
        self.questions = ServerQuestions(self._redaction)
        self._stop = asyncio.Event()
        self._users = 0
        self._cancellations: set[asyncio.Task[None]] = set()
        self._listed = False
        self._timer: asyncio.TimerHandle | None = None
        self._scope = anyio.CancelScope()
        self._client: asyncio.Future[Any] = self.loop.create_future()
        # Otherwise asyncio complains about the error of a session that nobody awaits any more.
        self._client.add_done_callback(lambda client: client.cancelled() or client.exception())
        self._owner = asyncio.create_task(self._own())

    async def ask(
        self,
        method: str,
        params: Mapping[str, object],
        seconds: float,
        progress: Progress | None = None,
        ask: Ask | None = None,
        asks: Asks = "",
        *,
        longest: float = 0.0,
    ) -> dict[str, Any]:
        """Sends a request and returns the server's raw answer, or raises a ``Fault``.

        The time for the start of the server, and that of a person, does not count. Each report of progress gives the
        server ``seconds`` more, up to ``longest`` in all. If a person can only be asked ``later``, the answer may be an
        ``InputRequiredResult``.
        """
        async with self.used():
            client = await asyncio.shield(self._client)
            clock = CallClock(seconds, longest, progress, self.hidden)
            try:
                # Whoever cannot wait for longer asks for no reports.
                heard = clock.heard if longest > seconds or progress else None
                send = partial(self._exchange, client, method, progress=heard)
                answer = await self.questions.answered(send, params, clock, ask, asks=asks)
            except TimeoutError:
                self.hang_up()
                raise self._faults.late(method, clock.within) from None
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if task is None or task.cancelling():
                    self.retire()  # the server has just been told, and gets time to undo its work
                    raise
                self.hang_up()
                raise await self._faults.broken("the connection broke", method) from None
            except Fault:
                raise
            except Exception as error:  # whatever the client library raises becomes a Fault
                if self.server.transport != "stdio" and str(error) == CLOSED:
                    # The task that owns the connection gets the error that broke it.
                    await asyncio.wait([self._owner], timeout=_SETTLING)
                fault = await self._faults.of(error, method)
                if fault.kind not in ("protocol", "tool", "busy", "refused"):
                    self.retire()
                raise fault from error
            redacted: dict[str, Any] = await asyncio.to_thread(self._redaction.value, answer)
            return redacted

    async def error_of_task(self, error: object, message: str) -> Fault:
        """Makes the fault for the JSON-RPC error with which a task has failed; ``message`` is that of its state."""
        from mcp import MCPError

        told = error if isinstance(error, Mapping) else {}
        code = told.get("code")
        text = told.get("message")
        known = MCPError(
            code if isinstance(code, int) else 0, text if isinstance(text, str) else message, told.get("data")
        )
        return await self._faults.of(known, "tools/call")

    def cancel_task(self, task_id: str) -> None:
        """Asks the server to cancel a task, without waiting for its answer; a session that ends waits for it."""
        cancellation = asyncio.create_task(self._cancel_task(task_id))
        self._cancellations.add(cancellation)
        cancellation.add_done_callback(self._cancellations.discard)

    async def _cancel_task(self, task_id: str) -> None:
        if not self._client.done() or self._client.exception() is not None:
            return
        # It is a request that a server need not follow, so its error tells nobody anything.
        with suppress(Exception):
            async with asyncio.timeout(_GOODBYE):
                await self._exchange(self._client.result(), "tasks/cancel", {"taskId": task_id}, None)

    async def listing(self) -> Listing:
        """Lists what the server offers: all its tools, unchanged, and its resources and prompts; raises a ``Fault``."""
        client = await asyncio.shield(self._client)
        about = client.server_info
        offered = client.session.server_capabilities
        hints = CacheHints()
        tools, odd = await listed_tools(hints.heard_by(self.ask), offered, self.limits)

        async def ask(method: str, params: Mapping[str, object], seconds: float) -> dict[str, Any]:
            """Returns an error does not end the session; whoever calls sets the timeout."""
            answer: dict[str, Any] = self._redaction.value(await self._exchange(client, method, params, None))
            return answer

        async with self.used():
            resources, missing = await listed_resources(hints.heard_by(ask), offered, self.limits)
            skills, no_skills = await listed_skills(hints.heard_by(ask), offered, self.limits)
        said = self._redaction.text
        later = self._listed
        self._listed = True
        return Listing(
            later=later,
            tools=tuple(await asyncio.to_thread(clean_entries, tools)),
            resources=tuple(await asyncio.to_thread(clean_entries, resources)),
            skills=tuple(await asyncio.to_thread(clean_entries, skills)),
            missing=said("; ".join(filter(None, (odd, missing, no_skills)))),
            name=said((about.title or about.name) if about else ""),
            description=said(getattr(about, "description", None) or ""),
            instructions=said(client.session.instructions or ""),
            fresh=hints.seconds,
            public=hints.public,
        )

    @property
    def reusable(self) -> bool:
        """Returns whether another run may use the session: its process works, is idle, and stores nothing of a run."""
        shared = self.server.transport == "stdio" and self.server.callsheet.session == "shared"
        at_rest = not (self.retired or self._users) and self.telling.done() and not self.telling.cancelled()
        return shared and at_rest and self.telling.exception() is None

    def fits(self, server: ServerConfig) -> bool:
        """Returns whether its process was started with the present configuration and files; reads the disk."""
        expanded = server.expanded(os.environ)
        child = self._faults.child
        same = not self.retired and (self.server, self._expanded) == (server, expanded)
        return same and child is not None and child.is_as_now(expanded)

    def retire(self) -> None:
        """Accepts no new calls, and ends after the last current one."""
        self.retired = True
        if not self._users:
            self.end()

    def hang_up(self) -> None:
        """Ends a session whose server does not answer, without time for a graceful end."""
        if self._faults.child is not None:
            self._faults.child.responsive = False
        self.retire()

    def end(self) -> None:
        """Ends immediately; current calls fail."""
        self._over()
        if not self._client.done():
            self._scope.cancel()

    def _auth(self) -> Any:
        from callsheet.agents.servers.oauth.stored_tokens import StoredTokens, TokenAuth

        url = self._expanded.url
        headers = self._expanded.headers
        if not url or any(name.lower() == "authorization" for name in headers):
            return None
        return TokenAuth(StoredTokens(url, self.caller.user), self._fail, self._hide)

    def _hide(self, secret: str) -> None:
        self.personal = self.personal or bool(self.caller.user)
        self._faults.redaction.add([secret])
        self._redaction.add([secret])

    def _fail(self, fault: Fault) -> None:
        child = self._faults.child
        if child is not None:
            child.fault = child.fault or fault
        self.end()

    def _over(self) -> None:
        self.retired = True
        self._stop.set()
        if self._timer is not None:  # it would keep a reference to the session and its run
            self._timer.cancel()

    @property
    def gone(self) -> bool:
        """Returns whether the connection and its process have ended."""
        return self._owner.done()

    async def ended(self) -> None:
        """Waits until the connection and its process have ended."""
        await asyncio.wait([self._owner])

    @asynccontextmanager
    async def used(self) -> AsyncIterator[None]:
        """Keeps the session open within the block."""
        self._users += 1
        if self._timer is not None:
            self._timer.cancel()
        try:
            yield
        finally:
            self._users -= 1
            if self.retired:
                self.retire()
            elif not self._users and self.idle:
                self._timer = self.loop.call_later(self.limits.idle, self.retire)

    async def _own(self) -> None:
        fault = Fault("start", "the session was closed before the server had started", effect="none")
        try:
            with self._scope:
                fault = await self._live() or fault
            child = self._faults.child
            if child is not None and child.fault is not None:
                fault = await self._faults.of(child.fault, START)
        except Exception as error:  # noqa: BLE001 (any error of a server or the client library becomes a Fault)
            self._faults.cause = error
            fault = await self._faults.of(error, START)
        finally:
            self.retired = True
            if not self._client.done():
                self._client.set_exception(fault)

    async def _exchange(
        self, client: Any, method: str, params: Mapping[str, Any], progress: Heard | None
    ) -> dict[str, Any]:
        """Sends one request; whatever this raises becomes a ``Fault``."""
        from mcp import types

        from callsheet.agents.servers.transport.client import RAW, SkillsRequest, TaskRequest

        form = {"method": method, "params": dict(params)}
        kinds = {kind.PREFIX: kind for kind in (TaskRequest, SkillsRequest)}
        kind = kinds.get(f"{method.partition('/')[0]}/")
        read = types.client_request_adapter.validate_python
        request: Any = kind.model_validate(form) if kind else read(form, by_name=False)
        result = await client.session.send_request(request, types.Result, progress_callback=progress)
        raw = (result.meta or {}).get(RAW)
        if not isinstance(raw, dict):
            raise Fault("protocol", "its answer is in no known form")
        return raw

    async def _live(self) -> Fault | None:
        # In a thread: the first import of the client library takes a second.
        library: Any = await asyncio.to_thread(import_module, "callsheet.agents.servers.transport.client")
        self._faults.child = child = library.ChildProcess(self.limits, self._over)
        with anyio.move_on_after(self.limits.start) as scope:
            asked = self.questions.elicited if self.asks else None
            made = self._expanded, child, self._changed, self._fail, self._auth()
            more = {"elicited": asked, "waits": self.asks == "now", "tell": self._faults.keep}
            async with library.connect_server(*made, **more) as client:
                scope.deadline = math.inf
                child.responsive = True
                self._client.set_result(client)
                await self._stop.wait()
                scope.deadline = anyio.current_time() + _GOODBYE
                if self._cancellations:
                    await asyncio.wait(self._cancellations)
        if scope.cancelled_caught and not self._client.done():
            return child.fault or self._faults.late(START, f"{self.limits.start:.3g} s")
        return None
