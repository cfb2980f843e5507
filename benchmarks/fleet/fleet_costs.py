"""What a fleet of MCP servers costs: a call beside one over a bare session, and opening all of them.

Both sides of a pair run in turn in one process against the same program, because a machine's milliseconds are its own.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from mcp import Client, StdioServerParameters

from benchmarks.report.statistics import DRAWS, SEED, Interval
from callsheet.agents import Limits, SessionPool, ToolRegistry
from callsheet.agents.servers.catalogs.listings import LastListings
from callsheet.agents.servers.catalogs.server_catalog import read_listings
from callsheet.graphs import ServerConfig, load
from callsheet.graphs.catalog.loading import servers_in

CALLS, ROUNDS, START = 300, 3, 30.0
COLUMNS = ("what", "beside", "its figure", "ours", "difference or ratio", "wanted")
Measured = Sequence[Sequence[str]]
_SMALL = Path(__file__).parents[2] / "tests" / "fixtures" / "fault_server.py"
_ASKED: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "calculator": ("calculate", {"expression": "6*7"}),
    "time": ("get_current_time", {"timezone": "UTC"}),
    "memory": ("read_graph", {}),
}
_BAD = ("dead", "hanging", "crashing")
_ABOUT = (
    f"MCP servers over stdio. Calls: medians of {CALLS}, in turn with the MCP SDK's own client over a session of its "
    "own; ours are `BoundTool.ainvoke`, checks and limits included. Opening: every server started, greeted, listed and "
    f"ended, medians of {ROUNDS} rounds"
)
Call = Callable[[], Awaitable[object]]


def measure(config: Path | None, say: Callable[[str], None], *, quick: bool = False) -> dict[str, object]:
    """The body of the results file.

    Args:
        config: An ``mcp.json`` of installed servers; without one only what needs none is measured.
        say: Told what is measured next.
        quick: Few calls and one round.
    """
    fleet = servers_in(str(config)) if config else {}
    asked = {"small": ("work", {"x": 1}), **{name: _ASKED[name] for name in _ASKED if name in fleet}}
    servers = {"small": ServerConfig(command=sys.executable, args=(str(_SMALL), "ok")), **fleet}
    rows: list[Sequence[str]] = []
    for name, (tool, args) in asked.items():
        say(f"calls of {name}")
        rows.append(asyncio.run(_calls(name, servers[name], tool, args, CALLS // 10 if quick else CALLS)))
    if fleet:
        say(f"opening {len(fleet)} servers")
        rows += _openings(fleet, 1 if quick else ROUNDS)
        say("one dead, one hanging, one crashing")
        rows.append(_with_bad_ones(fleet))
    return {
        "about": _ABOUT,
        "columns": list(COLUMNS),
        "rows": rows,
    }


async def _calls(name: str, server: ServerConfig, tool: str, args: Mapping[str, Any], turns: int) -> Sequence[str]:
    part = read_listings({name: server}, SessionPool().list_all({name: server}), listings=LastListings(_scratch()))
    registry = ToolRegistry.from_catalog(load(part))
    (bound,) = registry.bind([f"{name}/{tool}"], "run").values()
    asked = {"type": "tool_call", "id": "1", "name": bound.name, "args": dict(args)}
    parameters = StdioServerParameters(command=server.command or "", args=list(server.args), env=dict(server.env))
    async with Client(parameters, cache=None) as client:
        bare, ours = await interleaved(
            lambda: client.call_tool(tool, dict(args)), lambda: bound.ainvoke(dict(asked)), turns
        )
        answer = await bound.ainvoke(dict(asked))
    await registry.close_run("run")
    if answer.status != "success":
        raise RuntimeError(f"{name}/{tool} failed: {answer.text}")
    more = difference_of_medians(ours, bare)
    return (
        f"a call of {name}/{tool}, ms", "a bare session", f"{1000 * np.median(bare):.2f}",
        f"{1000 * np.median(ours):.2f}", f"{more.mean:+.2f} [{more.low:+.2f}, {more.high:+.2f}]", "< 5",
    )  # fmt: skip


async def interleaved(first: Call, second: Call, turns: int) -> tuple[list[float], list[float]]:
    """Seconds of both, turn about, so that a busy moment meets both."""
    taken: tuple[list[float], list[float]] = ([], [])
    for call in (first, second):
        await call()
    for turn in range(turns):
        for which in (0, 1) if turn % 2 else (1, 0):
            start = time.perf_counter()
            await (first, second)[which]()
            taken[which].append(time.perf_counter() - start)
    return taken


def difference_of_medians(
    over: Sequence[float], under: Sequence[float], *, draws: int = DRAWS, seed: int = SEED
) -> Interval:
    """How much larger the median of one is, milliseconds of seconds, with its 95 % bootstrap interval over turns."""
    pairs = 1000 * np.array([over, under])
    drawn = np.random.default_rng(seed).integers(pairs.shape[1], size=(draws, pairs.shape[1]))
    medians = np.median(pairs[:, drawn], axis=2)
    low, high = np.percentile(medians[0] - medians[1], [2.5, 97.5])
    whole = np.median(pairs, axis=1)
    return Interval(float(whole[0] - whole[1]), float(low), float(high))


def _openings(fleet: Mapping[str, ServerConfig], rounds: int) -> Measured:
    whole, slowest = [], []
    listings: Mapping[str, Any] = {}
    for _ in range(rounds):
        began = time.perf_counter()
        listings = SessionPool(limits=Limits(start=300, list=120)).list_all(fleet)
        whole.append(time.perf_counter() - began)
        slowest.append(max(listing.seconds for listing in listings.values()))
        if broken := [name for name, listing in listings.items() if listing.error]:
            raise RuntimeError(f"not listed: {', '.join(broken)}")
    alone = _slowest_alone(fleet, listings)
    total, beside = float(np.median(whole)), float(np.median(slowest))
    what = f"opening {len(fleet)} servers at once, s"
    return [
        (what, "the slowest of them, meanwhile", f"{beside:.1f}", f"{total:.1f}", f"{total / beside:.2f}", "≤ 1.5"),
        (what, "the slowest of them, alone", f"{alone:.1f}", f"{total:.1f}", f"{total / alone:.2f}", ""),
    ]


def _slowest_alone(fleet: Mapping[str, ServerConfig], listings: Mapping[str, Any]) -> float:
    """Seconds of the slowest when it has the machine to itself; the five are tried that were slowest together."""
    last = sorted(listings, key=lambda name: -listings[name].seconds)[:5]
    return max(SessionPool().list_all({name: fleet[name]})[name].seconds for name in last)


def _with_bad_ones(fleet: Mapping[str, ServerConfig]) -> Sequence[str]:
    """The time to a catalog when three of the servers are replaced by one dead, one hanging and one crashing."""
    kept = dict(list(fleet.items())[: len(fleet) - len(_BAD)])
    modes = {"hanging": "hang_init", "crashing": "exit"}
    bad = {name: ServerConfig(command=sys.executable, args=(str(_SMALL), mode)) for name, mode in modes.items()}
    servers = {"dead": ServerConfig(command="no-such-program"), **bad, **kept}
    began = time.perf_counter()
    listings = SessionPool(limits=Limits(start=START)).list_all(servers)
    part = read_listings(servers, listings, listings=LastListings(_scratch()))
    taken = time.perf_counter() - began
    named = {problem.agent for problem in part.problems if problem.kind in ("start", "timeout")}
    if named != set(_BAD) or len(part.agents) != len(kept):
        raise RuntimeError(f"{len(part.agents)} servers were catalogued, and these named: {', '.join(sorted(named))}")
    what = f"a catalog of {len(kept)} of {len(servers)}, three bad ones named, s"
    return (what, "the limit of a start", f"{START:.0f}", f"{taken:.1f}", f"{taken - START:+.1f}", "≤ 3 more")


def _scratch() -> Path:
    return Path(tempfile.mkdtemp(prefix="callsheet-fleet-"))
