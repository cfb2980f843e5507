"""An ASGI application that is served in a thread, on a socket that listens already."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


@contextmanager
def web_thread(app: Any, listener: socket.socket) -> Iterator[None]:
    """Serves it until the end of the block; it has started when the block begins."""
    web = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=web.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not web.started:
            time.sleep(0.01)
        yield
    finally:
        web.should_exit = True
        thread.join()
