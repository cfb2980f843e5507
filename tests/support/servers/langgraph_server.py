"""``langgraph dev`` as a process of its own: started, asked, stopped, killed and started again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx

BIN = Path(sys.executable).parent
_START_SECONDS = 180
# Linux ends it with the tests, however those end; elsewhere a run of tests that is killed leaves it.
_WITH_US = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 15)
os.execv(sys.argv[1], sys.argv[1:])
"""
_QUIET = {
    "LANGGRAPH_CLI_NO_ANALYTICS": "1",
    "LANGGRAPH_NO_VERSION_CHECK": "true",
    "LANGSMITH_TRACING": "false",
    "ANONYMIZED_TELEMETRY": "False",
}


class DevServer:
    """A development server on a port of its own.

    Args:
        folder: Where it is started; what it keeps goes there too.
        config: Its ``langgraph.json``.
        log: What it says goes to this file.
        env: Variables of the environment.
        options: More words for ``langgraph dev``.
    """

    def __init__(
        self, folder: Path, config: Path, log: Path, env: Mapping[str, str] | None = None, options: Sequence[str] = ()
    ) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._folder, self._config, self._log, self._options = folder, config, log, options
        self.env = {**os.environ, **_QUIET, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> float:
        """Starts it, and waits until it answers; gives the seconds that took."""
        words = ["dev", "--config", str(self._config), "--port", str(self.port), "--no-browser", "--no-reload"]
        began = time.monotonic()
        with self._log.open("ab") as sink:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _WITH_US, str(BIN / "langgraph"), *words, *self._options],
                cwd=self._folder,
                env=self.env,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() - began > _START_SECONDS:
                self.stop()
                raise RuntimeError(f"the server did not start:\n{self.said()[-3000:]}")
            time.sleep(0.05)
        return time.monotonic() - began

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends it; with SIGKILL as a power cut does."""
        if self._process is None or self._process.poll() is not None:
            return
        os.killpg(self._process.pid, how)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(10)
        self._process = None

    def said(self) -> str:
        """Its log."""
        return self._log.read_text(encoding="utf-8", errors="replace")

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/ok", timeout=2, verify=False).status_code == 200
        except httpx.HTTPError:
            return False
