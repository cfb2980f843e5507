"""Mermaid flowcharts of tools in the frames of their agents, with their dependencies."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from callsheet.graphs.catalog.errors import SettingsError, UnknownNameError, near_names
from callsheet.graphs.catalog.model import Agent, Catalog, Dependency, DependencyKind
from callsheet.graphs.dependencies.traversal import dependency_graph
from callsheet.graphs.text.sanitizing import counted, escaped

if TYPE_CHECKING:
    import networkx as nx

MOST_TOOLS = 60
_LONGEST = 60
_MARKUP = re.compile(r"[!-+.;-@\[-^`{-~]|^-")
_ARROWS: Mapping[DependencyKind, str] = {
    DependencyKind.TOOL_DIRECTLY: "-->",
    DependencyKind.TOOL_INDIRECTLY: "-.->",
    DependencyKind.PARAMETER_DIRECTLY: "==>",
    DependencyKind.PARAMETER_INDIRECTLY: "--o",
}
_STYLES = (
    "classDef tool fill:#ffffff,stroke:#4a6fa5,color:#1b2a41",
    "classDef core fill:#fdf1d0,stroke:#b8860b,color:#1b2a41",
    "classDef start fill:#d5e8d4,stroke:#2d7d46,stroke-width:3px,color:#1b2a41",
    "classDef owner fill:#f3f6fa,stroke:#9db2cf,color:#1b2a41",
    "classDef key fill:none,stroke:none,color:#777777",
)


def to_mermaid(catalog: Catalog, *, around: str | None = None, depth: int = 2) -> str:
    """Tools and their dependencies as a Mermaid flowchart; agents are frames, kinds of dependencies are line styles.

    A chart around a tool shows the tools that it needs and the tools that need it, directly or through others. If
    there are more than 60, the chart shows the nearest and says how many are left out.

    Args:
        catalog: The catalog to draw.
        around: Id of the tool or agent in the middle; None draws the whole catalog.
        depth: Maximum distance in dependencies; from an agent to its own tools counts as one.

    Raises:
        UnknownNameError: There is no tool or agent with this id.
        SettingsError: The depth is not positive, or the whole catalog is too large for a chart.
    """
    tools = list(catalog.tools) if around is None else _around(catalog, around, depth)
    if around is None and len(tools) > MOST_TOOLS:
        raise SettingsError(f"{len(tools)} tools are more than a Mermaid chart can show: name one to draw around")
    near = set(tools[:MOST_TOOLS])
    names = {tool: f"t{number}" for number, tool in enumerate(tool for tool in catalog.tools if tool in near)}
    edges = [(tool, edge) for tool in names for edge in catalog.tools[tool].depends_on if edge.tool in names]
    owners = [agent for agent in catalog.agents if agent.id == around or any(tool.id in names for tool in agent.tools)]
    lines = [
        *(line for number, agent in enumerate(owners) for line in _frame(agent, number, names, around)),
        *(_arrow(names[tool], edge, names[edge.tool]) for tool, edge in edges),
        *([f'more["and {counted(len(tools) - len(near), "more tool")}"]:::key'] if len(tools) > len(near) else []),
        *_legend({edge.kind for _, edge in edges}),
        *_STYLES,
    ]
    return "\n  ".join(["flowchart LR", *lines]) + "\n"


def _around(catalog: Catalog, start: str, depth: int) -> list[str]:
    """The ids of the tools to draw, nearest first."""
    if depth < 1:
        raise SettingsError(f"the depth must be 1 or more, not {depth}")
    if start not in catalog.tools and start not in catalog.by_id:
        known = [*catalog.by_id, *catalog.tools]
        raise UnknownNameError(f"no tool or agent {start!r} in the catalog{near_names(start, known)}")
    from_agent = start in catalog.by_id
    first = [tool.id for tool in catalog.agent(start).tools] if from_agent else [start]
    steps = depth - 1 if from_agent else depth
    graph = dependency_graph(catalog)
    dependencies, dependents = (_distances(g, first, steps) for g in (graph, graph.reverse(copy=False)))
    nodes = {**dependents, **dependencies}
    return sorted(nodes, key=lambda tool: min(dependencies.get(tool, depth), dependents.get(tool, depth)))


def _distances(graph: nx.MultiDiGraph[str], first: Sequence[str], steps: int) -> dict[str, int]:
    """Tool -> its distance in edges, up to this number of steps; the order of the layers is deterministic."""
    distances = dict.fromkeys(first, 0)
    layer = list(first)
    for step in range(1, steps + 1):
        layer = list(dict.fromkeys(other for tool in layer for other in graph[tool] if other not in distances))
        distances |= dict.fromkeys(layer, step)
    return distances


def _frame(agent: Agent, number: int, names: Mapping[str, str], around: str | None) -> Iterator[str]:
    yield f"subgraph a{number}[{_label(agent.id)}]"
    yield "  direction LR"
    for tool in agent.tools:
        if tool.id in names:
            kind = "start" if tool.id == around else "core" if tool.core else "tool"
            yield f"  {names[tool.id]}[{_label(tool.name)}]:::{kind}"
    yield "end"
    yield f"class a{number} {'start' if agent.id == around else 'owner'}"


def _arrow(source: str, edge: Dependency, target: str) -> str:
    about = f"|{_label(edge.parameter)}|" if edge.parameter and edge.parameter.strip() else ""
    return f"{source} {_ARROWS[edge.kind]}{about} {target}"


def _legend(drawn: Collection[DependencyKind]) -> Iterator[str]:
    """The legend: one line for each kind of dependency in the chart."""
    if not drawn:
        return
    yield 'subgraph legend["legend"]'
    yield "  direction LR"
    for number, kind in enumerate(kind for kind in DependencyKind if kind in drawn):
        words = kind.value.replace("_", " ")
        yield f"  k{number}[tool]:::key {_ARROWS[kind]}|needs, {words}| n{number}[needed]:::key"
    yield "end"
    yield "class legend key"


def _label(text: str) -> str:
    """A quoted label on one line, with Mermaid and HTML markup characters as entities."""
    line = " ".join(escaped(text).split())
    line = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    return f'"{_MARKUP.sub(lambda match: f"#{ord(match.group())};", line) or " "}"'
