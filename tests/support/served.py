"""Our ``langgraph.json`` over the agents of ``tests/fixtures/served``, and how fast a server answers meanwhile."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx

from langgraph_server import DevServer

ROOT = Path(__file__).parents[2]
AGENTS = ROOT / "tests" / "fixtures" / "served" / "served_agents.py"


def served(folder: Path, **env: str) -> DevServer:
    """A server in a folder of its own, ten runs at once; not started yet."""
    for file in (ROOT / "langgraph.json", AGENTS):
        shutil.copy(file, folder)
    known = {"CALLSHEET_HOME": str(folder / "home"), "CALLSHEET_CATALOG": "served_agents:agents"}
    config, log = folder / "langgraph.json", folder / "server.log"
    return DevServer(folder, config, log, {**known, **env}, ["--n-jobs-per-worker", "10"])


@contextmanager
def running(server: DevServer) -> Iterator[DevServer]:
    """Starts a server, and stops it in the end."""
    try:
        server.start()
        yield server
    finally:
        server.stop()


class Pings:
    """How long a server takes to say that it is there, beside one that does nothing else.

    The machine is shared: what the other one waits for too is not this one's fault.
    """

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.beside: list[float] = []

    def slowest(self, share: float = 0.95) -> float:
        """Seconds that this share of the answers stayed below, over what the machine itself took."""
        return _quantile(self.seconds, share) - _quantile(self.beside, share)


@asynccontextmanager
async def pinged(url: str, folder: Path) -> AsyncIterator[Pings]:
    """Asks ``/ok`` again and again as long as it lasts."""
    pings = Pings()
    with _idle_server(folder) as idle:
        asking = [asyncio.create_task(_ask(f"{url}/ok", pings.seconds)), asyncio.create_task(_ask(idle, pings.beside))]
        try:
            yield pings
        finally:
            for task in asking:
                task.cancel()


async def _ask(url: str, seconds: list[float]) -> None:
    async with httpx.AsyncClient(timeout=30) as http:
        while True:
            began = time.monotonic()
            (await http.get(url)).raise_for_status()
            seconds.append(time.monotonic() - began)
            await asyncio.sleep(0.02)


@contextmanager
def _idle_server(folder: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1", "--directory", str(folder)]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}/"
        while True:
            try:
                httpx.get(url, timeout=2)
                break
            except httpx.HTTPError:
                time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait(10)


def _quantile(values: list[float], share: float) -> float:
    return sorted(values)[int(len(values) * share)]
