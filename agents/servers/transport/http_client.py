"""An HTTP client that reads no more of an answer than a message may have, and follows nobody elsewhere."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import httpx2
from mcp.shared._httpx_utils import MCP_DEFAULT_SSE_READ_TIMEOUT, MCP_DEFAULT_TIMEOUT, next_request_within_origin

from callsheet.agents.servers.transport.bounded_body import BoundedBody
from callsheet.agents.servers.transport.stdio_process import ChildProcess
from callsheet.agents.tools.tool_result import Fault

_MOST_REDIRECTS, _SIGN_IN = 3, 10
_BETWEEN_STREAMS = 0.5
"""Seconds between two requests for a stream of events; a server may ask for none."""


@cache
def certificates() -> ssl.SSLContext:
    """The authorities that sign for servers; cached, because reading them takes longer than many calls."""
    return httpx2.create_ssl_context()


def bounded_client(
    headers: Mapping[str, str], child: ChildProcess, auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    """A client of one server; whoever uses it bounds the time of an exchange."""

    def fail(fault: Fault) -> None:
        child.fault = fault

    async def bounded(response: httpx2.Response) -> None:
        response.stream = BoundedBody(response, child.limits.message, fail, lambda: 0)

    return httpx2.AsyncClient(
        # A compressed body could grow without bound after it was counted.
        headers={**headers, "accept-encoding": "identity"},
        auth=auth,
        timeout=httpx2.Timeout(None, connect=child.limits.start),
        verify=certificates(),
        follow_redirects=False,
        event_hooks={"response": [bounded]},
    )


class Wire(httpx2.AsyncClient):
    """A client that reads no more of any answer than a message may have, and not all the time.

    Args:
        most: Bytes of a message.
        fail: Ends the session.
        answers: How many answers the session has had.
        sse: Whether answers come on one stream, and a message that is refused has none.
        headers: Of every request.
        timeout: Of its parts.
        auth: How it signs in.
    """

    def __init__(
        self,
        most: int,
        fail: Callable[[Fault], None],
        answers: Callable[[], int],
        sse: bool,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> None:
        super().__init__(
            # A compressed body could grow without bound after it was counted.
            headers={**(headers or {}), "accept-encoding": "identity"},
            timeout=timeout or httpx2.Timeout(MCP_DEFAULT_TIMEOUT, read=MCP_DEFAULT_SSE_READ_TIMEOUT),
            auth=auth,
            verify=certificates(),
            # The library counts the requests of a sign-in as redirects.
            max_redirects=_MOST_REDIRECTS + (_SIGN_IN if auth and auth.requires_response_body else 0),
            event_hooks={"response": [self._check]},
        )
        self._most, self._fail, self._answers, self._sse, self._next = most, fail, answers, sse, 0.0

    async def send(self, request: httpx2.Request, **given: Any) -> httpx2.Response:
        """Sends a request; the client library lets nobody know of a message that did not arrive.

        Raises:
            HTTPError: There was no answer.
        """
        if request.method == "GET":
            wait, now = self._next - time.monotonic(), time.monotonic()
            self._next = max(now, self._next) + _BETWEEN_STREAMS
            await asyncio.sleep(max(0.0, wait))
        try:
            response = await super().send(request, **given)
            if self._sse and request.method == "POST":
                await response.aread()
        except httpx2.HTTPError as error:
            self._lost(request, f"{type(error).__name__}: {error}".rstrip(": "))
            raise
        if not response.is_success and next_request_within_origin(response) is None:
            self._lost(request, f"it answered a message with status {response.status_code}")
        return response

    def _lost(self, request: httpx2.Request, why: str) -> None:
        if self._sse and request.method == "POST":
            self._fail(Fault("crash", why))

    async def _check(self, response: httpx2.Response) -> None:
        session = response.headers.get("mcp-session-id", "")
        if not (session.isascii() and session.isprintable()):
            fault = Fault("protocol", "the id of its session is not visible ASCII", effect="none")
            self._fail(fault)
            raise fault
        request = response.request
        # What was redirected has its content still to be read.
        is_message = request.method == "POST" and request.headers.get("content-type", "") == "application/json"
        asked = json.loads(await request.aread()).get("id") if is_message and not self._sse else None
        opens = self._sse and request.method == "GET" and response.is_success
        response.stream = BoundedBody(response, self._most, self._fail, self._answers, asked=asked, opens=opens)
