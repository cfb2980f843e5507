"""Connections to MCP servers over a child process or HTTP, tolerant of invalid answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, ClassVar

import anyio
import httpx2
from anyio.abc import ObjectStream
from mcp import Client, MCPError
from mcp.client.extension import advertise
from mcp.client.session import ElicitationFnT, IncomingMessage
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.message import SessionMessage
from mcp.types import (
    Implementation,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    PromptListChangedNotification,
    Request,
    ResourceListChangedNotification,
    ToolListChangedNotification,
    server_notification_adapter,
)

from callsheet.agents.calls.outcome import Fault
from callsheet.agents.servers.catalogs.listings import SKILLS_EXTENSION
from callsheet.agents.servers.transport.allowance import Allowance, allowed_bytes, allowed_messages
from callsheet.agents.servers.transport.http import BoundedHttpClient
from callsheet.agents.servers.transport.stdio import ChildProcess
from callsheet.graphs.catalog.formats.server_config import ServerConfig

# Errors of a server become outcomes; without a handler, their tracebacks would also be printed. "client" is the logger
# of the library's sessions. What is logged by servers of this process, and by what they share with clients, is shown.
for _name in ("mcp.client", "client", "httpx2", "httpcore2"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

RAW = "callsheet/raw"
"""Key of ``_meta`` for the server's raw answer."""

TASKS = "io.modelcontextprotocol/tasks"
"""The extension of the protocol by which a server answers a call with a task (SEP-2663)."""


class TaskRequest(Request[dict[str, object], str]):
    """A request about a task: ``tasks/get``, ``tasks/update`` or ``tasks/cancel``.

    Over HTTP, the id of the task is a header too, by which a load balancer finds the server that knows the task.
    """

    PREFIX: ClassVar[str] = "tasks/"
    name_param = "taskId"


class SkillsRequest(Request[dict[str, object], str]):
    """A request about the skills of a server: ``skills/list``."""

    PREFIX: ClassVar[str] = "skills/"


_MOST_UNANSWERED = 4
_COURTESY = 0.5
_PROGRESS = "notifications/progress"
_REPORTS = 20
"""Reports of progress that are passed on of one call at once, and for each second after that."""
_LARGEST = 1e300
_LISTS_CHANGED = frozenset(f"notifications/{kind}/list_changed" for kind in ("tools", "resources", "prompts"))
_OF_LIBRARY = frozenset(("notifications/cancelled", "notifications/subscriptions/acknowledged"))
"""Notifications that the client library itself uses."""
_CHANGES = (ToolListChangedNotification, ResourceListChangedNotification, PromptListChangedNotification)
_PAGE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
_MENDED: Mapping[str, dict[str, Any]] = {
    "tools/call": {"resultType": "complete", "content": []},
    "tools/list": {**_PAGE, "tools": []},
    "resources/list": {**_PAGE, "resources": []},
    "resources/templates/list": {**_PAGE, "resourceTemplates": []},
    "prompts/list": {**_PAGE, "prompts": []},
    "resources/read": {**_PAGE, "contents": []},
    "prompts/get": {"resultType": "complete", "messages": []},
    "skills/list": {**_PAGE, "skills": []},
    "tasks/get": {"resultType": "complete"},
    "tasks/update": {"resultType": "complete"},
    "tasks/cancel": {"resultType": "complete"},
}


@asynccontextmanager
async def connect_server(
    server: ServerConfig,
    child: ChildProcess,
    changed: Callable[[], object],
    fail: Callable[[Fault], None],
    auth: httpx2.Auth | None = None,
    *,
    tell: Callable[[Fault], str] = str,
    elicited: ElicitationFnT | None = None,
    waits: bool = True,
) -> AsyncIterator[Client]:
    """Connects to a server and initialises it; leaving the block ends the connection and its process.

    ``changed`` is called when tools, resources or prompts change. ``fail`` ends the session with a fault that the
    client library does not report, and ``tell`` stores the fault of one request. Without ``elicited``, the server is
    told that nobody can be asked; without ``waits``, only a server that needs no waiting call for that is told of it.
    """

    async def listen(message: IncomingMessage) -> None:
        if isinstance(message, _CHANGES):
            changed()

    exchange = _Exchange(child, waits=waits)
    most = child.limits.message
    http: Any = partial(BoundedHttpClient, server.transport, most, fail, lambda: exchange.answers, tell)
    async with AsyncExitStack() as stack:
        wire: AbstractAsyncContextManager[Any]
        match server.transport:
            case "stdio":
                wire = child.running(server)
            case "sse":
                headers = dict(server.headers)
                wire = sse_client(server.url or "", headers=headers, httpx_client_factory=http, auth=auth)
            case "http":
                web = await stack.enter_async_context(http(headers=dict(server.headers), auth=auth))
                wire = streamable_http_client(server.url or "", http_client=web, max_sse_event_size=most)
            case other:
                what = {"a2a": "an A2A agent", "openapi": "an API over HTTP"}.get(other, f"a {other}")
                raise Fault("protocol", f"it is {what}, so it has no MCP session", effect="none")
        made = Client(
            exchange.over(wire),
            mode="legacy" if server.transport == "sse" else "auto",
            cache=None,
            client_info=Implementation(name="callsheet", version="0.1.0"),
            elicitation_callback=elicited,
            message_handler=listen,
            extensions=[advertise(TASKS), advertise(SKILLS_EXTENSION)],
        )
        client = await stack.enter_async_context(made)
        async with anyio.create_task_group() as group:
            group.start_soon(_listen, client)
            yield client
            group.cancel_scope.cancel()


