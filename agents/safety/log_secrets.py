"""Logs of the libraries that carry calls: what they say of addresses and arguments holds no secret."""

from __future__ import annotations

import logging
from typing import Protocol
from weakref import WeakSet


class Hides(Protocol):
    """Takes secrets out of a text."""

    def text(self, text: str) -> str:
        """The text without them."""
        ...


class _Hiding(logging.Filter):
    """Rewrites records; none is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.known: WeakSet[Hides] = WeakSet()

    def filter(self, record: logging.LogRecord) -> bool:
        message = said = record.getMessage()
        for hides in list(self.known):
            said = hides.text(said)
        if said != message:
            record.msg, record.args = said, ()
        return True


_HIDING = _Hiding()
# A filter of a logger does not see what its children log, so each is named.
_LOGGERS = (
    *("client", "mcp.client.client", "mcp.client.sse", "mcp.client.streamable_http"),
    *("mcp.shared.dispatcher", "mcp.shared.jsonrpc_dispatcher"),
    *(f"{core}.{part}" for core in ("httpcore", "httpcore2") for part in ("connection", "http11", "http2", "proxy")),
    *("httpx", "httpx2"),
)


def hide_in_logs(hides: Hides) -> None:
    """Keeps secrets out of what those libraries log, for as long as somebody holds ``hides``."""
    _HIDING.known.add(hides)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_HIDING)
