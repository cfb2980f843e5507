"""Which tools come along: Graph RAG-Tool Fusion's expansion along dependencies."""

from __future__ import annotations

from collections.abc import Sequence

from callsheet.graphs import Catalog, Reached, walk


def graph_rag_tool_fusion(
    found: Sequence[str], catalog: Catalog, *, limit: int, per_tool: int | None = None, direct_first: bool = False
) -> list[Reached]:
    """The tools of a first search, each followed by what it depends on.

    Source: Graph RAG-Tool Fusion, Algorithm 1: for each tool of the top k by vector search, append it, then
    the tools that a depth-first walk of its dependencies reaches, at most d_limit of them; the whole is cut
    to the final top K. A tool that is there already is not repeated, so cycles end.

    Args:
        found: The first search's top k tool ids, best first.
        catalog: Where the dependencies are.
        limit: K, the length of the result.
        per_tool: d_limit, how many dependencies a tool may bring; all where none is given.
        direct_first: Whether direct dependencies come before indirect ones. The paper takes them as they are
            listed, and a small d_limit can then drop a required tool behind an optional one.

    Returns:
        At most K tools in order, each with the path that brought it (a found tool's path is itself).
    """
    result: dict[str, Reached] = {}
    for tool in found:
        result.setdefault(tool, Reached(tool, (tool,), direct=True))
        for reached in walk(catalog, tool, direct_first=direct_first)[:per_tool]:
            result.setdefault(reached.tool, reached)
    return list(result.values())[:limit]