async def _listen(client: Client) -> None:
    """Subscribes to changed lists at a server of the newer protocol; older ones announce changes by themselves."""
    listen = partial(client.listen, resources_list_changed=True, prompts_list_changed=True)
    try:
        async with listen(tools_list_changed=True) as changes:
            async for _ in changes:
                pass  # the message handler has it already
    except (ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
        return


class _Exchange:
    """The messages of a session: bounds unsolicited ones, and repairs answers that are invalid in part."""

    def __init__(self, child: ChildProcess, *, waits: bool) -> None:
        self.answers = 0
        self._waits = waits
        self._child = child
        # Our open requests whose answers are mended: id -> method; and what each may still report of its progress.
        self._methods: dict[str, str] = {}
        self._reports: dict[str, Allowance] = {}
        # What may still come before the next answer to our requests, and bytes received until now. One answer may have
        # the size of a message, and so may the messages before it.
        self._messages = allowed_messages()
        self._bytes = allowed_bytes(2 * child.limits.message)
        self._received = child.received
        # Requests of the server that were not answered yet.
        self._unanswered = 0
        self._answered = asyncio.Event()

    @asynccontextmanager
    async def over(self, wire: AbstractAsyncContextManager[Any]) -> AsyncIterator[Any]:
        """Wraps a connection, so that its messages pass through this exchange."""
        async with wire as (incoming, outgoing):
            yield _Stream(incoming, self._receive), _Stream(outgoing, self._send)

    async def _send(self, stream: Any, item: SessionMessage) -> None:
        message = item.message
        if isinstance(message, JSONRPCRequest) and message.method in _MENDED:
            self._methods[str(message.id)] = message.method
        if isinstance(message, JSONRPCRequest) and message.method == "initialize" and not self._waits:
            # The handshake of the older protocols, in which a server asks while its call waits for the answer.
            (message.params or {}).get("capabilities", {}).pop("elicitation", None)
        called_off = isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled"
        # Whoever has waited for too long is not kept by a server that does not take this either.
        with anyio.move_on_after(_COURTESY if called_off else None):
            await stream.send(item)
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._unanswered -= 1
            self._answered.set()

    async def _receive(self, stream: Any) -> SessionMessage | Exception:
        while True:
            while self._unanswered >= _MOST_UNANSWERED:
                self._answered.clear()
                await self._answered.wait()
            item: SessionMessage | Exception = await stream.receive()
            self._count()
            match item:
                case SessionMessage(message=JSONRPCResponse() | JSONRPCError() as answer):
                    self._take(answer)
                case SessionMessage(message=JSONRPCRequest()):
                    self._unanswered += 1
                case SessionMessage(message=JSONRPCNotification() as told) if not self._wanted(told):
                    continue
            return item

    def _count(self) -> None:
        """Ends a session with too many unsolicited messages."""
        size = self._child.received - self._received
        self._received = self._child.received
        if not self._messages.spend():
            excess = f"more messages unasked than {self._messages}"
        elif not self._bytes.spend(size):
            excess = f"more bytes than {self._bytes}, most of them unasked"
        else:
            return
        self._child.fault = Fault("too_large", f"it sent {excess}")
        raise self._child.fault

    def _wanted(self, told: JSONRPCNotification) -> bool:
        """Returns whether a notification is used here; the library logs invalid ones with a traceback."""
        if told.method == _PROGRESS:
            return self._is_report(told.params or {})
        if told.method in _LISTS_CHANGED:
            told.params = told.params if _is_valid(told) else None
            return True
        return told.method in _OF_LIBRARY and _is_valid(told)

    def _is_report(self, params: Mapping[str, Any]) -> bool:
        """Returns whether this reports the progress of a running request, and is not one report too many."""
        token = params.get("progressToken")
        known = isinstance(token, str | int) and str(token) in self._methods
        if not known or not _is_number(params.get("progress")) or not _is_number(params.get("total", 0)):
            return False
        return self._reports.setdefault(str(token), Allowance(_REPORTS, _REPORTS)).spend()

    def _take(self, answer: JSONRPCResponse | JSONRPCError) -> None:
        """Counts an answer to one of our requests, and repairs it."""
        asked = str(answer.id)
        self._reports.pop(asked, None)
        method = self._methods.pop(asked, "")
        if method:
            self._messages.refill()
            self._bytes.refill()
            self.answers += 1
            if isinstance(answer, JSONRPCResponse):
                raw = answer.result
                cursor = raw.get("nextCursor")
                page = {"nextCursor": cursor} if method.endswith("/list") and isinstance(cursor, str) else {}
                answer.result = {**_MENDED[method], **page, "_meta": {RAW: raw}}


def _is_number(value: Any) -> bool:
    """Returns whether the library can read a value as a floating-point number, and JSON can write that."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST


def _is_valid(told: JSONRPCNotification) -> bool:
    try:
        server_notification_adapter.validate_python({"method": told.method, "params": told.params}, by_name=False)
    except ValueError:
        return False
    return True


class _Stream(ObjectStream[Any]):
    """One direction of a connection: each message passes through ``act``."""

    def __init__(self, inner: Any, act: Callable[..., Awaitable[Any]]) -> None:
        self._inner = inner
        self._act = partial(act, inner)

    async def send(self, item: Any) -> None:
        await self._act(item)

    async def receive(self) -> Any:
        try:
            return await self._act()
        except anyio.ClosedResourceError:
            raise anyio.EndOfStream from None

    async def send_eof(self) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._inner.aclose()
