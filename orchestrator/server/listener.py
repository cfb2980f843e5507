"""Serves a web app on a socket of this machine, outside of the LangGraph server."""

from __future__ import annotations

import socket

import uvicorn
from starlette.types import ASGIApp

from callsheet.graphs import SettingsError

LOOPBACK = "127.0.0.1"


def listening(port: int, host: str = LOOPBACK) -> socket.socket:
    """Returns a listening socket; port 0 selects a free one.

    Raises:
        SettingsError: The port is in use, or the address is not of this machine.
    """
    v6 = ":" in host
    try:
        return socket.create_server(
            (host, port),
            family=socket.AF_INET6 if v6 else socket.AF_INET,
            dualstack_ipv6=v6 and socket.has_dualstack_ipv6(),
        )
    except OSError as error:
        where = f"port {port}" if host == LOOPBACK else f"port {port} of {host}"
        why = (error.strerror or str(error)).partition(" (while")[0]
        raise SettingsError(f"{where} cannot be used: {why}: give another one with --port") from error


def serve_app(app: ASGIApp, listener: socket.socket) -> None:
    """Serves until the process is interrupted; open streams then have five seconds to finish."""
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5)
    uvicorn.Server(config).run(sockets=[listener])
