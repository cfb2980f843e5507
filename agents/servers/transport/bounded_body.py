"""The body of an HTTP response, limited to the maximum size of a message."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import httpx2

from callsheet.agents.servers.transport.stdio_process import ChildProcess
from callsheet.agents.tools.tool_result import Fault

_PIECE = 4_096
_ENDS = (b"\n\n", b"\r\r", b"\n\r")
"""End of an event in a stream."""


class BoundedBody(httpx2.AsyncByteStream):
    """A body that ends the session if it, or one event of a stream, exceeds the maximum size of a message."""

    def __init__(self, response: httpx2.Response, child: ChildProcess) -> None:
        self._inner, self._child = cast("httpx2.AsyncByteStream", response.stream), child
        self._compressed = response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity")
        self._events = response.headers.get("content-type", "").lower().startswith("text/event-stream")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yields the body.

        Raises:
            Fault: It is too long, or compressed without request.
        """
        size, last = 0, b""
        async for chunk in self._inner:
            for start in range(0, len(chunk), _PIECE):
                piece = chunk[start : start + _PIECE]
                size = self._size(size, last + piece) if self._events else size + len(piece)
                last = piece[-1:]
                if self._compressed or size > self._child.limits.message:
                    raise self._too_large()
                yield piece
                # The parser of these pieces may never wait, so other tasks get a turn here.
                await asyncio.sleep(0)

    @staticmethod
    def _size(size: int, piece: bytes) -> int:
        """Bytes since the end of the last event; the first byte was counted before."""
        end = max(piece.rfind(mark) for mark in _ENDS)
        return size + len(piece) - 1 if end < 0 else len(piece) - end

    def _too_large(self) -> Fault:
        long = f"a message of more than {self._child.limits.message:,} bytes"
        what = "a compressed message unasked" if self._compressed else long
        self._child.fault = Fault("too_large", f"it sent {what}")
        return self._child.fault

    async def aclose(self) -> None:
        """Closes the response."""
        await self._inner.aclose()
