"""Graphs of agents, tools and dependencies, and walks along them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from callsheet.graphs.catalog.model import Catalog, Dependency, DependencyKind

if TYPE_CHECKING:
    import networkx as nx


NodeKind = Literal["agent", "tool"]
OwnershipGraph: TypeAlias = "nx.DiGraph[str]"


def ownership_graph(catalog: Catalog) -> OwnershipGraph:
    """Agents and tools as nodes, with an edge from each tool to its owner.

    Source: Agent-as-a-Graph, section 3.1.

    Returns:
        A graph whose nodes are ids with the attribute ``kind`` (``agent`` or ``tool``).
    """
    import networkx as nx

    graph: OwnershipGraph = nx.DiGraph()
    for agent in catalog.agents:
        graph.add_node(agent.id, kind="agent")
        for tool in agent.tools:
            graph.add_node(tool.id, kind="tool")
            graph.add_edge(tool.id, agent.id, kind="owned_by")
    return graph


def owner(graph: OwnershipGraph, node: str) -> str:
    """Id of the agent that owns a node; an agent owns itself."""
    return node if kind_of(graph, node) == "agent" else next(iter(graph.successors(node)))


def kind_of(graph: OwnershipGraph, node: str) -> NodeKind:
    """Whether a node is an agent or a tool."""
    return cast("NodeKind", graph.nodes[node]["kind"])


_INDIRECT = 0.5  # how likely an optional argument is filled


@dataclass(frozen=True, slots=True)
class Reached:
    """A tool that a walk along dependencies reached.

    Attributes:
        tool: Its id.
        path: Tool ids from the start of the walk to this tool, both included.
        direct: Whether the start requires it, that is, a path of required dependencies leads to it.
    """

    tool: str
    path: tuple[str, ...]
    direct: bool


def dependency_graph(catalog: Catalog) -> nx.MultiDiGraph[str]:
    """Tools as nodes, with an edge from each tool to each tool that it needs; cycles are allowed.

    Source: Graph RAG-Tool Fusion, section 3.1.

    Returns:
        A graph whose nodes are tool ids with the attribute ``core``, and whose edges have ``kind``,
        ``parameter`` and ``reason``, texts that may be empty. Two tools can have several edges.
    """
    import networkx as nx

    graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for tool in catalog.tools.values():
        graph.add_node(tool.id, core=tool.core)
    for tool in catalog.tools.values():
        for edge in tool.depends_on:
            about = {"kind": edge.kind.value, "parameter": edge.parameter or "", "reason": edge.reason}
            graph.add_edge(tool.id, edge.tool, **about)
    return graph


def walk(catalog: Catalog, start: str, *, direct_first: bool = True, proposed: bool = False) -> tuple[Reached, ...]:
    """Depth-first walk along the dependencies of one tool; each tool is visited once.

    Source: Graph RAG-Tool Fusion, Algorithm 1, the function DFS.

    Args:
        catalog: The tools with their dependencies.
        start: Id of the tool where the walk starts; it is not in the result.
        direct_first: Visit the direct dependencies of a tool before its indirect ones. The paper
            uses their order in the list, so that a limit can drop a required tool after an optional one.
        proposed: Whether to follow proposed and observed dependencies too.

    Returns:
        The tools in the order of their first visit.

    Raises:
        UnknownNameError: The catalog has no tool of this id.
    """
    needed = required(catalog, start)
    reached: dict[str, Reached] = {start: Reached(start, (start,), direct=True)}

    def siblings(tool: str) -> list[Dependency]:
        edges = [edge for edge in catalog.tool(tool).depends_on if proposed or edge.holds]
        return sorted(edges, key=lambda edge: not edge.kind.direct) if direct_first else edges

    stack = [(start, iter(siblings(start)))]
    while stack:
        tool, edges = stack[-1]
        edge = next(edges, None)
        if edge is None:
            stack.pop()
        elif edge.tool not in reached:
            reached[edge.tool] = Reached(edge.tool, (*reached[tool].path, edge.tool), edge.tool in needed)
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
    """The dependencies of one tool with the weights of their strongest paths.

    ::

        W(start -> t) = max over paths from start to t of the product over their edges of
                        weight(kind of the edge) * listing ** (how many its tool lists before it)

    The weight of an edge that no person wrote or accepted is multiplied by::

        proposed * confidence ** 2 * (.5 if it is indirect)
                 * product over the sources of the same argument that are listed before it of (1 - their confidence)

    since an optional argument is often left out, and one source of an argument is enough.

    Args:
        catalog: The tools with their dependencies.
        start: Id of the tool; it is not in the result.
        weights: Weight of an edge by its kind, at most 1, so that cycles never increase a weight.
        listing: Factor for each dependency listed earlier: authors list important ones first.
        proposed: Factor for dependencies that no person wrote or accepted; 0 leaves them out.

    Returns:
        The tools in the order of the walk, each with its weight. Of paths of equal weight, the first one listed
        counts.

    Raises:
        UnknownNameError: The catalog has no tool of this id.
    """
    best: dict[str, tuple[float, tuple[str, ...]]] = {start: (1.0, (start,))}
    todo = [start]
    while todo:
        tool = todo.pop(0)
        weight, path = best[tool]
        before: dict[str, int] = {}
        for edge, worth in _worths(catalog.tool(tool).depends_on, proposed):
            if not worth:
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


def _worths(edges: Iterable[Dependency], proposed: float) -> Iterator[tuple[Dependency, float]]:
    """Each dependency, and its factor: 1 if a person wrote or accepted it."""
    unfilled: dict[str, float] = {}
    for edge in edges:
        if edge.holds:
            yield edge, 1.0
            continue
        worth = proposed * edge.confidence**2 * (1 if edge.kind.direct else _INDIRECT)
        if edge.parameter:
            left = unfilled.get(edge.parameter, 1.0)
            worth *= left
            unfilled[edge.parameter] = left * (1 - edge.confidence)
        yield edge, worth


def evidence(catalog: Catalog, path: Sequence[str]) -> str:
    """Evidence for the last dependency of a path; empty if a person wrote or accepted it, or a skill names the tool."""
    source = catalog.tools.get(path[-2]) if len(path) > 1 else None
    edges = [edge for edge in source.depends_on if edge.tool == path[-1]] if source else []
    return "" if any(edge.holds for edge in edges) else next((edge.reason for edge in edges), "")


def required(catalog: Catalog, start: str) -> frozenset[str]:
    """Ids of the tools that one tool requires, directly or through others."""

    def successors(tool: str) -> Iterable[str]:
        return (edge.tool for edge in catalog.tool(tool).depends_on if edge.required)

    return frozenset(reachable([start], successors) - {start})


def reachable(starts: Iterable[str], successors: Callable[[str], Iterable[str]]) -> set[str]:
    """The nodes that paths from these nodes lead to, and these nodes themselves."""
    nodes = set(starts)
    stack = list(nodes)
    while stack:
        new = set(successors(stack.pop())) - nodes
        nodes |= new
        stack.extend(new)
    return nodes


def required_paths(catalog: Catalog, start: str) -> Iterator[tuple[str, ...]]:
    """Paths of required dependencies to each tool that the start requires, depth first."""
    visited: set[str] = set()
    stack: list[tuple[str, ...]] = [(start,)]
    while stack:
        path = stack.pop()
        end = path[-1]
        if end in visited:
            continue
        visited.add(end)
        if end != start:
            yield path
        tools = (edge.tool for edge in catalog.tool(end).depends_on if edge.required)
        stack.extend(reversed([(*path, tool) for tool in tools if tool not in visited]))
