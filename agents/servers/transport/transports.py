"""Connections to MCP servers over a child process or HTTP, tolerant of invalid answers."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from types import TracebackType
from typing import Any, Self, cast

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp import Client, MCPError
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
    ResourceListChangedNotification,
    ToolListChangedNotification,
)

from callsheet.agents.servers.transport.http_client import Wire
from callsheet.agents.servers.transport.process_environment import environment_of, program_of
from callsheet.agents.servers.transport.reaper import REAPER
from callsheet.agents.servers.transport.reaper_process import MARK, end_marked
from callsheet.agents.servers.transport.stdio_process import ChildProcess
from callsheet.agents.tools.tool_result import Fault
from callsheet.graphs.catalog.formats.server_config import ServerConfig

# Errors of a server become outcomes; without a handler, their tracebacks would also be printed.
logging.getLogger("mcp").addHandler(logging.NullHandler())

RAW = "callsheet/raw"
"""Key of ``_meta`` for the server's raw answer."""

_MOST_UNANSWERED, _MOST_UNSOLICITED, _COURTESY = 4, 5_000, 0.5
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
}


@asynccontextmanager
async def connected(
    server: ServerConfig,
    child: ChildProcess,
    changed: Callable[[], object],
    fail: Callable[[Fault], None],
    auth: httpx2.Auth | None = None,
    *,
    elicited: ElicitationFnT | None = None,
) -> AsyncIterator[Client]:
    """A client that has initialised the server; leaving it ends the connection and its process.

    Args:
        server: The server, variables expanded.
        child: The process of a stdio server; for other servers, only the limits and the recorded fault.
        changed: Called when the server announces changed tools, resources or prompts.
        fail: Ends the session with a fault that the client library does not report.
        auth: How requests over HTTP are authenticated.
        elicited: Answers questions of the server; without it, the server is told that nobody can be asked.
    """

    async def listen(message: IncomingMessage) -> None:
        if isinstance(message, _CHANGES):
            changed()

    wire: AbstractAsyncContextManager[Any]
    exchange, most = _Exchange(child), child.limits.message
    http = partial(Wire, most, fail, lambda: exchange.answers, server.transport == "sse")
    match server.transport:
        case "stdio":
            wire = _process(server, child)
        case "sse":
            wire = sse_client(server.url or "", headers=dict(server.headers), httpx_client_factory=http, auth=auth)
        case "http":
            wire = _http(server, http(headers=dict(server.headers), auth=auth), most)
        case "a2a" | "openapi":
            what = "an A2A agent" if server.transport == "a2a" else "an API over HTTP"
            raise Fault("protocol", f"it is {what}, and has no MCP session", effect="none")
    info = Implementation(name="callsheet", version="0.1.0")
    mode = "legacy" if server.transport == "sse" else "auto"
    options: dict[str, Any] = {"mode": mode, "cache": None, "client_info": info, "elicitation_callback": elicited}
    async with (
        Client(_keeping_raw(wire, exchange), message_handler=listen, **options) as client,
        anyio.create_task_group() as group,
    ):
        group.start_soon(_listen, client)
        yield client
        group.cancel_scope.cancel()


async def _listen(client: Client) -> None:
    """Subscribes to changed lists at a server of the newer protocol; older ones announce them unasked."""
    listen = partial(client.listen, resources_list_changed=True, prompts_list_changed=True)
    try:
        async with listen(tools_list_changed=True) as changes:
            async for _ in changes:
                pass  # the message handler has it already
    except (ListenNotSupportedError, SubscriptionLost, MCPError, TimeoutError):
        return


@asynccontextmanager
async def _http(server: ServerConfig, client: Wire, most: int) -> AsyncIterator[Any]:
    async with (
        client,
        streamable_http_client(server.url or "", http_client=client, max_sse_event_size=most) as streams,
    ):
        yield streams


@asynccontextmanager
async def _process(server: ServerConfig, child: ChildProcess) -> AsyncIterator[Any]:
    await _spawned(server, child)
    send, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group, send, outgoing:
        group.start_soon(_write, outgoing, child)
        group.start_soon(child.read)
        try:
            yield child.messages, send
        finally:
            with anyio.CancelScope(shield=True):
                await child.stop()
            group.cancel_scope.cancel()


