"""One connection to one MCP server, owned by one task; every failure is a ``Fault``."""

from __future__ import annotations

import asyncio
import json
import math
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import anyio

from callsheet.agents.calls.call_context import Ask, Limits, Progress
from callsheet.agents.calls.tool_result import Effect, Fault
from callsheet.agents.safety.secrets import Redaction, hide_in_logs, named_in, of_server
from callsheet.agents.servers.catalogs.listings import Listing, cleaned, listed_resources, listed_tools
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.text.json_schema import shown_form
from callsheet.graphs.text.sanitizing import shown

if TYPE_CHECKING:
    from mcp.client.context import ClientRequestContext
    from mcp.types import ElicitRequestParams, ElicitResult, ErrorData

    from callsheet.agents.servers.transport.stdio import ChildProcess

_GOODBYE, _SETTLING = 4.0, 0.5
_START = "initialize"
# Messages of the client library in place of an answer: the connection broke, none came, it cannot be parsed.
_CLOSED, _NO_ANSWER = "Connection closed", "SSE stream"
_UNREADABLE = (
    *("its answer is not", "Server returned an error response", "Unexpected content type", "Redirect to"),
    "server answered a request with 202",
)
_NOT_SENT = ("ConnectError", "ConnectTimeout")
_LONGEST = 4_000


class Faults:
    """The errors of one server; ``cause`` is the error that broke the connection, if known."""

    def __init__(self, redaction: Redaction) -> None:
        self.redaction, self.hidden = redaction, redaction.text
        self.child: ChildProcess | None = None
        self.cause: BaseException | None = None

    def late(self, doing: str, seconds: float) -> Fault:
        """The fault for a timeout."""
        if doing == _START:
            return Fault("timeout", self._said(f"it did not start within {seconds:.3g} s"), effect="none")
        return Fault("timeout", f"no answer to {doing} within {seconds:.3g} s{_doubt(doing)}")

    async def broken(self, what: str, doing: str) -> Fault:
        """The fault for a lost connection."""
        if self.child is not None and self.child.ended:
            await self.child.settled()
            status = self.child.status
            what = "the server closed its output" if status is None else f"the server ended with status {status}"
        elif self.cause is not None and doing != _START:
            what = _named(_leaf(self.cause))
        if doing == _START:
            return Fault("start", self._said(f"it did not start: {what}"), effect="none")
        effect: Effect = "none" if what.startswith(_NOT_SENT) else "unknown"
        return Fault("crash", self._said(f"{what} during {doing}{_doubt(doing, effect)}"), effect=effect)

    async def of(self, error: BaseException, doing: str) -> Fault:
        """The fault for an exception during an exchange."""
        from mcp import MCPError
        from mcp.types import INVALID_PARAMS

        if isinstance(error, Fault):
            return Fault(error.kind, self.hidden(str(error)), effect=error.effect)
        if self.child is not None and (fault := self.child.fault) is not None:
            return Fault(fault.kind, self.hidden(f"{fault}{_doubt(doing, fault.effect)}"), effect=fault.effect)
        leaf = _leaf(error)
        if not isinstance(leaf, MCPError):
            return await self.broken(_named(leaf), doing)
        unparsed = leaf.message.startswith("Failed to parse")  # what follows is of the library that parses
        said = "its answer is not a JSON-RPC response" if unparsed else leaf.message
        if "exceeded the" in said and said.startswith(_NO_ANSWER):
            return Fault("too_large", f"{said}{_doubt(doing)}")
        if (self.child is not None and self.child.ended) or said == _CLOSED or said.startswith(_NO_ANSWER):
            return await self.broken("the connection was closed", doing)
        if said == "Session terminated":
            return Fault("crash", "the server has forgotten this session", effect="none")
        told = self.hidden(f"the server answered {doing} with error {leaf.code}: {said}"[:_LONGEST])
        if doing == _START:
            return Fault("protocol", f"{told} (unsupported protocol)", effect="none")
        if said.startswith(_UNREADABLE):
            return Fault("protocol", told + _doubt(doing))
        # A tool that refuses its arguments: its server works.
        refuses = doing == "tools/call" and leaf.code == INVALID_PARAMS
        return Fault("tool" if refuses else "protocol", told, effect="reported")

    def _said(self, what: str) -> str:
        if self.child is None:
            return self.hidden(what)
        words = [("Not of the protocol, it printed", self.child.printed), ("Its last words", self.child.last_words)]
        return self.hidden("\n".join((what, *(f"{about}: {said}" for about, said in words if said))))


