"""A server over HTTP whose every byte is a test's, headers, framing and the end of a connection included."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import BinaryIO, Literal

from callsheet.graphs import ServerConfig
from callsheet.graphs.catalog.formats.server_config import ServerOptions
from puppet import Puppet

Ending = Literal["keep", "close", "reset", "hold", "drip"]
TYPES = {"http": b"application/json", "sse": b"text/event-stream"}


@dataclass(frozen=True)
class Reply:
    """What a request gets.

    Attributes:
        wire: The bytes of the answer.
        ending: What becomes of the connection then; ``drip`` repeats the last byte for ever.
        streamed: For transport ``sse``, what the stream gets.
    """

    wire: bytes
    ending: Ending = "keep"
    streamed: bytes = b""


def reply(body: bytes, kind: bytes = b"application/json", status: bytes = b"200 OK") -> bytes:
    """An answer as it should be."""
    return b"HTTP/1.1 %s\r\ncontent-type: %s\r\ncontent-length: %d\r\n\r\n%s" % (status, kind, len(body), body)


def event(data: bytes, name: bytes = b"message") -> bytes:
    """An event of a stream."""
    return b"event: %s\ndata: %s\n\n" % (name, data.strip())


class HttpPuppet(Puppet):
    """The same over HTTP.

    Args:
        transport: ``http`` (streamable) or ``sse``.
        limits: Its own.

    Attributes:
        replies: By method of the message, or of HTTP if it is not POST, what is made of the answer.
        trap: Another address, which nobody has to ask.
        trapped: Whether somebody did.
    """

    def __init__(self, transport: Literal["http", "sse"], **limits: float) -> None:
        super().__init__()
        self.replies: dict[str, Callable[[bytes], Reply]] = {}
        self.requests: list[bytes] = []
        self.trapped = False
        self._trap = socket.create_server(("127.0.0.1", 0))
        self.trap = f"http://127.0.0.1:{self._trap.getsockname()[1]}/"
        self._streams: list[socket.socket] = []
        options = ServerOptions(limits=limits)
        url = f"http://127.0.0.1:{self._door.getsockname()[1]}/mcp"
        self.config = ServerConfig(url=url, transport=transport, callsheet=options)
        threading.Thread(target=self._watch, daemon=True).start()

    def announce(self) -> None:
        """Says nothing: it is listed when a session opens."""

    def close(self) -> None:
        """Ends it."""
        self._trap.close()
        super().close()

    def _watch(self) -> None:
        with suppress(OSError):
            while True:
                self._trap.accept()[0].close()
                self.trapped = True

    def _serve(self, link: socket.socket) -> None:
        with suppress(OSError, ValueError), link.makefile("rb") as stream:
            while request := _read(stream):
                method, body = request
                self.requests.append(method)
                made = self._reply(method, body, link)
                link.sendall(made.wire)
                for listener in self._streams[-1:] if made.streamed else ():
                    listener.sendall(made.streamed)
                if made.ending != "keep":
                    self._finish(link, made)
                    break
        self._end(link)

    def _reply(self, method: bytes, body: bytes, link: socket.socket) -> Reply:
        if method != b"POST":
            wrap = self.replies.get(method.decode())
            made = wrap(b"") if wrap else self._opened(method)
            if method == b"GET":
                self._streams.append(link)
            return made
        message = json.loads(body)
        self.sent.append(message)
        answer = self._answer(message) or b""
        if wrap := self.replies.get(message.get("method") or "response"):
            return wrap(answer)
        if self.config.transport == "sse":
            return Reply(reply(b"", status=b"202 Accepted"), streamed=event(answer) if answer else b"")
        return Reply(reply(answer) if answer else reply(b"", status=b"202 Accepted"))

    def _opened(self, method: bytes) -> Reply:
        if method == b"GET" and self.config.transport == "sse":
            head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
            return Reply(head + event(b"/post", b"endpoint"))
        return Reply(reply(b"", status=b"405 Method Not Allowed"))

    def _finish(self, link: socket.socket, made: Reply) -> None:
        if made.ending == "reset":
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif made.ending == "hold":
            while link.recv(65_536):
                pass
        elif made.ending == "drip":
            while True:
                link.sendall(made.wire[-1:] or b"x")
                time.sleep(0.02)


def _read(stream: BinaryIO) -> tuple[bytes, bytes] | None:
    """Method and body of the next request."""
    head = list[bytes](_lines(stream))
    if not head:
        return None
    sizes = [int(line.split(b":")[1]) for line in head if line.lower().startswith(b"content-length:")]
    return head[0].split(b" ")[0], stream.read(sizes[0]) if sizes else b""


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    while (line := stream.readline().rstrip(b"\r\n")) != b"":
        yield line
