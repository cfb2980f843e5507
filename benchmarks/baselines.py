"""Every baseline of the papers: from a ``World`` to a ranking function; its docstring says where it is from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from benchmarks.search import Rank, World
from benchmarks.sets.cases import Level
from callsheet.graphs import NodeKind, owner
from callsheet.retrievers import METHODS
from callsheet.retrievers.selection.decision import ToolJudge

Baseline = Callable[[World], Rank]
FIRST_TOOLS = (1, 2, 3, 5, 10)
"""The k of Graph RAG-Tool Fusion that are tried: how many tools of the first search are expanded."""
_LONGEST = 30
TOP_N = 50
_ALL = 1_000_000
_WEIGHTS = ((3.0, 1.0), (2.0, 1.0), (1.5, 1.0), (1.0, 1.0), (1.0, 1.5), (1.0, 2.0), (1.0, 3.0))
WEIGHT_GRID: Mapping[str, Mapping[NodeKind, float]] = {f"{a:g}:{t:g}": {"agent": a, "tool": t} for a, t in _WEIGHTS}
"""alpha of agents and of tools, the grid of Agent-as-a-Graph's table of weights."""


def owners(world: World, nodes: Iterable[str]) -> list[str]:
    """Each node's agent, in order, each once."""
    return list(dict.fromkeys(owner(world.graph, node) for node in nodes))


def method(world: World, name: str, *, level: Level = "tool", judge: ToolJudge | None = None, **changes: Any) -> Rank:
    """The agents, or the tools, of a selection by a published method, as ``callsheet retrieve --method`` makes it."""
    selector = world.literature(METHODS[name].texts).selector
    settings = {**METHODS[name].to_dict(), "agents": _ALL, "tools": _LONGEST if level == "tool" else 1, **changes}

    def rank(query: str) -> list[str]:
        found = selector.draft(query, judge, **settings).selection()
        return [one.id for one in (found.tools if level == "tool" else found.agents)]

    return rank


_SEARCHES = {
    "BM25": "bm25",
    "dense (naive RAG)": "dense",
    "BM25 + dense, RRF": "hybrid",
    "BM25 + dense, alpha = .8 (hybrid RAG)": "weighted-hybrid",
}
TOOL_BASELINES: Mapping[str, Baseline] = {
    **{title: partial(method, name=name) for title, name in _SEARCHES.items()},
    "dense, with parameters (ScaleMCP)": partial(method, name="scalemcp"),
    "MCP-Zero": partial(method, name="mcp-zero"),
}
"""By names and descriptions; three are those of Graph RAG-Tool Fusion (arXiv 2502.07223), table 2."""


def fusion_at(world: World, name: str, weights: Mapping[NodeKind, float], *, top_n: int = TOP_N) -> Rank:
    """The agents by a rank fusion of Agent-as-a-Graph with these weights and this N.

    The paper gives no N but "N much larger than K"; 50 is ten times the largest K here.
    """
    given: dict[str, Any] = {"agent_weight": weights["agent"], "tool_weight": weights["tool"], "pool": top_n}
    return method(world, name, level="agent", **given)


AGENT_BASELINES: Mapping[str, Baseline] = {
    "BM25, agents": lambda world: partial(world.agents.search, how="bm25"),
    "dense, agents": partial(method, name="agent-only", level="agent"),
    "dense, concatenated (ScaleMCP)": partial(method, name="scalemcp", level="agent"),
    "MCP-Zero": partial(method, name="mcp-zero", level="agent"),
    **{
        f"{title.removesuffix(' (naive RAG)')}, tools": partial(method, name=name, level="agent")
        for title, name in _SEARCHES.items()
    },
    **{
        f"agents + tools, weighted RRF {name}": partial(fusion_at, name="weighted-rrf", weights=weights)
        for name, weights in WEIGHT_GRID.items()
    },
    **{
        f"Agent-as-a-Graph {name}": partial(fusion_at, name="agent-as-a-graph", weights=weights)
        for name, weights in WEIGHT_GRID.items()
    },
}
"""The first four are "agent first" and "tool only" retrieval, from which Agent-as-a-Graph and Tool-to-Agent Retrieval
(arXiv 2511.01854) start. A found tool stands for its owner."""


FUSION = "graph-rag-tool-fusion"
DEPENDENCY_BASELINES: Mapping[str, Baseline] = {
    **{f"Graph RAG-Tool Fusion k={k}": partial(method, name=FUSION, expand=k) for k in FIRST_TOOLS},
    # Direct dependencies before indirect ones is ours, where the paper is silent.
    "Graph RAG-Tool Fusion k=3, direct first": partial(method, name=FUSION, direct_first=True),
    "Graph RAG-Tool Fusion k=3, on hybrid": partial(method, name=FUSION, search="hybrid"),
}
"""Algorithm 1 of Graph RAG-Tool Fusion (arXiv 2502.07223): the first k tools, each with what its walk reaches."""
