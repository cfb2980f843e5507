"""Which tool needs which: the dependency graph that Graph RAG-Tool Fusion walks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from callsheet.graphs.catalog.model import Catalog, Dependency, DependencyKind

if TYPE_CHECKING:
    import networkx as nx

_DIRECT_FIRST: Mapping[DependencyKind, int] = {
    DependencyKind.TOOL_DIRECTLY: 0,
    DependencyKind.PARAMETER_DIRECTLY: 0,
    DependencyKind.TOOL_INDIRECTLY: 1,
    DependencyKind.PARAMETER_INDIRECTLY: 1,
}


@dataclass(frozen=True, slots=True)
class Reached:
    """A tool that a walk along dependencies came to.

    Attributes:
        tool: Its id.
        path: Tool ids from the start of the walk to it, both included.
        direct: Whether direct dependencies alone lead to it too: the start cannot do without it.
    """

    tool: str
    path: tuple[str, ...]
    direct: bool


def dependency_graph(catalog: Catalog) -> nx.MultiDiGraph[str]:
    """Tools as nodes, an edge from each tool to each that it needs; cycles are legal.

    Source: Graph RAG-Tool Fusion, section 3.1.

    Returns:
        A graph whose nodes are tool ids with the attribute ``core``, and whose edges carry ``kind``,
        ``parameter`` and ``reason``. Two tools may be joined by several edges.
    """
    import networkx as nx

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for tool in catalog.tools.values():
        graph.add_node(tool.id, core=tool.core)
    for tool in catalog.tools.values():
        for edge in tool.depends_on:
            graph.add_edge(tool.id, edge.tool, kind=edge.kind, parameter=edge.parameter, reason=edge.reason)
    return graph


def walk(catalog: Catalog, start: str, *, direct_first: bool = True, proposed: bool = False) -> tuple[Reached, ...]:
    """Depth-first walk along the dependencies of one tool; each tool is reached once, so cycles end.

    Source: Graph RAG-Tool Fusion, Algorithm 1, the function DFS.

    Args:
        catalog: Where the edges are.
        start: Id of the tool that the walk starts from; it is not among the reached.
        direct_first: Visit the direct dependencies of a tool before its indirect ones. The paper
            takes them as listed, and a limit can then drop a required tool behind an optional one.
        proposed: Whether to go along dependencies too that are only proposed or observed.

    Returns:
        The reached tools in the order of their first visit.

    Raises:
        UnknownNameError: The catalog has no tool of this id.
    """
    needed = required(catalog, start)
    reached: dict[str, Reached] = {start: Reached(start, (start,), direct=True)}

    def siblings(tool: str) -> list[Dependency]:
        edges = [edge for edge in catalog.tool(tool).depends_on if proposed or edge.holds]
        return sorted(edges, key=lambda edge: _DIRECT_FIRST[edge.kind]) if direct_first else edges

    stack = [(start, iter(siblings(start)))]
    while stack:
        tool, edges = stack[-1]
        edge = next(edges, None)
        if edge is None:
            stack.pop()
        elif edge.tool not in reached:
            came = reached[tool]
            reached[edge.tool] = Reached(edge.tool, (*came.path, edge.tool), edge.tool in needed)
            stack.append((edge.tool, iter(siblings(edge.tool))))
    del reached[start]
    return tuple(reached.values())


def strongest(
    catalog: Catalog,
    start: str,
    weights: Mapping[DependencyKind, float],
    *,
    listing: float = 1.0,
    proposed: float = 0.0,
) -> tuple[tuple[Reached, float], ...]:
    """What one tool depends on, each by its strongest path.

    ::

        W(start -> t) = max over paths from start to t of the product over their edges of
                        weight(kind of the edge) * listing ** (how many its tool lists before it)

    An edge that is only proposed or observed counts ``proposed`` times its confidence of that.

    Args:
        catalog: Where the edges are.
        start: Id of the tool; it is not in the result.
        weights: Weight of an edge by its kind, at most 1, so that going round a cycle never gains.
        listing: What a dependency loses for each that is listed before it: authors name what matters first.
        proposed: What a dependency is worth that no person stands for, at full confidence; 0 leaves them out.

    Returns:
        The tools reached, in the order of the walk, each with its weight. Of paths of equal weight the first one
        listed counts.

    Raises:
        UnknownNameError: The catalog has no tool of this id.
    """
    best: dict[str, tuple[float, tuple[str, ...]]] = {start: (1.0, (start,))}
    todo = [start]
    while todo:
        tool = todo.pop(0)
        weight, path = best[tool]
        before: dict[str, int] = {}
        for edge in catalog.tool(tool).depends_on:
            if not (worth := 1.0 if edge.holds else proposed * edge.confidence):
                continue
            gained = weight * worth * weights[edge.kind] * listing ** before.setdefault(edge.tool, len(before))
            if gained > best.get(edge.tool, (0.0, ()))[0]:
                best[edge.tool] = (gained, (*path, edge.tool))
                todo.append(edge.tool)
    return tuple(
        (Reached(reached.tool, best[reached.tool][1], reached.direct), best[reached.tool][0])
        for reached in walk(catalog, start, direct_first=False, proposed=proposed > 0)
        if reached.tool in best
    )


def required(catalog: Catalog, start: str) -> frozenset[str]:
    """Ids of the tools that one tool cannot do without: those that direct dependencies alone lead to."""
    found, todo = {start}, [start]
    while todo:
        edges = catalog.tool(todo.pop()).depends_on
        new = {edge.tool for edge in edges if edge.kind.direct and edge.holds} - found
        found |= new
        todo.extend(new)
    return frozenset(found - {start})
