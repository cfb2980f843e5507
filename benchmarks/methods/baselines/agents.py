"""Baselines that rank agents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from benchmarks.methods.baselines.tools import hybrid, mcp_zero
from benchmarks.methods.search import Corpus, Rank, World, plain_agent, plain_tool
from callsheet.graphs import NodeKind, owner
from callsheet.retrievers import agent_as_a_graph, reciprocal_rank_fusion

TOP_N = 50
_ALL = 1_000_000
WEIGHT_GRID: Mapping[str, Mapping[NodeKind, float]] = {
    "3:1": {"agent": 3.0, "tool": 1.0},
    "2:1": {"agent": 2.0, "tool": 1.0},
    "1.5:1": {"agent": 1.5, "tool": 1.0},
    "1:1": {"agent": 1.0, "tool": 1.0},
    "1:1.5": {"agent": 1.0, "tool": 1.5},
    "1:2": {"agent": 1.0, "tool": 2.0},
    "1:3": {"agent": 1.0, "tool": 3.0},
}
"""alpha of agents and of tools, the grid of Agent-as-a-Graph's table of weights."""


def owners(world: World, nodes: Iterable[str]) -> list[str]:
    """Each node's agent, in order, each once."""
    return list(dict.fromkeys(owner(world.graph, node) for node in nodes))


def bm25_agents(world: World) -> Rank:
    """BM25 over the agents' names and descriptions (a baseline of Agent-as-a-Graph's table 1).

    Source: Robertson and Zaragoza, *The Probabilistic Relevance Framework* (2009), by bm25s.
    """
    return world.agents.bm25


def bm25_tools(world: World) -> Rank:
    """BM25 over the tools, each found tool standing for its owner."""
    return lambda query: owners(world, world.tools.bm25(query))


def dense_agents(world: World) -> Rank:
    """Cosine over the agents' names and descriptions: "agent first" retrieval.

    Source: the retriever that Agent-as-a-Graph and Tool-to-Agent Retrieval (arXiv 2511.01854) start from.
    """
    return world.agents.dense


def dense_tools(world: World) -> Rank:
    """Cosine over the tools, each found tool standing for its owner: "tool only" retrieval.

    Source: as ``dense_agents``.
    """
    return lambda query: owners(world, world.tools.dense(query))


def concatenated(world: World) -> Rank:
    """Cosine over one text an agent, its description with all its tools' behind it.

    Source: ScaleMCP (arXiv 2505.06416), its concatenated documents, without the questions that a language
    model writes for each tool. The embedder reads 256 tokens, so large agents are cut.
    """
    texts = {
        agent.id: " ".join([plain_agent(agent), *(plain_tool(tool) for tool in agent.tools)])
        for agent in world.catalog.agents
    }
    return Corpus(texts, world.published).dense


def mcp_zero_agents(world: World) -> Rank:
    """MCP-Zero's two stages, each found tool standing for its owner. Source: as ``tools.mcp_zero``."""
    rank = mcp_zero(world)
    return lambda query: owners(world, rank(query))


def hybrid_nodes(world: World) -> Rank:
    """BM25 and cosine over agents and tools in one index, fused by plain RRF, each node standing for its agent."""
    rank = hybrid(world.nodes)
    return lambda query: owners(world, rank(query))


def rrf_of_types(world: World) -> Rank:
    """Agents by cosine, and owners of tools by cosine, fused by plain RRF.

    Source: Cormack, Clarke and Buettcher, *Reciprocal Rank Fusion* (SIGIR 2009).
    """
    by_tools = dense_tools(world)

    def rank(query: str) -> list[str]:
        return [hit.id for hit in reciprocal_rank_fusion([world.agents.dense(query), by_tools(query)])]

    return rank


def agent_as_a_graph_at(world: World, weights: Mapping[NodeKind, float], *, top_n: int = TOP_N) -> Rank:
    """Type-weighted RRF over the first N nodes of one index of agents and tools, then the walk to owners.

    Source: Agent-as-a-Graph (arXiv 2511.18194), Eq. 3 and Algorithm 1, k = 60. The paper gives no N but
    "N much larger than K"; 50 is ten times the largest K here.
    """

    def rank(query: str) -> list[str]:
        merged = world.nodes.dense(query)[:top_n]
        return [hit.id for hit in agent_as_a_graph(merged, world.graph, agents=_ALL, weights=weights)]

    return rank


def _weighted(name: str) -> Callable[[World], Rank]:
    return lambda world: agent_as_a_graph_at(world, WEIGHT_GRID[name])


AGENT_BASELINES: Mapping[str, Callable[[World], Rank]] = {
    "BM25, agents": bm25_agents,
    "BM25, tools": bm25_tools,
    "dense, agents": dense_agents,
    "dense, tools": dense_tools,
    "dense, concatenated (ScaleMCP)": concatenated,
    "MCP-Zero": mcp_zero_agents,
    "BM25 + dense, RRF": hybrid_nodes,
    "agents + tools, RRF": rrf_of_types,
    **{f"Agent-as-a-Graph {name}": _weighted(name) for name in WEIGHT_GRID},
}
