"""The body of an answer over HTTP, of which no more is held than a message may have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import cast

import httpx2

from callsheet.agents.servers.transport.stdio_process import ChildProcess
from callsheet.agents.tools.tool_result import Fault

_PIECE = 4_096
_ENDS = (b"\n\n", b"\r\r", b"\n\r")
"""With one of these an event of a stream has ended."""


class BoundedBody(httpx2.AsyncByteStream):
    """A body that ends the session when it, or one event of a stream, is longer than a message may be.

    Args:
        response: Whose body it is.
        child: Knows the limits, and notes what went beyond them.
    """

    def __init__(self, response: httpx2.Response, child: ChildProcess) -> None:
        self._inner, self._child = cast("httpx2.AsyncByteStream", response.stream), child
        self._compressed = response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity")
        self._events = response.headers.get("content-type", "").lower().startswith("text/event-stream")

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Its pieces.

        Raises:
            Fault: It is too long, or compressed unasked.
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
                # Who parses the pieces may wait for nothing, and others have a turn too.
                await asyncio.sleep(0)

    @staticmethod
    def _size(size: int, piece: bytes) -> int:
        """Bytes since the last event of a stream has ended; the first byte was counted before."""
        end = max(piece.rfind(mark) for mark in _ENDS)
        return size + len(piece) - 1 if end < 0 else len(piece) - end

    def _too_large(self) -> Fault:
        long = f"a message of more than {self._child.limits.message:,} bytes"
        what = "a compressed message unasked" if self._compressed else long
        self._child.fault = Fault("too_large", f"it sent {what}")
        return self._child.fault

    async def aclose(self) -> None:
        """Ends the answer."""
        await self._inner.aclose()
