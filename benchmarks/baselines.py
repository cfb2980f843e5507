"""Every baseline of the papers: from a ``World`` to a ranking function; its docstring says where it is from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from benchmarks.search import Corpus, Rank, World
from benchmarks.sets.cases import Level
from callsheet.graphs import NodeKind, owner
from callsheet.retrievers import METHODS, reciprocal_rank_fusion
from callsheet.retrievers.index.node_texts import plain_text
from callsheet.retrievers.selection.decision import ToolJudge

Baseline = Callable[[World], Rank]
SERVERS = 5
"""MCP-Zero's ``top_servers``."""
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
    selector = world.literature.selector
    settings = {**METHODS[name].to_dict(), "agents": _ALL, "tools": _LONGEST if level == "tool" else 1, **changes}

    def rank(query: str) -> list[str]:
        found = selector.draft(query, judge, **settings).selection()
        return [one.id for one in (found.tools if level == "tool" else found.agents)]

    return rank


def concatenated_tools(world: World) -> Rank:
    """Cosine over name, description and parameters in one text.

    Source: ScaleMCP (arXiv 2505.06416), its concatenated documents, without the questions that a language
    model writes for each tool.
    """
    texts = {
        tool.id: " ".join([plain_text(tool), *(f"{p.name}: {p.description}" for p in tool.parameters)])
        for tool in world.catalog.tools.values()
    }
    return Corpus(texts, world.published).search


def mcp_zero(world: World, *, servers: int = SERVERS) -> Rank:
    """Servers first, then their tools by both scores.

    ::

        score(t) = (s_server * s_tool) * max(s_server, s_tool)

    Source: MCP-Zero (arXiv 2506.01056), hierarchical routing, with the five servers of its first stage.
    There a model words what it wants of a server and of a tool; here both are the query.
    """
    places = {tool: place for place, tool in enumerate(world.tools.ids)}

    def rank(query: str) -> list[str]:
        by_server = world.agents.cosines(query)
        by_tool = world.tools.cosines(query)
        scores: dict[str, float] = {}
        for row in np.argsort(-by_server, kind="stable")[:servers]:
            for tool in world.catalog.agent(world.agents.ids[row]).tools:
                server, itself = float(by_server[row]), float(by_tool[places[tool.id]])
                scores[tool.id] = server * itself * max(server, itself)
        return sorted(scores, key=lambda tool: -scores[tool])

    return rank


_SEARCHES = {
    "BM25": "bm25",
    "dense (naive RAG)": "dense",
    "BM25 + dense, RRF": "hybrid",
    "BM25 + dense, alpha = .8 (hybrid RAG)": "weighted-hybrid",
}
TOOL_BASELINES: Mapping[str, Baseline] = {
    **{title: partial(method, name=name) for title, name in _SEARCHES.items()},
    "dense, with parameters (ScaleMCP)": concatenated_tools,
    "MCP-Zero": mcp_zero,
}
"""By names and descriptions; three are those of Graph RAG-Tool Fusion (arXiv 2502.07223), table 2."""


def concatenated_agents(world: World) -> Rank:
    """The same over an agent's description with all its tools' behind it: the embedder cuts it at 256 tokens."""
    texts = {agent.id: " ".join(map(plain_text, (agent, *agent.tools))) for agent in world.catalog.agents}
    return Corpus(texts, world.published).search


def lists_of_types(world: World, weights: Mapping[NodeKind, float], *, top_n: int = TOP_N) -> Rank:
    """The first N agents, and the owners of the first N tools, fused by weight.

    Source: Agent-as-a-Graph (arXiv 2511.18194), section 3.2, Eq. 2; plain RRF where the weights are equal.
    """

    def rank(query: str) -> list[str]:
        lists = world.agents.search(query)[:top_n], owners(world, world.tools.search(query)[:top_n])
        return [hit.id for hit in reciprocal_rank_fusion(lists, weights=[weights["agent"], weights["tool"]])]

    return rank


def agent_as_a_graph_at(world: World, weights: Mapping[NodeKind, float], *, top_n: int = TOP_N) -> Rank:
    """Type-weighted RRF over the first N nodes of one index of agents and tools, then the walk to owners.

    Source: Agent-as-a-Graph, Eq. 3 and Algorithm 1, k = 60. The paper gives no N but "N much larger than K"; 50 is ten
    times the largest K here.
    """
    given = {"agent_weight": weights["agent"], "tool_weight": weights["tool"], "pool": top_n}
    return method(world, "agent-as-a-graph", level="agent", **given)


AGENT_BASELINES: Mapping[str, Baseline] = {
    "BM25, agents": lambda world: partial(world.agents.search, how="bm25"),
    "dense, agents": lambda world: world.agents.search,
    "dense, concatenated (ScaleMCP)": concatenated_agents,
    "MCP-Zero": lambda world: lambda query: owners(world, mcp_zero(world)(query)),
    **{
        f"{title.removesuffix(' (naive RAG)')}, tools": partial(method, name=name, level="agent")
        for title, name in _SEARCHES.items()
    },
    **{
        f"agents + tools, weighted RRF {name}": partial(lists_of_types, weights=weights)
        for name, weights in WEIGHT_GRID.items()
    },
    **{
        f"Agent-as-a-Graph {name}": partial(agent_as_a_graph_at, weights=weights)
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
