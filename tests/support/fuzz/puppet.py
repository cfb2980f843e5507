"""A stdio server whose every byte is a test's: the answers are made in this process, a relay writes them."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from callsheet.graphs import ServerConfig
from servers import FIXTURES, HANG

Answer = Callable[[Any], bytes | None]
"""Bytes for a request with this id; None ends the process."""
ABOUT = {"capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "puppet", "version": "1"}}
GREETING = {"protocolVersion": "2025-06-18", **ABOUT}
UNKNOWN = {"code": -32601, "message": "Method not found"}


def line(message: Any) -> bytes:
    """A value as a line of JSON."""
    return json.dumps(message).encode() + b"\n"


def result(value: Any) -> Callable[[Any], bytes]:
    """The answer that gives this."""
    return lambda number: line({"jsonrpc": "2.0", "id": number, "result": value})


class Puppet:
    """What a server says, and what it was sent.

    Attributes:
        answers: By method, what it says; other requests get the error "method not found".
        pages: Results of ``tools/list``; the second and those after it are given for a cursor.
        sent: Every message that it got, in all of its lives.
        served: Entries of the last listing that it gave.
        mortal: Whether it ends when it has answered a call.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {"initialize": result(GREETING)}
        self.pages: Sequence[Any] = ({"tools": []},)
        self.sent: list[Any] = []
        self.served: list[Any] = []
        self.mortal = False
        self._links: set[socket.socket] = set()
        self._news = threading.Condition()
        self._listings = self._page = 0
        self._door = socket.create_server(("127.0.0.1", 0))
        args = ("-I", "-S", str(FIXTURES / "relay_server.py"), str(self._door.getsockname()[1]))
        self.config = ServerConfig(command=sys.executable, args=args)
        threading.Thread(target=self._admit, daemon=True).start()

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The parameters of all calls."""
        return [message["params"] for message in self.sent if message.get("method") == "tools/call"]

    def announce(self) -> None:
        """Says that its tools have changed, and waits until it is asked for them, if it runs."""
        with self._news:
            before, alive = self._listings, list(self._links)
            for link in alive:
                with suppress(OSError):
                    link.sendall(line({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
            assert self._news.wait_for(lambda: self._listings > before or not self._links, HANG)

    def close(self) -> None:
        """Ends it."""
        self._door.close()
        for link in list(self._links):
            self._end(link)

    def _admit(self) -> None:
        with suppress(OSError):
            while True:
                link, _ = self._door.accept()
                self._links.add(link)
                threading.Thread(target=self._serve, args=(link,), daemon=True).start()

    def _serve(self, link: socket.socket) -> None:
        with suppress(OSError), link.makefile("rb") as lines:
            for received in lines:
                message = json.loads(received)
                self.sent.append(message)
                answer = self._answer(message)
                if answer is None:
                    break
                link.sendall(answer)
                if self.mortal and message.get("method") == "tools/call":
                    break
        self._end(link)

    def _end(self, link: socket.socket) -> None:
        with suppress(OSError):
            link.shutdown(socket.SHUT_RDWR)
        link.close()
        with self._news:
            self._links.discard(link)
            self._news.notify_all()

    def _answer(self, message: Any) -> bytes | None:
        number, method = message.get("id"), message.get("method")
        if method is None or number is None:
            return b""
        if method == "tools/list":
            return self._list(number, message)
        if method in self.answers:
            return self.answers[method](number)
        return line({"jsonrpc": "2.0", "id": number, "error": UNKNOWN})

    def _list(self, number: Any, message: Any) -> bytes | None:
        with self._news:
            if "cursor" in (message.get("params") or {}):
                self._page += 1
            else:
                self._page, self.served = 0, []
                self._listings += 1
                self._news.notify_all()
            page = self.pages[self._page] if self._page < len(self.pages) else {"tools": []}
            found = page.get("tools") if isinstance(page, dict) else None
            self.served += found if isinstance(found, list) else []
            return result(page)(number)
