"""Our ``langgraph.json`` over the agents of ``tests/fixtures/served``, and how fast a server answers meanwhile."""

from __future__ import annotations

import asyncio
import json
import math
import os
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx

from langgraph_server import DevServer
from servers import HANG

ROOT = Path(__file__).parents[3]
AGENTS = ROOT / "tests" / "fixtures" / "served"
MODELS = ROOT / "tests" / "support" / "models"


def served(folder: Path, **env: str) -> DevServer:
    """A server in a folder of its own, not started yet, ten runs at once; its graph ``scripted`` has a script.

    ``deep`` is a deep agent with Callsheet's tools.
    """
    for file in AGENTS.glob("*.py"):
        shutil.copy(file, folder)
    config, log = folder / "langgraph.json", folder / "server.log"
    ours = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
    ours["graphs"] |= {"scripted": "scripted_graph:graph", "deep": "deep_graph:graph"}
    config.write_text(json.dumps(ours), encoding="utf-8")
    known = {
        "CALLSHEET_HOME": str(folder / "home"),
        "CALLSHEET_CATALOG": "served_agents:agents",
        "PYTHONPATH": os.pathsep.join([str(folder), str(MODELS), os.environ.get("PYTHONPATH", "")]),
    }
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
    """How long a server takes to say that it is there, in shares of the time for which it was asked.

    A server whose loop is held up by what it does answers when that is done: about as long as all of it took.
    """

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.whole = 0.0

    def slowest(self, share: float = 1.0) -> float:
        """What this share of the answers stayed below, as a share of the whole time."""
        return sorted(self.seconds)[math.ceil(len(self.seconds) * share) - 1] / self.whole


@asynccontextmanager
async def pinged(url: str) -> AsyncIterator[Pings]:
    """Asks ``/ok`` again and again as long as it lasts."""
    pings, began = Pings(), time.monotonic()
    asking = asyncio.create_task(_ask(f"{url}/ok", pings.seconds))
    try:
        yield pings
    finally:
        pings.whole = time.monotonic() - began
        asking.cancel()


async def _ask(url: str, seconds: list[float]) -> None:
    async with httpx.AsyncClient(timeout=HANG) as http:
        while True:
            began = time.monotonic()
            try:
                (await http.get(url)).raise_for_status()
            finally:
                seconds.append(time.monotonic() - began)
            await asyncio.sleep(0.02)
