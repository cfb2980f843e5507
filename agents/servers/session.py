"""One connection to one MCP server, owned by one task; every failure is a ``Fault``."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from callsheet.agents.calls.call_context import Ask, Progress
from callsheet.agents.calls.limits import Limits
from callsheet.agents.calls.tool_result import Fault
from callsheet.agents.safety.secrets import hide_in_logs, of_server
from callsheet.agents.servers.catalogs.listings import Listing
from callsheet.agents.servers.catalogs.server_resources import listed_resources, listed_tools
from callsheet.agents.servers.faults import CLOSED, START, Faults, named_in
from callsheet.agents.servers.server_questions import ServerQuestions
from callsheet.agents.servers.transport.messages import beside_if_large
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.text.sanitizing import clean

if TYPE_CHECKING:
    from callsheet.agents.servers.transport.stdio import ChildProcess

_GOODBYE, _SETTLING = 4.0, 0.5


class Session:
    """A connection that lives in the running loop until it is retired.

    Args:
        server: The server, variables not expanded.
        environ: Variables for ``${VAR}``.
        limits: Limits on time and size, unless the server has its own.
        changed: Called when the server announces changed tools.
        user: Whose sign-in it uses.
        asks: Whether the server is told that a person can be asked.

    Attributes:
        retired: Whether it takes no new calls.
        personal: Whether its requests carry a user's own token, so that its answers are for that user only.
        idle: Whether it retires after ``limits.idle`` seconds without a request.

    Raises:
        CatalogError: A variable of the server is not set.
        SettingsError: A limit of the server is invalid.
    """

    def __init__(
        self,
        server: ServerConfig,
        environ: Mapping[str, str],
        limits: Limits,
        changed: Callable[[], object] = lambda: None,
        user: str = "",
        *,
        asks: bool = False,
    ) -> None:
        self.server, self.retired, self.idle, self.personal, self._user = server, False, False, False, user
        self.limits = limits.own(server.callsheet.limits)
        self._expanded = server.expanded(environ)
        named = named_in(server, environ)
        self._faults = Faults(of_server(self._expanded, named, everything=True))
        self._redaction = of_server(self._expanded, named)
        hide_in_logs(self._redaction)
        self._questions, self._asks = ServerQuestions(self._redaction), asks
        self._changed = changed
        self._stop, self._users = asyncio.Event(), 0
        self._timer: asyncio.TimerHandle | None = None
        self._child: ChildProcess | None = None
        self._scope = anyio.CancelScope()
        self._client: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._client.add_done_callback(_looked_at)
        self._owner = asyncio.create_task(self._own())

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        seconds: float,
        progress: Progress | None = None,
        ask: Ask | None = None,
    ) -> dict[str, Any]:
        """Sends one request and returns the server's raw answer.

        Args:
            method: ``tools/list``, ``tools/call``, ``resources/read`` or ``prompts/get``.
            params: Parameters in wire form.
            seconds: Timeout of the exchange, without the start of the server and the time of a person.
            progress: Receives the progress that the server reports.
            ask: Asks a person what the server asks.

        Raises:
            Fault: There was no answer, or it was an error.
        """
        async with self._used():
            client = await asyncio.shield(self._client)
            try:
                send = partial(self._exchange, client, method, progress=progress)
                answer = await self._questions.answered(send, params, seconds, ask)
            except TimeoutError:
                self.hang_up()
                raise self._faults.late(method, seconds) from None
            except asyncio.CancelledError:
                if (task := asyncio.current_task()) is None or task.cancelling():
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
                if fault.kind not in ("protocol", "tool"):
                    self.retire()
                raise fault from error
            redacted: dict[str, Any] = await beside_if_large(self._redaction.value, answer)
            return redacted

    async def listing(self) -> Listing:
        """The server's description of itself, with all its tools as sent, and its resources and prompts.

        Raises:
            Fault: There was no answer, or it was an error.
        """
        client = await asyncio.shield(self._client)
        about, tools = client.server_info, await listed_tools(self.ask, self.limits)
        async with self._used():
            ask = partial(self._ask_once, client)
            resources, missing = await listed_resources(ask, client.session.server_capabilities, self.limits)
        said = self._redaction.text
        return Listing(
            tools=tuple(await beside_if_large(clean, tools)),
            resources=tuple(await beside_if_large(clean, resources)),
            missing=said(missing),
            name=said((about.title or about.name) if about else ""),
            version=said(about.version if about else ""),
            description=said(getattr(about, "description", None) or ""),
            instructions=said(client.session.instructions or ""),
        )

    async def _ask_once(self, client: Any, method: str, params: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        """As ``ask``, but an error does not end the session; whoever calls sets the timeout."""
        answer: dict[str, Any] = self._redaction.value(await self._exchange(client, method, params, None))
        return answer

    def hidden(self, text: str) -> str:
        """The text without the server's secrets."""
        return self._faults.hidden(text)

    def retire(self) -> None:
        """Takes no new calls, and ends after the last current one."""
        self.retired = True
        if not self._users:
            self.end()

    def hang_up(self) -> None:
        """Retires a session whose server does not answer, without time for a graceful end."""
        if self._child is not None:
            self._child.responsive = False
        self.retire()

    def end(self) -> None:
        """Ends immediately; current calls fail."""
        self._over()
        if not self._client.done():
            self._scope.cancel()

    def _auth(self) -> Any:
        from callsheet.agents.servers.oauth.stored_tokens import StoredTokens, TokenAuth

        url, headers = self._expanded.url, self._expanded.headers
        if not url or any(name.lower() == "authorization" for name in headers):
            return None
        return TokenAuth(StoredTokens(url, self._user), self._fail, self._hide)

    def _hide(self, secret: str) -> None:
        self.personal = bool(self._user)
        self._faults.redaction.add([secret])
        self._redaction.add([secret])

    def _fail(self, fault: Fault) -> None:
        if self._child is not None:
            self._child.fault = self._child.fault or fault
        self.end()

    def _over(self) -> None:
        self.retired = True
        self._stop.set()
        if self._timer is not None:  # it would keep a reference to the session and its run
            self._timer.cancel()

    @property
    def gone(self) -> bool:
        """Whether the connection and its process have ended."""
        return self._owner.done()

    def when_gone(self, tell: Callable[[Session], object]) -> None:
        """Calls back after the connection and its process have ended."""
        self._owner.add_done_callback(lambda _: tell(self))

    async def ended(self) -> None:
        """Waits until the connection and its process have ended."""
        await asyncio.wait([self._owner])

    @asynccontextmanager
    async def _used(self) -> AsyncIterator[None]:
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
                self._timer = asyncio.get_running_loop().call_later(self.limits.idle, self.retire)

    async def _own(self) -> None:
        fault = Fault("start", "the session was closed before the server had started", effect="none")
        try:
            with self._scope:
                fault = await self._live() or fault
            if self._child is not None and self._child.fault is not None:
                fault = await self._faults.of(self._child.fault, START)
        except Exception as error:  # noqa: BLE001 (any error of a server or the client library becomes a Fault)
            self._faults.cause = error
            fault = await self._faults.of(error, START)
        finally:
            self.retired = True
            if not self._client.done():
                self._client.set_exception(fault)

    async def _exchange(
        self, client: Any, method: str, params: Mapping[str, Any], progress: Progress | None
    ) -> dict[str, Any]:
        """Sends one request; whatever this raises becomes a ``Fault``."""
        from mcp import types

        from callsheet.agents.servers.transport.client import RAW

        form = {"method": method, "params": dict(params)}
        request: Any = types.client_request_adapter.validate_python(form, by_name=False)
        result = await client.session.send_request(request, types.Result, progress_callback=progress)
        raw = (result.meta or {}).get(RAW)
        if not isinstance(raw, dict):
            raise Fault("protocol", "its answer is in no known form")
        return raw

    async def _live(self) -> Fault | None:
        # In a thread: the first import of the client library takes a second.
        library, stdio = await asyncio.to_thread(_client_library)
        self._child = self._faults.child = child = stdio.ChildProcess(self.limits, self._over)
        with anyio.move_on_after(self.limits.start) as scope:
            elicited = self._questions.elicited if self._asks else None
            connection = library.connected(
                self._expanded, child, self._changed, self._fail, self._auth(), elicited=elicited
            )
            async with connection as client:
                scope.deadline = math.inf
                child.responsive = True
                self._client.set_result(client)
                await self._stop.wait()
                scope.deadline = anyio.current_time() + _GOODBYE
        if scope.cancelled_caught and not self._client.done():
            return child.fault or self._faults.late(START, self.limits.start)
        return None


def _client_library() -> tuple[Any, Any]:
    from callsheet.agents.servers.transport import client, stdio

    return client, stdio


def _looked_at(future: asyncio.Future[Any]) -> None:
    # Without this, asyncio complains about the error of a session that nobody awaits any more.
    if not future.cancelled():
        future.exception()
