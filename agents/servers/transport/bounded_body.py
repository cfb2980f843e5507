"""The body of an HTTP response, limited to the maximum size of a message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any, cast
from urllib.parse import urljoin, urlsplit

import httpx2

from callsheet.agents.servers.transport.json_rpc import answer_to
from callsheet.agents.servers.transport.loop_share import beside_if_large
from callsheet.agents.tools.tool_result import Fault

_PIECE = 4_096
_ENDS = (b"\n\n", b"\r\r", b"\n\r")
"""End of an event in a stream."""
_MOST_EVENTS = 5_000


class BoundedBody(httpx2.AsyncByteStream):
    """A body that ends the session if it, or one event of a stream, exceeds the maximum size of a message.

    A stream that sends too much without an answer also ends it, as does one of transport ``sse`` that does not begin
    with an endpoint.

    Args:
        response: The response.
        most: Maximum size of a message, in bytes.
        fail: Ends the session.
        answers: Returns the number of answers of the session so far.
        asked: Id of the request; None if there is none, or if the body is not an answer to it.
        opens: Whether it is the stream of transport ``sse``.
    """

    def __init__(
        self,
        response: httpx2.Response,
        most: int,
        fail: Callable[[Fault], None],
        answers: Callable[[], int],
        *,
        asked: Any = None,
        opens: bool = False,
    ) -> None:
        self._inner, self._most, self._fail = cast("httpx2.AsyncByteStream", response.stream), most, fail
        self._answers, self._asked, self._url = answers, asked, str(response.url)
        self._compressed = response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity")
        kind = response.headers.get("content-type", "").lower()
        self._events, self._opens, self._head = kind.startswith("text/event-stream"), opens, b""
        self._json = asked is not None and response.is_success and kind.startswith("application/json")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yields the body; an answer in JSON whole, after its id was checked.

        Raises:
            Fault: It is too long, has too many events, no endpoint at the beginning, or is compressed without request.
        """
        if self._json:
            body = b"".join([piece async for piece in self._pieces()])
            text = body.decode("utf-8", "replace")
            yield await beside_if_large(partial(answer_to, self._asked), text)
            return
        async for piece in self._pieces():
            if self._opens:
                self._open(piece)
            yield piece
        if self._opens:
            raise self._failed(Fault("protocol", _NO_ENDPOINT, effect="none"))

    async def _pieces(self) -> AsyncIterator[bytes]:
        size, last, total, events, answers = 0, b"", 0, 0, self._answers()
        async for chunk in self._inner:
            for start in range(0, len(chunk), _PIECE):
                piece = chunk[start : start + _PIECE]
                size = self._size(size, last + piece) if self._events else size + len(piece)
                last = piece[-1:]
                if self._compressed or size > self._most:
                    raise self._failed(self._too_large())
                if answers != self._answers():
                    total, events, answers = 0, 0, self._answers()
                total, events = total + len(piece), events + sum(map(piece.count, _ENDS))
                if self._events and (events > _MOST_EVENTS or total > 2 * self._most):
                    raise self._failed(Fault("too_large", f"it sent {events:,} events, {total:,} bytes, and no answer"))
                yield piece
                # The parser of these pieces may never wait, so other tasks get a turn here.
                await asyncio.sleep(0)

    @staticmethod
    def _size(size: int, piece: bytes) -> int:
        """Bytes since the end of the last event; the first byte was counted before."""
        end = max(piece.rfind(mark) for mark in _ENDS)
        return size + len(piece) - 1 if end < 0 else len(piece) - end

    def _too_large(self) -> Fault:
        long = f"a message of more than {self._most:,} bytes"
        return Fault("too_large", f"it sent {'a compressed message unasked' if self._compressed else long}")

    def _open(self, piece: bytes) -> None:
        """Checks the first event, because the client library waits without a limit for one that it can use."""
        self._head += piece
        text = self._head.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n").decode("utf-8", "replace")
        for block in text.split("\n\n")[:-1]:
            fields = {name: value.strip() for name, _, value in (line.partition(":") for line in block.split("\n"))}
            if "data" in fields:
                self._opens = fields.get("event") != "endpoint" or not _is_own(fields["data"], self._url)
                break
        else:
            if len(self._head) <= _PIECE:
                return
        if self._opens:
            raise self._failed(Fault("protocol", _NO_ENDPOINT, effect="none"))

    def _failed(self, fault: Fault) -> Fault:
        self._fail(fault)
        return fault

    async def aclose(self) -> None:
        """Closes the response."""
        await self._inner.aclose()


_NO_ENDPOINT = "its stream does not begin with an endpoint at its own address"


def _is_own(endpoint: str, url: str) -> bool:
    try:
        return urlsplit(urljoin(url, endpoint))[:2] == urlsplit(url)[:2]
    except ValueError:
        return False