async def _spawned(server: ServerConfig, child: ChildProcess) -> None:
    # In a thread: these calls and the spawn access the disk.
    child.mark = "" if os.name == "nt" else await asyncio.to_thread(REAPER.mark)
    environment = environment_of(server) | {MARK: child.mark}
    command = server.command or ""
    program = await asyncio.to_thread(program_of, command, environment)
    loop = asyncio.get_running_loop()
    try:
        await loop.subprocess_exec(
            lambda: child,
            program,
            *server.args,
            env=environment,
            cwd=server.cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise Fault("start", f"the command {command!r} cannot be run: {error}") from error
    except asyncio.CancelledError:
        end_marked(child.mark, signal.SIGKILL)
        raise


async def _write(outgoing: MemoryObjectReceiveStream[SessionMessage], child: ChildProcess) -> None:
    stdin = cast("asyncio.WriteTransport", child.transport.get_pipe_transport(0))
    async for item in outgoing:
        stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
        await child.writable.wait()


@asynccontextmanager
async def _keeping_raw(wire: AbstractAsyncContextManager[Any], exchange: _Exchange) -> AsyncIterator[Any]:
    async with wire as (incoming, outgoing):
        yield _Incoming(incoming, exchange), _Outgoing(outgoing, exchange)


class _Exchange:
    """Open requests of both sides.

    Attributes:
        methods: Id of our request -> its method, for requests whose answers are repaired.
    """

    def __init__(self, child: ChildProcess) -> None:
        self.methods: dict[str, str] = {}
        self.answers = 0
        # Messages since the last answer to our requests, and bytes received until then.
        self._unsolicited, self._solicited, self._unanswered = 0, child.received, 0
        self._child, self._answered = child, asyncio.Event()

    def asked(self) -> None:
        """The server sends a request."""
        self._unanswered += 1

    def answered(self) -> None:
        """The server's request was answered."""
        self._unanswered -= 1
        self._answered.set()

    async def room(self) -> None:
        """Waits while the server has too many unread answers to its own requests."""
        while self._unanswered >= _MOST_UNANSWERED:
            self._answered.clear()
            await self._answered.wait()

    def solicited(self) -> None:
        """Resets the counts after an answer to our request."""
        self._unsolicited, self._solicited, self.answers = 0, self._child.received, self.answers + 1

    def count(self) -> None:
        """Ends a session with too many unsolicited messages.

        Raises:
            Fault: The limit is exceeded.
        """
        self._unsolicited += 1
        # One answer may have the size of a message, and so may the messages before it.
        most = 2 * self._child.limits.message
        if self._unsolicited > _MOST_UNSOLICITED:
            self._child.fault = Fault("too_large", f"it sent more than {_MOST_UNSOLICITED:,} messages unasked")
            raise self._child.fault
        if self._child.received - self._solicited > most:
            self._child.fault = Fault("too_large", f"it sent more than {most:,} bytes, most of them unasked")
            raise self._child.fault


class _Stream:
    def __init__(self, inner: Any, exchange: _Exchange) -> None:
        self._inner, self._exchange = inner, exchange

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class _Outgoing(_Stream):
    async def send(self, item: SessionMessage, /) -> None:
        if isinstance(item.message, JSONRPCRequest) and item.message.method in _MENDED:
            self._exchange.methods[str(item.message.id)] = item.message.method
        called_off = isinstance(item.message, JSONRPCNotification) and item.message.method == "notifications/cancelled"
        # Whoever has waited for too long is not kept by a server that does not take this either.
        with anyio.move_on_after(_COURTESY if called_off else None):
            await self._inner.send(item)
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._exchange.answered()


class _Incoming(_Stream):
    """Receives answers, repairs them to the form that MCP demands, and keeps the raw answer.

    Otherwise one audio block, one tool without a schema or one wrong structured result would make the whole answer
    invalid.
    """

    async def receive(self) -> SessionMessage | Exception:
        await self._exchange.room()
        item: SessionMessage | Exception = await self._inner.receive()
        self._exchange.count()
        match item:
            case SessionMessage(message=JSONRPCResponse() as response):
                self._mend(response)
            case SessionMessage(message=JSONRPCRequest()):
                self._exchange.asked()
        return item

    def _mend(self, response: JSONRPCResponse) -> None:
        if method := self._exchange.methods.pop(str(response.id), ""):
            self._exchange.solicited()
        raw = response.result
        if method in _MENDED:
            cursor = raw.get("nextCursor")
            page = {"nextCursor": cursor} if method.endswith("/list") and isinstance(cursor, str) else {}
            response.result = {**_MENDED[method], **page, "_meta": {RAW: raw}}

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except (anyio.EndOfStream, anyio.ClosedResourceError):
            raise StopAsyncIteration from None
