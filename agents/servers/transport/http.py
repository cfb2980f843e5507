"""HTTP clients that read no more of an answer than a message may have, and follow nobody elsewhere."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Callable
from functools import cache
from typing import Any, cast

import httpx2
from mcp.shared._httpx_utils import MCP_DEFAULT_SSE_READ_TIMEOUT, MCP_DEFAULT_TIMEOUT, next_request_within_origin

from callsheet.agents.calls.tool_result import Fault
from callsheet.agents.servers.transport.allowance import (
    BYTES_PER_SECOND,
    MESSAGES,
    MESSAGES_PER_SECOND,
    Allowance,
)
from callsheet.agents.servers.transport.messages import answer_to

_TIMEOUT = httpx2.Timeout(MCP_DEFAULT_TIMEOUT, read=MCP_DEFAULT_SSE_READ_TIMEOUT)
_MOST_REDIRECTS = 3
_BETWEEN_STREAMS = 0.5
"""Seconds between two requests for a stream of events; a server may ask for none."""
_PIECE = 4_096
_ENDS = (b"\n\n", b"\r\r", b"\n\r")
"""End of an event in a stream."""


@cache
def certificates() -> ssl.SSLContext:
    """The authorities that sign for servers; cached, because reading them takes longer than many calls."""
    return httpx2.create_ssl_context()


class BoundedHttpClient(httpx2.AsyncClient):
    """A client that reads no more of any answer than a message may have, and not all the time.

    Args:
        transport: That of the server: ``sse``, where answers come on one stream and a message that is refused has none,
            ``http``; ``openapi`` and ``a2a``, which follow no redirects.
        most: Bytes of a message.
        fail: Ends the session.
        answers: How many answers the session has had.
        more: Headers, timeout and authentication, as of ``httpx2.AsyncClient``.
    """

    def __init__(
        self,
        transport: str,
        most: int,
        fail: Callable[[Fault], None] = lambda fault: None,
        answers: Callable[[], int] = lambda: 0,
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
        self.most, self.answers = most, answers
        self.kind, self._fail, self._next = transport, fail, 0.0

    async def send(self, request: httpx2.Request, **given: Any) -> httpx2.Response:
        """Sends a request; the client library lets nobody know of a message that did not arrive."""
        if request.method == "GET" and self.kind in ("http", "sse"):
            wait, now = self._next - time.monotonic(), time.monotonic()
            self._next = max(now, self._next) + _BETWEEN_STREAMS
            await asyncio.sleep(max(0.0, wait))
        answered_elsewhere = self.kind == "sse" and request.method == "POST"
        try:
            response = await super().send(request, **given)
            if answered_elsewhere:
                await response.aread()
        except httpx2.HTTPError as error:
            if answered_elsewhere:
                self.failed("crash", f"{type(error).__name__}: {error}".rstrip(": "))
            raise
        if answered_elsewhere and not response.is_success and next_request_within_origin(response) is None:
            self.failed("crash", f"it answered a message with status {response.status_code}")
        return response

    async def _check(self, response: httpx2.Response) -> None:
        session = response.headers.get("mcp-session-id", "")
        if not (session.isascii() and session.isprintable()):
            raise self.failed("protocol", "the id of its session is not visible ASCII", effect="none")
        sent, asked = response.request, None
        # What was redirected has its content still to be read.
        is_message = sent.method == "POST" and sent.headers.get("content-type", "") == "application/json"
        if is_message and self.kind == "http":
            asked = json.loads(await sent.aread()).get("id")
        response.stream = _Body(self, response, asked)

    def failed(self, *about: Any, **more: Any) -> Fault:
        """A fault, which ends the session."""
        fault = Fault(*about, **more)
        self._fail(fault)
        return fault


class _Body(httpx2.AsyncByteStream):
    """A body that ends the session if it is longer than a message may be, or compressed.

    A stream ends it with too much between two answers. (The client library bounds each event.) ``asked`` is the id of
    the request that it answers, if any.
    """

    def __init__(self, client: BoundedHttpClient, response: httpx2.Response, asked: Any) -> None:
        self._inner, self._client = cast("httpx2.AsyncByteStream", response.stream), client
        self._asked = asked
        self._compressed = response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity")
        kind = response.headers.get("content-type", "").lower()
        self._events = kind.startswith("text/event-stream")
        self._json = asked is not None and response.is_success and kind.startswith("application/json")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yields the body; an answer in JSON whole, after its id was checked."""
        if self._json:
            body = b"".join([piece async for piece in self._pieces()])
            yield await asyncio.to_thread(answer_to, self._asked, body.decode("utf-8", "replace"))
            return
        async for piece in self._pieces():
            yield piece

    async def _pieces(self) -> AsyncIterator[bytes]:
        client, size, answers = self._client, 0, self._client.answers()
        events = Allowance(MESSAGES, MESSAGES_PER_SECOND)
        # One answer may have the size of a message, and so may the messages before it.
        streamed = Allowance(client.most * (2 if client.kind != "a2a" else 1), BYTES_PER_SECOND)
        async for chunk in self._inner:
            for start in range(0, len(chunk), _PIECE):
                piece = chunk[start : start + _PIECE]
                size += len(piece)
                if self._compressed:
                    raise client.failed("too_large", "it sent a compressed message unasked")
                if self._events:
                    if answers != client.answers():
                        answers = client.answers()
                        events.refill()
                        streamed.refill()
                    if not (events.spend(sum(map(piece.count, _ENDS))) and streamed.spend(len(piece))):
                        most = f"{events}, or bytes than {streamed}"
                        raise client.failed("too_large", f"it sent more events without an answer than {most}")
                elif size > client.most:
                    raise client.failed("too_large", f"it sent a message of more than {client.most:,} bytes")
                yield piece
                # The parser of these pieces may never wait, so other tasks get a turn here.
                await asyncio.sleep(0)

    async def aclose(self) -> None:
        """Closes the response."""
        await self._inner.aclose()
