"""The expansion along dependencies in Graph RAG-Tool Fusion."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from callsheet.graphs import KnowledgeGraph, Reached, SettingsError, walk


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


def first_within_tokens(tools: Sequence[str], cost: Callable[[Sequence[str]], int], *, tokens: int | None) -> int:
    """Returns how many tools at the beginning of a list fit into a number of tokens.

    Source: Graph RAG-Tool Fusion, Algorithm 1, line 22, with the final limit in tokens in place of K tools::

        max n with cost(t_1, ..., t_n) <= tokens

    Args:
        tools: The list of ids, best first.
        cost: The tokens of the schemas of several tools together.
        tokens: The limit; None: no limit.
    """
    count = len(tools)
    if tokens is None:
        return count
    while count and cost(tools[:count]) > tokens:
        count -= 1
    return count


def expected_accuracy(of_search: float, of_dependencies: float, *, limit: int, found: int) -> float:
    """Returns the accuracy that Graph RAG-Tool Fusion is expected to have.

    Source: Graph RAG-Tool Fusion, section 3.3, Eq. 1::

        E[GRTF(k, d, K)] = E[Retrieval_vector(k)] + E[KG_dep(k, d)] * min(1, K / N)

    Args:
        of_search: The accuracy of the first search alone, with its k tools, 0 to 1.
        of_dependencies: What the tools that the walks reach add to it, 0 to 1.
        limit: K, the length of the final list.
        found: N, the number of all tools that were found, with their dependencies.

    Raises:
        SettingsError: K or N is below 1.
    """
    if limit < 1 or found < 1:
        raise SettingsError(f"K and N must be at least 1, not {limit} and {found}")
    return of_search + of_dependencies * min(1.0, limit / found)
