"""Every baseline of the papers, one small function each: from a ``World`` to a ranking function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

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


def bm25(world: World) -> Rank:
    """BM25 over names and descriptions (Graph RAG-Tool Fusion's lexical baseline)."""
    return world.tools.bm25


def naive_rag(world: World) -> Rank:
    """Cosine over names and descriptions: "naive RAG" of Graph RAG-Tool Fusion (arXiv 2502.07223), table 2."""
    return world.tools.dense


def hybrid_rag(world: World) -> Rank:
    """BM25 and cosine fused by plain RRF: "hybrid RAG" of Graph RAG-Tool Fusion, table 2."""
    return hybrid(world.tools)


def hybrid(corpus: Corpus) -> Rank:
    """Plain RRF over a corpus's two rankings, cosine first where two are equal."""

    def rank(query: str) -> list[str]:
        rankings = [corpus.dense(query)[:FUSED], corpus.bm25(query)[:FUSED]]
        return [hit.id for hit in reciprocal_rank_fusion(rankings)]

    return rank


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
    "BM25": bm25,
    "dense (naive RAG)": naive_rag,
    "BM25 + dense, RRF (hybrid RAG)": hybrid_rag,
    "dense, with parameters (ScaleMCP)": concatenated_tools,
    "MCP-Zero": mcp_zero,
}


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


def concatenated_agents(world: World) -> Rank:
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
    """MCP-Zero's two stages, each found tool standing for its owner. Source: as ``mcp_zero``."""
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


AGENT_BASELINES: Mapping[str, Baseline] = {
    "BM25, agents": bm25_agents,
    "BM25, tools": bm25_tools,
    "dense, agents": dense_agents,
    "dense, tools": dense_tools,
    "dense, concatenated (ScaleMCP)": concatenated_agents,
    "MCP-Zero": mcp_zero_agents,
    "BM25 + dense, RRF": hybrid_nodes,
    "agents + tools, RRF": rrf_of_types,
    **{
        f"Agent-as-a-Graph {name}": lambda world, of=of: agent_as_a_graph_at(world, of)
        for name, of in WEIGHT_GRID.items()
    },  # type: ignore[misc]
}


def graph_rag_at(world: World, k: int, *, first: Baseline = naive_rag, direct_first: bool = False) -> Rank:
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


def graph_rag_direct_first(world: World) -> Rank:
    """Graph RAG-Tool Fusion at k = 3 with direct dependencies before indirect ones: ours, where the paper is silent."""
    return graph_rag_at(world, 3, direct_first=True)


def graph_rag_on_hybrid(world: World) -> Rank:
    """Graph RAG-Tool Fusion at k = 3 over the hybrid search."""
    return graph_rag_at(world, 3, first=hybrid_rag)


DEPENDENCY_BASELINES: Mapping[str, Baseline] = {
    **{f"Graph RAG-Tool Fusion k={k}": lambda world, k=k: graph_rag_at(world, k) for k in FIRST_TOOLS},  # type: ignore[misc]
    "Graph RAG-Tool Fusion k=3, direct first": graph_rag_direct_first,
    "Graph RAG-Tool Fusion k=3, on hybrid": graph_rag_on_hybrid,
}
