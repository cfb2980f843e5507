"""MCP servers for tests, over stdio and HTTP, and what became of their processes."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from callsheet.graphs import ServerConfig
from callsheet.graphs.catalog.formats.server_config import ServerOptions

HANG = 120.0
"""Seconds: what is not there by then never comes, on a slow machine too."""
FIXTURES = Path(__file__).parents[2] / "fixtures"
CHAOS = Path(__file__).parents[4] / "shared" / "fleet" / "chaos_server.py"


class Servers:
    """Servers that misbehave, known by a tag and by what they write into a log.

    Args:
        folder: Where the logs go.
    """

    def __init__(self, folder: Path) -> None:
        self.tag = f"callsheet-{uuid.uuid4().hex}"
        self._folder = folder

    def stdio(self, mode: str, *, size: int = 400_000, log: str = "", **said: Any) -> ServerConfig:
        """``fault_server.py`` in a mode; ``said`` are its terms (trust, limits)."""
        args = ("-S", str(FIXTURES / "fault_server.py"), mode, str(size), self.tag)
        env = {"FAULT_LOG": str(self._folder / (log or f"{mode}.log"))}
        return ServerConfig(command=sys.executable, args=args, env=env, callsheet=ServerOptions(**said))

    def chaos(self, mode: str, *, size: int = 10_000_000, log: str = "", **said: Any) -> ServerConfig:
        """The shared ``chaos_server.py`` in a mode."""
        state, file = self._folder / f"{log or mode}.state", self._folder / f"{log or mode}.log"
        args = (str(CHAOS), mode, "--state", str(state), "--size", str(size), "--log", str(file), "--name", self.tag)
        return ServerConfig(command=sys.executable, args=args, callsheet=ServerOptions(**said))

    def count(self, log: str, what: str) -> int:
        """How often something is in a log."""
        file = self._folder / f"{log}.log"
        return file.read_text().count(what) if file.is_file() else 0

    def processes(self) -> list[str]:
        """Those that are there, their children included."""
        return alive(self.tag)


def alive(tag: str) -> list[str]:
    """The processes that have this tag in their command line or in their environment, which children inherit."""
    proc = Path("/proc")
    if proc.is_dir():
        return [folder.name for folder in proc.iterdir() if folder.name.isdigit() and tag in _said(folder)]
    command = ["ps", "-E", "-A", "-ww", "-o", "pid=,command="]
    listed = subprocess.run(command, capture_output=True, text=True, check=True, errors="replace").stdout
    return [line for line in listed.splitlines() if tag in line]


def _said(folder: Path) -> str:
    try:
        return (folder / "cmdline").read_text(errors="replace") + (folder / "environ").read_text(errors="replace")
    except OSError:
        return ""


class HttpServer:
    """``http_fault_server.py`` at an address of its own, to be killed and started again."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.log = folder / "http.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def config(self) -> ServerConfig:
        """How it is reached."""
        return ServerConfig(url=f"http://127.0.0.1:{self._port}/mcp", transport="http")

    def start(self, mode: str = "ok") -> None:
        """Starts it, and waits until it answers."""
        self.kill()
        script = str(FIXTURES / "http_fault_server.py")
        self._process = subprocess.Popen([sys.executable, script, str(self._port), mode, str(self.log)])
        assert until(self._answers)

    def kill(self) -> None:
        """Kills it with -9, if it runs."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(HANG)
            self._process = None

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), 1).close()
        except OSError:
            return False
        return True


def until(condition: Callable[[], bool], seconds: float = HANG) -> bool:
    """Waits for a condition; says whether it came true before a hang is certain."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.05)
    return condition()
