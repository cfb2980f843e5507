"""A server that is fuzzed, one that is well, and what has to hold for both whatever the first one says."""

from __future__ import annotations

import asyncio
import json
import logging
import resource
import shutil
import statistics
import sys
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

from hypothesis import currently_in_test_context, target

from callsheet.agents import Limits, ToolRegistry
from callsheet.agents.calls.outcome import Kind
from callsheet.agents.calls.refusal import Refusal
from callsheet.agents.calls.tool_result import KeptResults
from callsheet.agents.servers.catalogs.last_listings import LastListings
from callsheet.agents.servers.catalogs.listings import Listing
from callsheet.agents.servers.catalogs.server_catalog import read_listings
from callsheet.agents.servers.session_pool import SessionPool
from callsheet.graphs import Catalog, Loaded, Policy, ServerConfig, User, load
from callsheet.graphs.trust.pins import PinBook
from fuzzing import is_long
from puppet import Puppet
from servers import FIXTURES, HANG

CAP, OUTPUT = 1_000_000, 20_000
LIMITS = Limits(start=HANG, list=HANG, call=HANG, message=CAP, output=OUTPUT, tools=2_000, failures=10**9, idle=3_600)
SLOWER = 60
"""Times as long as alone may a call of the healthy server take in the median: it was 7,000 before there were shares."""
RISE = 24 * CAP
"""Bytes by which one example may raise the peak of memory."""
STALL = 1_000
"""Times as much of the loop's processor time as a call takes may pass between two calls of the healthy server."""
HEALTHY = ServerConfig(command=sys.executable, args=("-S", str(FIXTURES / "fault_server.py"), "ok"))
_METHODS = {
    "initialize", "notifications/initialized", "server/discover", "tools/list", "tools/call",
    "notifications/cancelled", "subscriptions/listen",
}  # fmt: skip


class Stage:
    """A pool, a registry over a puppet's tools, and a healthy server beside it.

    Args:
        folder: For pins and listings.
        puppet: The server that is fuzzed.
    """

    def __init__(self, folder: Path, puppet: Puppet) -> None:
        self.results = folder / "results"
        self.puppet, self.pool = puppet, SessionPool(limits=LIMITS, results=KeptResults(self.results))
        self.registry = ToolRegistry.from_catalog(load(Catalog(agents=())), pool=self.pool)
        self.book, self._kept = PinBook(folder / "pins.json"), folder / "listings"
        self.listing: Listing | None = None
        self.pool.watch(self._heard)
        self._runner = asyncio.Runner()
        self._alone, self._beside = list[float](), list[float]()
        self._turn = 0.0
        self._loop_time, self.gaps = 0.0, list[float]()

    def run(self, example: Coroutine[Any, Any, None]) -> None:
        """Runs an example while the healthy server is called, and holds it to what every example has to keep."""
        if not self._alone:
            self._runner.run(self._calls(3))
            self._alone = self._runner.run(self._calls(30))
            self._turn = statistics.median(self.gaps[3:])
        before, spent = peak(), self._loop_time
        self.gaps.clear()
        self.puppet.sent.clear()  # an example that failed has left what it sent
        with quiet():
            self._runner.run(self._with_others(example))
        if is_long() and currently_in_test_context():  # else the machine would say which examples are tried
            target(self._loop_time - spent, label="seconds of the loop")
        assert peak() - before < RISE
        assert max(self.gaps) < STALL * self._turn
        assert all(message.get("method", "initialize") in _METHODS for message in self.puppet.sent)

    def open(self, *tools: Any) -> None:
        """Offers and accepts these, for examples that are about calls."""
        self._runner.run(self.offer({"tools": list(tools)}))
        self.accept()

    def finish(self) -> None:
        """Says whether the healthy server was slowed, and closes."""
        self.pool.close()
        self.puppet.close()
        self._runner.close()
        if self._beside:
            assert statistics.median(self._beside) < SLOWER * statistics.median(self._alone)

    async def offer(self, *pages: Any) -> str:
        """Has the session take a listing; why it did not, as a sort of trouble, or empty."""
        self.puppet.pages, self.listing = pages, None
        await asyncio.to_thread(self.puppet.announce)
        refusal, config = Refusal("only listed"), self.puppet.config
        nothing = await self.pool.call("fuzz", "puppet", config, "none", {}, permit=lambda: refusal)
        return "" if nothing.error.endswith("only listed") else nothing.kind

    def accept(self, policy: Policy | Path | None = None) -> Loaded:
        """Pins the listing as that of a server that is met for the first time, and binds from it."""
        self.book.file.remove()
        shutil.rmtree(self._kept, ignore_errors=True)
        return self.read(policy)

    def read(self, policy: Policy | Path | None = None) -> Loaded:
        """The catalog by the last listing and the pins as they are; the registry binds from it."""
        answer = self.listing or Listing(error="it was not listed", kind="protocol")
        config, answers = {"puppet": self.puppet.config}, {"puppet": answer}
        part = read_listings(config, answers, pins=self.book, listings=LastListings(self._kept))
        loaded = load(part, policy=policy)
        self.registry.follow(loaded)
        return loaded

    async def call(self, tool_id: str, args: dict[str, Any], user: User | None = None) -> Any:
        """The message that a model gets for a call; None where the tool is not held."""
        for name, tool in self.registry.bind([tool_id], "fuzz", user=user, held_only=True).items():
            message = await tool.ainvoke({"type": "tool_call", "id": "1", "name": name, "args": args})
            sound(message)
            return message
        return None

    def _heard(self, agent_id: str, server: ServerConfig, listing: Listing, user: str) -> None:
        if agent_id == "puppet":
            self.listing = listing

    async def _with_others(self, example: Coroutine[Any, Any, None]) -> None:
        async with asyncio.timeout(HANG):
            task = asyncio.create_task(example)
            try:
                while not task.done():
                    self._beside += await self._calls(1)
                await task
            finally:
                task.cancel()  # one that failed has no part in the next

    async def _calls(self, count: int) -> list[float]:
        def permit() -> None:
            now = time.thread_time()
            self.gaps.append(now - self._loop_time)
            self._loop_time = now

        spent = []
        for _ in range(count):
            began = time.perf_counter()
            assert not (await self.pool.call("healthy", "healthy", HEALTHY, "work", {}, permit=permit)).error
            spent.append(time.perf_counter() - began)
        return spent


def sound(message: Any) -> None:
    """Holds a message to what every message of a tool is: bounded, fit for a checkpoint, and of a known kind."""
    assert message.status in ("success", "error")
    assert isinstance(message.content, str)
    assert len(message.content) < 2 * OUTPUT
    assert message.artifact["kind"] in get_args(Kind)
    assert (message.status == "error") or message.artifact["kind"] in ("", "too_large")
    json.dumps(message.artifact, ensure_ascii=False).encode()


def peak() -> int:
    """The most bytes of memory that this process has had."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


@contextmanager
def quiet() -> Iterator[None]:
    """Fails if an error is logged meanwhile, such as that of a task which nobody looked at."""
    logged: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: logged.append(record.getMessage())  # type: ignore[method-assign]
    watched = [logging.getLogger(name) for name in ("asyncio", "callsheet")]
    for logger in watched:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in watched:
            logger.removeHandler(handler)
    assert not logged, logged
