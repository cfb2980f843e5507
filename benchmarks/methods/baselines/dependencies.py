"""Baselines that follow declared dependencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.methods.baselines.tools import hybrid_rag, naive_rag
from benchmarks.methods.search import Rank, World
from callsheet.retrievers import graph_rag_tool_fusion

FIRST_TOOLS = (1, 2, 3, 5, 10)
"""The k that are tried: how many tools of the first search are expanded."""
_LONGEST = 30


def graph_rag_at(
    world: World, k: int, *, first: Callable[[World], Rank] = naive_rag, direct_first: bool = False
) -> Rank:
    """The first k tools of a search, each followed by what a depth-first walk of its dependencies reaches.

    Source: Graph RAG-Tool Fusion (arXiv 2502.07223), Algorithm 1. When the k tools and theirs are fewer than
    the list is long, the rest of the first search follows, so that no method is judged by a shorter list.
    """
    search = first(world)

    def rank(query: str) -> list[str]:
        found = search(query)
        reached = graph_rag_tool_fusion(found[:k], world.catalog, limit=_LONGEST, direct_first=direct_first)
        return list(dict.fromkeys([*(tool.tool for tool in reached), *found]))[: max(_LONGEST, k)]

    return rank


def _at(k: int) -> Callable[[World], Rank]:
    return lambda world: graph_rag_at(world, k)


def graph_rag_direct_first(world: World) -> Rank:
    """Graph RAG-Tool Fusion at k = 3 with direct dependencies before indirect ones: ours, where the paper is silent."""
    return graph_rag_at(world, 3, direct_first=True)


def graph_rag_on_hybrid(world: World) -> Rank:
    """Graph RAG-Tool Fusion at k = 3 over the hybrid search."""
    return graph_rag_at(world, 3, first=hybrid_rag)


DEPENDENCY_BASELINES: Mapping[str, Callable[[World], Rank]] = {
    **{f"Graph RAG-Tool Fusion k={k}": _at(k) for k in FIRST_TOOLS},
    "Graph RAG-Tool Fusion k=3, direct first": graph_rag_direct_first,
    "Graph RAG-Tool Fusion k=3, on hybrid": graph_rag_on_hybrid,
}
