"""The expansion along dependencies in Graph RAG-Tool Fusion."""

from __future__ import annotations

from collections.abc import Sequence

from callsheet.graphs import KnowledgeGraph, Reached, walk


def graph_rag_tool_fusion(
    found: Sequence[str], graph: KnowledgeGraph, *, limit: int, d_limit: int | None = None, direct_first: bool = False
) -> list[Reached]:
    """Returns the tools of a first search, each followed by its dependencies.

    Source: Graph RAG-Tool Fusion, Algorithm 1: for each tool of the top k by vector search, append it, then
    the tools that a depth-first walk along its dependencies reaches, at most d_limit of them; cut the list
    to the final top K. No tool is repeated, so cycles end.

    Args:
        found: The first search's top k tool ids, best first.
        graph: The tools with their dependencies.
        limit: K, the length of the result.
        d_limit: The maximum number of dependencies per tool, including those that are in the list already; None: no
            maximum.
        direct_first: Whether direct dependencies come before indirect ones. The paper uses their order in the
            list, so that a small d_limit can drop a required tool after an optional one.

    Returns:
        At most K tools in order, each with its path (the path of a tool of the first search is itself).
    """
    result: dict[str, Reached] = {}
    for tool in found:
        result.setdefault(tool, Reached(tool, (tool,), direct=True))
        for reached in walk(graph, tool, direct_first=direct_first)[:d_limit]:
            result.setdefault(reached.tool, reached)
    return list(result.values())[:limit]
