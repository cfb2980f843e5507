"""Baselines that rank tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from benchmarks.methods.search import Corpus, Rank, World, plain_tool
from callsheet.retrievers import reciprocal_rank_fusion

FUSED = 100
"""How far down each ranking that goes into a fusion is read."""
SERVERS = 5
"""MCP-Zero's ``top_servers``."""


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


def concatenated(world: World) -> Rank:
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


TOOL_BASELINES: Mapping[str, Callable[[World], Rank]] = {
    "BM25": bm25,
    "dense (naive RAG)": naive_rag,
    "BM25 + dense, RRF (hybrid RAG)": hybrid_rag,
    "dense, with parameters (ScaleMCP)": concatenated,
    "MCP-Zero": mcp_zero,
}
