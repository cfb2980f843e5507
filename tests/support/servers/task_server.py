"""``tests/fixtures/task_server.py`` at an address of its own: what it was asked, and when its tasks may end."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from callsheet.graphs import ServerConfig
from callsheet.graphs.catalog.formats.server_config import ServerOptions
from servers import FIXTURES, HANG, until


class TaskServer:
    """A server that works on its calls as tasks, which go on until they are released.

    Args:
        folder: Where it stores its tasks, so that it knows them after it was killed.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/mcp"

    def config(self, **said: Any) -> ServerConfig:
        """How it is reached; ``said`` are its terms (trust, limits)."""
        return ServerConfig(url=self.url, transport="http", callsheet=ServerOptions(**said))

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        script = str(FIXTURES / "task_server.py")
        self._process = subprocess.Popen([sys.executable, script, str(self._port), str(self.folder)])
        assert until(self._answers)

    def kill(self) -> None:
        """Kills it with -9, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(HANG)
            self._process = None

    def release(self) -> None:
        """Lets all tasks end."""
        (self.folder / "release").touch()

    def count(self, line: str) -> int:
        """How often a line is in its log."""
        log = self.folder / "log"
        return log.read_text().splitlines().count(line) if log.is_file() else 0

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), 1).close()
        except OSError:
            return False
        return True
