"""Circles of tools that cannot do without each other: found where people wrote them, avoided where a program did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from callsheet.graphs.catalog.model import Catalog, DependencyKind
from callsheet.graphs.dependencies.proposals import Proposal

_INDIRECT = {
    DependencyKind.TOOL_DIRECTLY: DependencyKind.TOOL_INDIRECTLY,
    DependencyKind.PARAMETER_DIRECTLY: DependencyKind.PARAMETER_INDIRECTLY,
}


def without_circles(proposals: Sequence[Proposal], catalog: Catalog) -> tuple[Proposal, ...]:
    """The same proposals, direct ones made indirect until none makes a circle of direct dependencies.

    In every circle the least sure one gives way; dependencies that the catalog holds already never do.

    Args:
        proposals: The edges, in any order.
        catalog: The tools, with the direct dependencies that hold.
    """
    import networkx as nx

    held = [
        (t.id, edge.tool) for t in catalog.tools.values() for edge in t.depends_on if edge.holds and edge.kind.direct
    ]
    kept = list(proposals)
    while True:
        direct = [place for place, edge in enumerate(kept) if edge.kind.direct]
        graph: nx.DiGraph[str] = nx.DiGraph([*held, *((kept[place].source, kept[place].target) for place in direct)])
        part = {
            tool: number
            for number, tools in enumerate(nx.strongly_connected_components(graph))
            if len(tools) > 1
            for tool in tools
        }
        weakest: dict[int, int] = {}
        for place in direct:
            edge = kept[place]
            number = part.get(edge.source, -1)
            if number >= 0 and number == part.get(edge.target):
                rival = weakest.setdefault(number, place)
                if edge.confidence <= kept[rival].confidence:
                    weakest[number] = place
        if not weakest:
            return tuple(kept)
        for place in weakest.values():
            kept[place] = kept[place].model_copy(update={"kind": _INDIRECT[kept[place].kind]})


def path_between(graph: Mapping[str, Sequence[str]], start: str, end: str) -> tuple[str, ...]:
    """The nodes of some way from start to end, both included; empty if there is none."""
    came: dict[str, str] = {start: start}
    todo = [start]
    while todo and end not in came:
        node = todo.pop()
        for following in graph.get(node, ()):
            if following not in came:
                came[following] = node
                todo.append(following)
    if end not in came:
        return ()
    path = [end]
    while path[-1] != start:
        path.append(came[path[-1]])
    return tuple(reversed(path))
