"""Removes cycles of required dependencies from proposals."""

from __future__ import annotations

from collections.abc import Sequence

from callsheet.graphs.catalog.model import Catalog, DependencyKind
from callsheet.graphs.dependencies.proposals import Proposal

_INDIRECT = {
    DependencyKind.TOOL_DIRECTLY: DependencyKind.TOOL_INDIRECTLY,
    DependencyKind.PARAMETER_DIRECTLY: DependencyKind.PARAMETER_INDIRECTLY,
}


def without_cycles(proposals: Sequence[Proposal], catalog: Catalog) -> tuple[Proposal, ...]:
    """The proposals without cycles of direct dependencies.

    In each cycle, the proposal with the lowest confidence becomes indirect, until no cycle is left. Dependencies of
    the catalog do not change.

    Args:
        proposals: The edges, in any order.
        catalog: The tools with their dependencies.
    """
    import networkx as nx

    required = [(tool.id, edge.tool) for tool in catalog.tools.values() for edge in tool.depends_on if edge.required]
    edges = list(proposals)
    while True:
        direct = [i for i, edge in enumerate(edges) if edge.kind.direct]
        graph: nx.DiGraph[str] = nx.DiGraph([*required, *((edges[i].source, edges[i].target) for i in direct)])
        cycles = [tools for tools in nx.strongly_connected_components(graph) if len(tools) > 1]
        cycle_of = {tool: number for number, tools in enumerate(cycles) for tool in tools}
        weakest: dict[int, int] = {}
        for i in direct:
            cycle = cycle_of.get(edges[i].source)
            if cycle is not None and cycle == cycle_of.get(edges[i].target):
                rival = weakest.setdefault(cycle, i)
                if edges[i].confidence <= edges[rival].confidence:
                    weakest[cycle] = i
        if not weakest:
            return tuple(edges)
        for i in weakest.values():
            edges[i] = edges[i].model_copy(update={"kind": _INDIRECT[edges[i].kind]})
