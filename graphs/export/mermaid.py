"""A Mermaid flowchart of a neighbourhood: tools in the frames of their owners, and which needs which."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

from callsheet.graphs.catalog.errors import SettingsError, UnknownNameError
from callsheet.graphs.catalog.model import Agent, Catalog, Dependency, DependencyKind, near_names
from callsheet.graphs.text.sanitizing import counted, escaped

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
    """Tools and their dependencies as a Mermaid flowchart; owners are frames, kinds of dependency are styles of line.

    Around a tool are drawn: what it needs, what that needs, and so on; what needs it, and so on. Of more than 60 tools
    the nearest are drawn, and the chart says how many are left out.

    Args:
        catalog: What is drawn.
        around: Id of the tool or agent in the middle; None draws the whole catalog.
        depth: How many dependencies away from it a tool may be; from an agent to its own tools counts as one.

    Raises:
        UnknownNameError: There is no tool or agent of this id.
        SettingsError: The depth is not positive, or the whole catalog is more than a chart can show.
    """
    found = list(catalog.tools) if around is None else _around(catalog, around, depth)
    if around is None and len(found) > MOST_TOOLS:
        raise SettingsError(f"{len(found)} tools are more than a Mermaid chart can show: name one to draw around")
    near = set(found[:MOST_TOOLS])
    names = {tool: f"t{number}" for number, tool in enumerate(tool for tool in catalog.tools if tool in near)}
    edges = [(tool, edge) for tool in names for edge in catalog.tools[tool].depends_on if edge.tool in names]
    owners = [agent for agent in catalog.agents if agent.id == around or any(tool.id in names for tool in agent.tools)]
    lines = [
        *(line for number, agent in enumerate(owners) for line in _frame(agent, number, names, around)),
        *(_arrow(names[tool], edge, names[edge.tool]) for tool, edge in edges),
        *([f'more["and {counted(len(found) - len(near), "more tool")}"]:::key'] if len(found) > len(near) else []),
        *_legend({edge.kind for _, edge in edges}),
        *_STYLES,
    ]
    return "\n  ".join(["flowchart LR", *lines]) + "\n"


def _around(catalog: Catalog, start: str, depth: int) -> list[str]:
    """The ids of the tools to draw, the nearest first."""
    if depth < 1:
        raise SettingsError(f"the depth must be 1 or more, not {depth}")
    if start not in catalog.tools and start not in catalog.by_id:
        known = [*catalog.by_id, *catalog.tools]
        raise UnknownNameError(f"no tool or agent {start!r} in the catalog{near_names(start, known)}")
    from_agent = start in catalog.by_id
    first = [tool.id for tool in catalog.agent(start).tools] if from_agent else [start]
    steps = depth - 1 if from_agent else depth
    needed, needing = (_reached(links, first, steps) for links in _links(catalog))
    return sorted({**needing, **needed}, key=lambda tool: min(needed.get(tool, depth), needing.get(tool, depth)))


def _reached(links: Mapping[str, Sequence[str]], first: Sequence[str], steps: int) -> dict[str, int]:
    """Tool -> how many links away it is, as far as that is not more than these steps."""
    distance = dict.fromkeys(first, 0)
    border = list(first)
    for step in range(1, steps + 1):
        border = list(dict.fromkeys(other for tool in border for other in links[tool] if other not in distance))
        distance |= dict.fromkeys(border, step)
    return distance


def _links(catalog: Catalog) -> tuple[Mapping[str, Sequence[str]], Mapping[str, Sequence[str]]]:
    """Tool -> what it needs, and tool -> what needs it."""
    needs = {tool.id: [edge.tool for edge in tool.depends_on] for tool in catalog.tools.values()}
    needed_by: dict[str, list[str]] = {tool: [] for tool in needs}
    for tool, others in needs.items():
        for other in others:
            needed_by[other].append(tool)
    return needs, needed_by


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
    """A line for each kind of dependency that is drawn, so that a chart explains itself."""
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
    """In quotes, on one line, with every character that Mermaid or HTML might read as markup written as an entity."""
    line = " ".join(escaped(text).split())
    line = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    return f'"{_MARKUP.sub(lambda match: f"#{ord(match.group())};", line) or " "}"'
