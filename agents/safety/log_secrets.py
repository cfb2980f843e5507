"""Removes secrets from the log messages of the libraries that carry calls."""

from __future__ import annotations

import logging
from typing import Protocol
from weakref import WeakSet


class Hides(Protocol):
    """Removes secrets from texts."""

    def text(self, text: str) -> str:
        """The text without secrets."""
        ...


class _Hiding(logging.Filter):
    """Rewrites log records; none is dropped."""

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
# A logger's filter does not see the records of child loggers, so each logger is listed.
_LOGGERS = (
    *("client", "mcp.client.client", "mcp.client.sse", "mcp.client.streamable_http"),
    *("mcp.shared.dispatcher", "mcp.shared.jsonrpc_dispatcher"),
    *(f"{core}.{part}" for core in ("httpcore", "httpcore2") for part in ("connection", "http11", "http2", "proxy")),
    *("httpx", "httpx2"),
)


def hide_in_logs(hides: Hides) -> None:
    """Removes secrets from the logs of these libraries, as long as ``hides`` is referenced."""
    _HIDING.known.add(hides)
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_HIDING)
