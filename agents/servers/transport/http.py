"""HTTP clients that limit the size of answers, and do not follow redirects to other hosts."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from functools import cache
from typing import Any, cast

import httpx2
from mcp.shared._httpx_utils import MCP_DEFAULT_SSE_READ_TIMEOUT, MCP_DEFAULT_TIMEOUT
from mcp.types import INTERNAL_ERROR, JSONRPCError

from callsheet.agents.calls.outcome import Fault
from callsheet.agents.servers.transport.allowance import allowed_bytes, allowed_messages
from callsheet.agents.servers.transport.messages import parse_message, reply_to
from callsheet.agents.servers.transport.refusals import (
    BUSY,
    LONGEST_WAIT,
    busy,
    describe_response,
    elsewhere,
    redirect_fault,
)

_TIMEOUT = httpx2.Timeout(MCP_DEFAULT_TIMEOUT, read=MCP_DEFAULT_SSE_READ_TIMEOUT)
_MOST_REDIRECTS = 3
_BETWEEN_STREAMS = 0.5
"""Seconds between two requests for a stream of events; a server may ask for none."""
_PIECE = 4_096
_LEAST_WAIT = 0.5
"""Seconds after which a message is sent again to a server that is busy, even if it allows that at once."""
_ASKS = frozenset(
    "initialize server/discover ping tools/list resources/list resources/templates/list prompts/list".split()
)
"""Messages that change nothing, so that a server that is busy gets them again."""
_OF_LIBRARY = frozenset((404,))
"""Statuses that the client library reads itself: the session has ended, or the method is unknown."""
_ENDS = (b"\n\n", b"\r\r", b"\n\r")
"""End of an event in a stream."""


@cache
def certificates() -> ssl.SSLContext:
    """Returns an SSLContext with the default certificate authorities; cached, because loading them is slow."""
    return httpx2.create_ssl_context()


class BoundedHttpClient(httpx2.AsyncClient):
    """An HTTP client that reads at most the size of a message of each answer, and lets other tasks run meanwhile.

    Args:
        transport: The transport of the server. With ``sse``, answers come on one stream, and a refused message has no
            answer; ``http``; ``openapi`` and ``a2a`` follow no redirects.
        most: Bytes of a message.
        fail: Ends the session.
        answers: How many answers the session has had.
        tell: Stores the fault of one request and returns its key, because the client library passes on only an error of
            JSON-RPC with its data.
        more: Headers, timeout and authentication, as of ``httpx2.AsyncClient``.
    """

    def __init__(
        self,
        transport: str,
        most: int,
        fail: Callable[[Fault], None] = lambda fault: None,
        answers: Callable[[], int] = lambda: 0,
        tell: Callable[[Fault], str] = str,
        **more: Any,
    ) -> None:
        super().__init__(
            # A compressed body could grow without bound after it was counted.
            headers={**(more.pop("headers", None) or {}), "accept-encoding": "identity"},
            timeout=more.pop("timeout", None) or _TIMEOUT,
            verify=certificates(),
            max_redirects=_MOST_REDIRECTS,
            event_hooks={"response": [self._check]},
            **more,
        )
        self.most = most
        self.answers = answers
        self._tell = tell
        self.kind = transport
        self._fail = fail
        self._next = 0.0

    async def send(self, request: httpx2.Request, **given: Any) -> httpx2.Response:
        """Sends a request; reports failures itself, because the client library does not report a lost message."""
        if request.method == "GET" and self.kind in ("http", "sse"):
            wait = self._next - time.monotonic()
            now = time.monotonic()
            self._next = max(now, self._next) + _BETWEEN_STREAMS
            await asyncio.sleep(max(0.0, wait))
        if self.kind not in ("http", "sse"):
            return await super().send(request, **given)
        await request.aread()  # one that was redirected is still to be read
        message = _message_of(request)
        waited = 0.0
        while True:
            response = await (self._posted if self.kind == "sse" and message else super().send)(request, **given)
            where = elsewhere(response)
            if where:
                response.next_request = None
                return await self._refused(response, message, redirect_fault(response, where))
            if not message or response.status_code < 400 or not await self._is_failure(response):
                return response
            fault = self._failure(response)
            pause = LONGEST_WAIT if fault.wait is None else max(fault.wait, _LEAST_WAIT)
            if message.get("method") not in _ASKS or waited + pause >= LONGEST_WAIT:
                return await self._refused(response, message, fault)
            waited += pause
            await asyncio.sleep(pause)

    async def _posted(self, request: httpx2.Request, **given: Any) -> httpx2.Response:
        """Sends a message whose answer comes on the stream of events."""
        try:
            response = await super().send(request, **given)
            await response.aread()
        except httpx2.HTTPError as error:
            self.failed("crash", f"{type(error).__name__}: {error}".rstrip(": "))
            raise
        return response

    async def _is_failure(self, response: httpx2.Response) -> bool:
        """Returns whether an answer is an error of HTTP; the client library reads all other answers."""
        if response.status_code in _OF_LIBRARY and self.kind == "http":
            return False
        await response.aread()
        return response.status_code in BUSY or not isinstance(parse_message(response.text), JSONRPCError)

    def _failure(self, response: httpx2.Response) -> Fault:
        """Makes the fault for the status of an answer."""
        if response.status_code in BUSY:
            return busy(response)
        if self.kind == "sse":  # its session ends
            return Fault("crash", describe_response(response))
        return Fault(
            "protocol", describe_response(response), effect="reported" if response.status_code < 500 else "unknown"
        )

    async def _refused(self, response: httpx2.Response, message: Mapping[str, object], fault: Fault) -> httpx2.Response:
        """Makes the client library's answer to a message that the server refused: an error with the fault's key."""
        if self.kind == "sse" and message:
            self._fail(fault)
        if self.kind == "sse" or "id" not in message or "method" not in message:
            return response
        await response.aclose()
        error = {"code": INTERNAL_ERROR, "message": str(fault), "data": self._tell(fault)}
        return httpx2.Response(
            200, json={"jsonrpc": "2.0", "id": message["id"], "error": error}, request=response.request
        )

    async def _check(self, response: httpx2.Response) -> None:
        session = response.headers.get("mcp-session-id", "")
        if not (session.isascii() and session.isprintable()):
            raise self.failed("protocol", "the id of its session is not visible ASCII", effect="none")
        asked = _message_of(response.request).get("id") if self.kind == "http" else None
        response.stream = _Body(self, response, asked)

    def failed(self, *about: Any, **more: Any) -> Fault:
        """Ends the session with a fault; returns the fault."""
        fault = Fault(*about, **more)
        self._fail(fault)
        return fault


def _message_of(request: httpx2.Request) -> dict[str, Any]:
    """Returns the JSON-RPC message in a request; an empty one if there is none."""
    if request.method != "POST" or request.headers.get("content-type", "") != "application/json":
        return {}
    message: dict[str, Any] = json.loads(request.content)
    return message


class _Body(httpx2.AsyncByteStream):
    """The body of an answer, which ends the session if it is compressed, or longer than a message may be.

    A stream ends it with too much between two answers. (The client library bounds each event.) ``asked`` is the id of
    the request that it answers, if any.
    """

    def __init__(self, client: BoundedHttpClient, response: httpx2.Response, asked: object) -> None:
        self._inner = cast("httpx2.AsyncByteStream", response.stream)
        self._client = client
        self._asked = asked
        self._compressed = response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity")
        kind = response.headers.get("content-type", "").lower()
        self._events = kind.startswith("text/event-stream")
        self._json = asked is not None and response.is_success and kind.startswith("application/json")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yields the body; an answer in JSON whole, after its id was checked."""
        if self._json:
            body = b"".join([piece async for piece in self._pieces()])
            yield await asyncio.to_thread(reply_to, self._asked, body.decode("utf-8", "replace"))
            return
        async for piece in self._pieces():
            yield piece

    async def _pieces(self) -> AsyncIterator[bytes]:
        client = self._client
        size = 0
        answers = self._client.answers()
        events = allowed_messages()
        # One answer may have the size of a message, and so may the messages before it.
        streamed = allowed_bytes(client.most * (2 if client.kind != "a2a" else 1))
        async for chunk in self._inner:
            for start in range(0, len(chunk), _PIECE):
                piece = chunk[start : start + _PIECE]
                size += len(piece)
                if self._compressed:
                    raise client.failed("too_large", "it sent a compressed message, which was not requested")
                if self._events:
                    if answers != client.answers():
                        answers = client.answers()
                        events.refill()
                        streamed.refill()
                    if not (events.spend(sum(map(piece.count, _ENDS))) and streamed.spend(len(piece))):
                        most = f"{events}, or bytes than {streamed}"
                        raise client.failed("too_large", f"it sent more than {most} events without an answer")
                elif size > client.most:
                    raise client.failed("too_large", f"it sent a message of more than {client.most:,} bytes")
                yield piece
                # The parser of these pieces may never wait, so other tasks get a turn here.
                await asyncio.sleep(0)

    async def aclose(self) -> None:
        """Closes the response."""
        await self._inner.aclose()