def _doubt(method: str, effect: Effect = "unknown") -> str:
    return "; whether the call took effect is unknown" if method == "tools/call" and effect != "none" else ""


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ").split("\n")[0][:_LONGEST]


def _leaf(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


Send = Callable[[Mapping[str, Any]], Awaitable[dict[str, Any]]]
MOST_QUESTIONS = 5
"""Questions in one call, after which further ones are refused."""
_SECONDS, _LONGEST_FORM = 300.0, 20_000
_NOBODY = "nobody can be asked: this call has no person behind it, or its client shows no forms"
_SEVERAL = "several calls are running, and nobody knows which one asks"
_FORMS_ONLY = "only questions in the form of a form can be passed on, no addresses to open"
_TOO_MANY = f"a call may ask {MOST_QUESTIONS} questions at most"
_METHOD = "elicitation/create"


@dataclass(slots=True, eq=False)
class _Call:
    ask: Ask | None
    timeout: asyncio.Timeout
    seconds: float
    asked: int = 0
    open: int = 0


class ServerQuestions:
    """The questions of one session: a person has five minutes for each, in which the timeout of the call stands."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._calls: list[_Call] = []

    async def answered(self, send: Send, params: Mapping[str, Any], seconds: float, ask: Ask | None) -> dict[str, Any]:
        """The final answer to the request that ``send`` sends, after the questions of the server."""
        for asked in range(MOST_QUESTIONS + 1):
            async with asyncio.timeout(seconds) as timeout:
                # A server of the older protocol asks while its call runs.
                self._calls.append(call := _Call(ask, timeout, seconds))
                try:
                    answer = await send(params)
                finally:
                    self._calls.remove(call)
            if answer.get("resultType") != "input_required":
                return answer
            if asked < MOST_QUESTIONS:
                params = {**params, **await self._answers(answer, ask)}
        raise Fault("protocol", f"it asked more than {MOST_QUESTIONS} times for input")

    async def elicited(self, context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        """Answers ``elicitation/create``; what cannot be asked is an error that says why."""
        from mcp.types import INVALID_REQUEST, ElicitResult, ErrorData

        call = self._calls[0] if len(self._calls) == 1 else None
        if call is None or call.ask is None or call.timeout.expired():
            return ErrorData(code=INVALID_REQUEST, message=_SEVERAL if len(self._calls) > 1 else _NOBODY)
        call.asked += 1
        if call.asked > MOST_QUESTIONS:
            return ErrorData(code=INVALID_REQUEST, message=_TOO_MANY)
        call.open += 1
        call.timeout.reschedule(None)
        try:
            given = params.model_dump(mode="json", by_alias=True)
            return ElicitResult.model_validate(await self._asked(call.ask, given), by_name=False)
        except Fault as fault:
            return ErrorData(code=INVALID_REQUEST, message=str(fault))
        finally:
            call.open -= 1
            if call in self._calls and not call.open:
                call.timeout.reschedule(asyncio.get_running_loop().time() + call.seconds)

    async def _answers(self, result: Mapping[str, Any], ask: Ask | None) -> dict[str, Any]:
        """Parameters that send a call again, with the answers that an ``input_required`` result asks for."""
        requests, state = result.get("inputRequests"), result.get("requestState")
        found = list(requests.items()) if isinstance(requests, dict) else []
        if not found or len(found) > MOST_QUESTIONS or not all(isinstance(one, dict) for _, one in found):
            raise Fault("protocol", "it asks for more input in a form that is not supported", effect="unknown")
        others = {shown(str(one.get("method")), most=100) for _, one in found} - {_METHOD}
        if others:
            raise Fault("protocol", f"it asks for {', '.join(sorted(others))}, which is not supported")
        if ask is None:
            raise Fault("protocol", f"it asks a question, and {_NOBODY}")
        answers = {name: await self._asked(ask, one.get("params")) for name, one in found}
        return {"inputResponses": answers, **({"requestState": state} if isinstance(state, str) else {})}

    async def _asked(self, ask: Ask, params: Any) -> dict[str, Any]:
        given = self._redaction.value(params) if isinstance(params, dict) else {}
        message, form = given.get("message"), given.get("requestedSchema")
        if given.get("mode", "form") != "form" or not isinstance(message, str) or not isinstance(form, dict):
            raise Fault("protocol", _FORMS_ONLY)
        if form.get("type") != "object" or not isinstance(form.get("properties"), dict):
            raise Fault("protocol", "its form is not an object with properties")
        if len(json.dumps(form)) > _LONGEST_FORM:
            raise Fault("protocol", f"its form has more than {_LONGEST_FORM:,} characters")
        try:
            async with asyncio.timeout(_SECONDS):
                return await ask(shown(message), shown_form(form))
        except TimeoutError:
            return {"action": "cancel"}


class Session:
    """A connection that lives in the running loop until it is retired.

    Args:
        server: The server, variables not expanded; its own limits come before ``limits``.
        changed: Called when the server announces changed tools.
        user: Whose sign-in it uses.
        asks: Whether the server is told that a person can be asked.

    Attributes:
        retired: Whether it takes no new calls.
        personal: Whether its requests carry a user's own token, so that its answers are for that user only.
        hidden: Removes the server's secrets from a text.
        idle: Whether it retires after ``limits.idle`` seconds without a request.
        reused: Whether it has served an earlier run.
        telling: Lists its tools and passes them on; of the pool, as ``outdated``: whether they have changed since.

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
        user: str = "",
        *,
        asks: bool = False,
    ) -> None:
        self.server, self._user, self.asks, self._changed = server, user, asks, changed
        self.retired = self.idle = self.personal = self.outdated = self.reused = False
        self.loop = asyncio.get_running_loop()
        self.limits = limits.own(server.callsheet.limits)
        self._expanded = server.expanded(os.environ)
        named = named_in(server, os.environ)
        self._faults = Faults(of_server(self._expanded, named, everything=True))
        self.hidden = self._faults.hidden
        self._redaction = of_server(self._expanded, named)
        hide_in_logs(self._redaction)
        self._questions = ServerQuestions(self._redaction)
        self._stop, self._users = asyncio.Event(), 0
        self._timer: asyncio.TimerHandle | None = None
        self._scope = anyio.CancelScope()
        self._client: asyncio.Future[Any] = self.loop.create_future()
        # Otherwise asyncio complains about the error of a session that nobody awaits any more.
        self._client.add_done_callback(lambda client: client.cancelled() or client.exception())
        self._owner = asyncio.create_task(self._own())

    async def ask(
        self,
        method: str,
        params: Mapping[str, Any],
        seconds: float,
        progress: Progress | None = None,
        ask: Ask | None = None,
    ) -> dict[str, Any]:
        """The server's raw answer, or ``Fault``; its start and the time of a person do not count as ``seconds``."""
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
                if self.server.transport != "stdio" and str(error) == _CLOSED:
                    # The task that owns the connection gets the error that broke it.
                    await asyncio.wait([self._owner], timeout=_SETTLING)
                fault = await self._faults.of(error, method)
                if fault.kind not in ("protocol", "tool"):
                    self.retire()
                raise fault from error
            redacted: dict[str, Any] = await asyncio.to_thread(self._redaction.value, answer)
            return redacted

    async def listing(self) -> Listing:
        """The server's description of itself, all its tools as sent, and its resources and prompts, or ``Fault``."""
        client = await asyncio.shield(self._client)
        about, offered = client.server_info, client.session.server_capabilities
        tools, odd = await listed_tools(self.ask, offered, self.limits)

        async def ask(method: str, params: Mapping[str, Any], seconds: float) -> dict[str, Any]:
            """An error does not end the session; whoever calls sets the timeout."""
            answer: dict[str, Any] = self._redaction.value(await self._exchange(client, method, params, None))
            return answer

        async with self._used():
            resources, missing = await listed_resources(ask, offered, self.limits)
        said = self._redaction.text
        return Listing(
            tools=tuple(await asyncio.to_thread(cleaned, tools)),
            resources=tuple(await asyncio.to_thread(cleaned, resources)),
            missing=said("; ".join(filter(None, (odd, missing)))),
            name=said((about.title or about.name) if about else ""),
            description=said(getattr(about, "description", None) or ""),
            instructions=said(client.session.instructions or ""),
        )

    @property
    def reusable(self) -> bool:
        """Whether another run may go on with it: a process that works, at rest, and keeps nothing of one run."""
        shared = self.server.transport == "stdio" and self.server.callsheet.session == "shared"
        at_rest = not (self.retired or self._users) and self.telling.done() and not self.telling.cancelled()
        return shared and at_rest and self.telling.exception() is None

    def fits(self, server: ServerConfig) -> bool:
        """Whether its process was started as this server would be now."""
        from callsheet.agents.servers.transport.stdio import environment_of

        expanded, child = server.expanded(os.environ), self._faults.child
        same = not self.retired and (self.server, self._expanded) == (server, expanded)
        return same and child is not None and child.environment == environment_of(expanded)

    def retire(self) -> None:
        """Takes no new calls, and ends after the last current one."""
        self.retired = True
        if not self._users:
            self.end()

    def hang_up(self) -> None:
        """Retires a session whose server does not answer, without time for a graceful end."""
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

        url, headers = self._expanded.url, self._expanded.headers
        if not url or any(name.lower() == "authorization" for name in headers):
            return None
        return TokenAuth(StoredTokens(url, self._user), self._fail, self._hide)

    def _hide(self, secret: str) -> None:
        self.personal = bool(self._user)
        self._faults.redaction.add([secret])
        self._redaction.add([secret])

    def _fail(self, fault: Fault) -> None:
        if (child := self._faults.child) is not None:
            child.fault = child.fault or fault
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
                self._timer = self.loop.call_later(self.limits.idle, self.retire)

    async def _own(self) -> None:
        fault = Fault("start", "the session was closed before the server had started", effect="none")
        try:
            with self._scope:
                fault = await self._live() or fault
            if (child := self._faults.child) is not None and child.fault is not None:
                fault = await self._faults.of(child.fault, _START)
        except Exception as error:  # noqa: BLE001 (any error of a server or the client library becomes a Fault)
            self._faults.cause = error
            fault = await self._faults.of(error, _START)
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
        library: Any = await asyncio.to_thread(import_module, "callsheet.agents.servers.transport.client")
        self._faults.child = child = library.ChildProcess(self.limits, self._over)
        with anyio.move_on_after(self.limits.start) as scope:
            asked = self._questions.elicited if self.asks else None
            made = self._expanded, child, self._changed, self._fail, self._auth()
            async with library.connected(*made, elicited=asked) as client:
                scope.deadline = math.inf
                child.responsive = True
                self._client.set_result(client)
                await self._stop.wait()
                scope.deadline = anyio.current_time() + _GOODBYE
        if scope.cancelled_caught and not self._client.done():
            return child.fault or self._faults.late(_START, self.limits.start)
        return None
