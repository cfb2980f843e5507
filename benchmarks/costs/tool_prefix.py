"""What ``callsheet mcp --direct N`` does to a prompt cache: how much of the list of tools stays from turn to turn."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from itertools import chain, groupby, pairwise, takewhile

from mcp import Client, types

from benchmarks.methods.search import World
from benchmarks.sets.cases import Benchmark
from callsheet.agents import ToolRegistry
from callsheet.graphs import Tool
from callsheet.orchestrator.server.gateway.catalog_gateway import Caller, Gateway
from callsheet.orchestrator.server.gateway.mcp_gateway import GatewayServer
from callsheet.retrievers import AgentGraphRetriever

SET = "livemcpbench-steps"
SHOWN, QUESTIONS = (5, 10, 20), (1, 5)
COLUMNS = ("list of tools", "questions", "tokens", "turns", "unchanged", "list kept", "tokens kept")
_ABOUT = (
    "A client searches for each step of one question, or of five in a row, in one session; each search is a turn. "
    "*unchanged*: the share of turns after which the list is as before, so that a provider's cache keeps all. *list "
    "kept*: the mean share of the list before, from its beginning, that is the same after a turn; what follows it in "
    "the prompt is read anew. Tokens, of the list after a turn and of the part kept, are four bytes of JSON each"
)
Lists = Sequence[Sequence[bytes]]
"""The list of tools before the first search of a session, and after each."""


def measure(bench: Benchmark, world: World) -> Mapping[str, object]:
    """The body of the results file."""
    sessions = {many: _sessions(bench, many) for many in QUESTIONS}
    retriever = AgentGraphRetriever.from_catalog(world.catalog, index=":memory:", embeddings=world.vectors)
    gateway = Gateway(retriever, ToolRegistry(world.catalog, {}))
    rows = []
    for name, direct in (("three tools", 0), *((f"three tools, --direct {most}", most) for most in SHOWN)):
        for many, queries in sessions.items():
            rows.append([name, str(many), *row([asyncio.run(_listed(gateway, one, direct)) for one in queries])])
    everything = [_bytes(_whole(tool)) for tool in world.catalog.tools.values()]
    for many, queries in sessions.items():
        rows.append(
            ["all tools, without Callsheet", str(many), *row([[everything] * (len(one) + 1) for one in queries])]
        )
    return {"about": _ABOUT, "columns": list(COLUMNS), "rows": rows}


def row(sessions: Sequence[Lists]) -> list[str]:
    """Mean size, number of turns, share of unchanged turns, share and size of what stays."""
    turns = [turn for lists in sessions for turn in pairwise(lists)]
    size, same, share, kept = (
        sum(column) / len(turns)
        for column in zip(
            *(
                (_size(after), before == after, _kept(before, after) / _size(before), _kept(before, after))
                for before, after in turns
            ),
            strict=True,
        )
    )
    return [f"{size / 4:,.0f}", f"{len(turns):,}", f"{same:.3f}", f"{share:.3f}", f"{kept / 4:,.0f}"]


def _kept(before: Sequence[bytes], after: Sequence[bytes]) -> int:
    """Number of bytes, from the beginning, that are the same."""
    pairs = zip(b"".join(before), b"".join(after), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _size(tools: Sequence[bytes]) -> int:
    return sum(map(len, tools))


def _sessions(bench: Benchmark, questions: int) -> list[list[str]]:
    """The steps of so many questions in a row, by session."""
    steps = [[case.query for case in cases] for _, cases in groupby(bench.queries, key=lambda case: case.group)]
    return [list(chain(*steps[start : start + questions])) for start in range(0, len(steps), questions)]


async def _listed(gateway: Gateway, queries: Sequence[str], direct: int) -> list[list[bytes]]:
    server = GatewayServer(gateway, lambda context: Caller("benchmark"), direct=direct).server
    async with Client(server) as client:
        lists = [await _list(client)]
        for query in queries:
            await client.call_tool("find_tools", {"query": query})
            lists.append(await _list(client))
    return lists


async def _list(client: Client) -> list[bytes]:
    return [_bytes(tool) for tool in (await client.list_tools()).tools]


def _bytes(tool: types.Tool) -> bytes:
    return tool.model_dump_json(by_alias=True, exclude_none=True).encode()


def _whole(tool: Tool) -> types.Tool:
    return types.Tool(name=tool.name, description=tool.description, input_schema=dict(tool.input_schema))
