"""Every baseline of the papers: from a ``World`` to a ranking function; its docstring says where it is from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

import numpy as np

from benchmarks.search import Corpus, Rank, World, plain_agent, plain_tool
from callsheet.graphs import NodeKind, owner
from callsheet.retrievers import agent_as_a_graph, graph_rag_tool_fusion, reciprocal_rank_fusion

Baseline = Callable[[World], Rank]
FUSED = 100
"""How far down each ranking that goes into a fusion is read."""
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


def _owned(baseline: Baseline) -> Baseline:
    """The same, each found node standing for its agent."""

    def made(world: World) -> Rank:
        rank = baseline(world)
        return lambda query: owners(world, rank(query))

    return made


def hybrid(corpus: Corpus) -> Rank:
    """Plain RRF over a corpus's two rankings, cosine first where two are equal."""
    return lambda query: _fused(corpus.dense(query)[:FUSED], corpus.bm25(query)[:FUSED])


def _fused(*rankings: list[str]) -> list[str]:
    return [hit.id for hit in reciprocal_rank_fusion(rankings)]


def concatenated_tools(world: World) -> Rank:
    """Cosine over name, description and parameters in one text.

    Source: ScaleMCP (arXiv 2505.06416), its concatenated documents, without the questions that a language
    model writes for each tool.
    """
    texts = {
        tool.id: " ".join([plain_tool(tool), *(f"{p.name}: {p.description}" for p in tool.parameters)])
        for tool in world.catalog.tools.values()
    }
    return Corpus(texts, world.published).dense


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


TOOL_BASELINES: Mapping[str, Baseline] = {
    "BM25": lambda world: world.tools.bm25,
    "dense (naive RAG)": lambda world: world.tools.dense,
    "BM25 + dense, RRF (hybrid RAG)": lambda world: hybrid(world.tools),
    "dense, with parameters (ScaleMCP)": concatenated_tools,
    "MCP-Zero": mcp_zero,
}
"""By names and descriptions; the first three are those of Graph RAG-Tool Fusion (arXiv 2502.07223), table 2."""


def concatenated_agents(world: World) -> Rank:
    """The same over an agent's description with all its tools' behind it: the embedder cuts it at 256 tokens."""
    texts = {agent.id: " ".join([plain_agent(agent), *map(plain_tool, agent.tools)]) for agent in world.catalog.agents}
    return Corpus(texts, world.published).dense


def rrf_of_types(world: World) -> Rank:
    """Agents by cosine, and owners of tools by cosine, fused by plain RRF.

    Source: Cormack, Clarke and Buettcher, *Reciprocal Rank Fusion* (SIGIR 2009).
    """
    return lambda query: _fused(world.agents.dense(query), owners(world, world.tools.dense(query)))


def agent_as_a_graph_at(world: World, weights: Mapping[NodeKind, float], *, top_n: int = TOP_N) -> Rank:
    """Type-weighted RRF over the first N nodes of one index of agents and tools, then the walk to owners.

    Source: Agent-as-a-Graph (arXiv 2511.18194), Eq. 3 and Algorithm 1, k = 60. The paper gives no N but
    "N much larger than K"; 50 is ten times the largest K here.
    """
    return lambda query: [
        hit.id for hit in agent_as_a_graph(world.nodes.dense(query)[:top_n], world.graph, agents=_ALL, weights=weights)
    ]


AGENT_BASELINES: Mapping[str, Baseline] = {
    "BM25, agents": lambda world: world.agents.bm25,
    "BM25, tools": _owned(lambda world: world.tools.bm25),
    "dense, agents": lambda world: world.agents.dense,
    "dense, tools": _owned(lambda world: world.tools.dense),
    "dense, concatenated (ScaleMCP)": concatenated_agents,
    "MCP-Zero": _owned(mcp_zero),
    "BM25 + dense, RRF": _owned(lambda world: hybrid(world.nodes)),
    "agents + tools, RRF": rrf_of_types,
    **{
        f"Agent-as-a-Graph {name}": partial(agent_as_a_graph_at, weights=weights)
        for name, weights in WEIGHT_GRID.items()
    },
}
"""The first four are "agent first" and "tool only" retrieval, from which Agent-as-a-Graph and Tool-to-Agent Retrieval
(arXiv 2511.01854) start. A found tool stands for its owner."""


def graph_rag_at(
    world: World, k: int, *, first: Baseline = TOOL_BASELINES["dense (naive RAG)"], direct_first: bool = False
) -> Rank:
    """The first k tools of a search, each followed by what a depth-first walk of its dependencies reaches.

    Source: Graph RAG-Tool Fusion (arXiv 2502.07223), Algorithm 1. When the k tools and theirs are fewer than
    the list is long, the rest of the first search follows, so that no method is judged by a shorter list.
    """
    search = first(world)

    def rank(query: str) -> list[str]:
        found = search(query)
        reached = graph_rag_tool_fusion(found[:k], world.graph, limit=_LONGEST, direct_first=direct_first)
        return list(dict.fromkeys([*(tool.tool for tool in reached), *found]))[: max(_LONGEST, k)]

    return rank


DEPENDENCY_BASELINES: Mapping[str, Baseline] = {
    **{f"Graph RAG-Tool Fusion k={k}": partial(graph_rag_at, k=k) for k in FIRST_TOOLS},
    # Direct dependencies before indirect ones is ours, where the paper is silent.
    "Graph RAG-Tool Fusion k=3, direct first": partial(graph_rag_at, k=3, direct_first=True),
    "Graph RAG-Tool Fusion k=3, on hybrid": partial(
        graph_rag_at, k=3, first=TOOL_BASELINES["BM25 + dense, RRF (hybrid RAG)"]
    ),
}
