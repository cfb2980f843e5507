"""What the gateway adds to a call: the same tool by a client of its own server, and through the gateway."""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

from benchmarks.sets.generated import generated_catalog
from callsheet.graphs import dump

SIZES, CALLS = (1, 10_000), 500
COLUMNS = (
    "tools in the catalog",
    "transport",
    "direct, ms",
    "gateway, ms",
    "added, median ms",
    "added, p95 ms",
    "target ms",
)
_TARGET = "5"
_ABOUT = (
    f"{CALLS} calls of a tool that returns its argument, alternately by a client of the tool's own server, and through "
    "`callsheet mcp` in front of it, each a process, over the same transport. Behind the gateway, the tool's server is "
    "a process over stdio"
)
_ROOT, _OWN = Path(__file__).parents[2], ["-m", "benchmarks.costs.gateway_costs"]
_ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
Call = Callable[[], Awaitable[Any]]


def measure(say: Callable[[str], None], *, quick: bool = False) -> dict[str, object]:
    """The table, as the body of a results file."""
    rows: list[list[str]] = []
    for tools in SIZES[:1] if quick else SIZES:
        say(f"gateway: {tools:,} tools")
        rows += asyncio.run(_rows(tools, 20 if quick else CALLS))
    return {"name": "gateway", "about": _ABOUT, "columns": list(COLUMNS), "rows": rows}


async def _rows(tools: int, calls: int) -> list[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        gateway = ["-m", "callsheet", "mcp", "--yes", "--index", f"{folder}/index", *_catalog(Path(folder), tools)]
        async with _process(_OWN) as direct, _process(gateway) as through:
            rows = [await _row(tools, "stdio", direct, through, calls)]
        with _served([*_OWN, "http"]) as near, _served([*gateway, "--http", "--port", "0"]) as far:
            async with _over(near) as direct, _over(far) as through:
                return [*rows, await _row(tools, "HTTP", direct, through, calls)]


def _catalog(folder: Path, tools: int) -> list[str]:
    """The options that name a catalog of this size with the tool in it."""
    entry = {"command": sys.executable, "args": _OWN, "cwd": str(_ROOT), "callsheet": {"trusted": True}}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"echo": entry}}))
    named = ["--catalog", f"{folder}/mcp.json"]
    if tools == 1:
        return named
    (folder / "callsheet.json").write_text(dump(generated_catalog(tools - 1)))
    return [*named, "--catalog", f"{folder}/callsheet.json"]


async def _row(tools: int, transport: str, direct: Client, through: Client, calls: int) -> list[str]:
    async def bare() -> object:
        return await direct.call_tool("echo", {"text": "x"})

    async def gateway() -> object:
        return await through.call_tool("call_tool", {"tool": "echo/echo", "arguments": {"text": "x"}})

    for call in (bare, gateway) * 3:
        await call()
    pairs = [(await _ms(bare), await _ms(gateway)) for _ in range(calls)]
    added = [after - before for before, after in pairs]
    middle = [statistics.median(column) for column in (*zip(*pairs, strict=True), added)]
    high = statistics.quantiles(added, n=20)[-1]
    return [f"{tools:,}", transport, *(f"{value:.1f}" for value in (*middle, high)), _TARGET]


async def _ms(call: Call) -> float:
    began = time.perf_counter()
    await call()
    return (time.perf_counter() - began) * 1000


def _process(words: list[str]) -> Client:
    return Client(StdioServerParameters(command=sys.executable, args=words, cwd=_ROOT), read_timeout_seconds=600)


def _over(url: str) -> Client:
    return Client(streamable_http_client(f"{url}/mcp"))


@contextmanager
def _served(words: list[str]) -> Iterator[str]:
    """The address of a program that says it on standard error."""
    with subprocess.Popen([sys.executable, *words], cwd=_ROOT, stderr=subprocess.PIPE, text=True) as program:
        try:
            yield next(found[0] for line in program.stderr or () if (found := _ADDRESS.search(line)))
        finally:
            program.terminate()


def _echo() -> MCPServer:
    server = MCPServer("echo", log_level="INFO")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True, idempotent_hint=True))
    def echo(text: str) -> str:
        """Returns the text."""
        return text

    return server


if __name__ == "__main__":
    if sys.argv[1:]:
        _echo().run("streamable-http", port=18_766)
    else:
        _echo().run("stdio")
