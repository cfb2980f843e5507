"""A web app on a socket of this machine, outside of the LangGraph server."""

from __future__ import annotations

import socket

import uvicorn
from starlette.types import ASGIApp

from callsheet.graphs import SettingsError

LOOPBACK = "127.0.0.1"


def listening(port: int, host: str = LOOPBACK) -> socket.socket:
    """A listening socket; port 0 selects a free one.

    Raises:
        SettingsError: The port is in use, or the address is not of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        where = f"port {port}" if host == LOOPBACK else f"port {port} of {host}"
        raise SettingsError(f"{where} cannot be used: {error.strerror}: give another one with --port") from error
    return listener


def serve(app: ASGIApp, listener: socket.socket) -> None:
    """Serves until the process is interrupted; open streams then have five seconds to end."""
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5)
    uvicorn.Server(config).run(sockets=[listener])
