"""Draws a layout as SVG elements: frames, dependencies and tools."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape

from callsheet.graphs.catalog.model import Catalog, DependencyKind, Provenance, Tool
from callsheet.graphs.export.pictures.layout import HEADER, LINE, MARK, PAD, Frame, Layout, Line
from callsheet.graphs.text.sanitizing import shown

KINDS: Mapping[DependencyKind, tuple[str, str]] = {
    DependencyKind.TOOL_DIRECTLY: ("td", "needs the tool"),
    DependencyKind.TOOL_INDIRECTLY: ("ti", "may need the tool"),
    DependencyKind.PARAMETER_DIRECTLY: ("pd", "needs it for a parameter"),
    DependencyKind.PARAMETER_INDIRECTLY: ("pi", "may need it for a parameter"),
}
"""The CSS class of a dependency's line, and its meaning."""
UNREVIEWED = frozenset({Provenance.PROPOSED, Provenance.OBSERVED})
_NO_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_CROWD, _FAINTEST, _STRONGEST, _ARROWS = 90.0, 0.12, 0.7, 300


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers that identify agents and tools in a page, where ids occur only as text."""

    agents: Mapping[str, int]
    tools: Mapping[str, int]

    @classmethod
    def of(cls, catalog: Catalog) -> Numbers:
        """Agents first, then tools, in the order of the catalog."""
        agents = {agent.id: i for i, agent in enumerate(catalog.agents)}
        return cls(agents, {tool: i for i, tool in enumerate(catalog.tools, len(agents))})


def xml(text: str, most: int = 300) -> str:
    """A text from outside, escaped for XML and HTML, between tags or in attributes."""
    return escape(_NO_XML.sub("", shown(text, most=most)), {'"': "&quot;", "'": "&#39;"})


def drawn(layout: Layout, catalog: Catalog) -> Iterator[str]:
    """The elements of a picture, from back to front."""
    numbers = Numbers.of(catalog)
    yield from _arrowheads()
    for frame in layout.frames:
        yield from _frame(frame, catalog, numbers)
    yield from _edges(layout, catalog, numbers)
    needed = Counter(edge.tool for tool in catalog.tools.values() for edge in tool.depends_on)
    for frame in layout.frames:
        for line in frame.lines:
            yield _tool(line, layout.line, catalog.tools[line.tool], numbers, needed) if line.tool else _heading(line)


def _frame(frame: Frame, catalog: Catalog, numbers: Numbers) -> Iterator[str]:
    agent = catalog.by_id[frame.agent]
    x, y, width = frame.x, frame.y, frame.width
    yield f'<g class="agent" data-n="{numbers.agents[agent.id]}" tabindex="0" role="button">'
    yield f"<title>{xml(agent.id)}: {xml(agent.description or agent.instructions)}</title>"
    yield f'<rect class="box" x="{x:g}" y="{y:g}" width="{width:g}" height="{frame.height:g}" rx="5"/>'
    corner = f"v{9 - HEADER:g}q0-5 5-5h{width - 10:g}q5 0 5 5v{HEADER - 9:g}z"
    yield f'<path class="head" d="M{x:g} {y + HEADER - 4:g}{corner}"/>'
    yield f'<text class="title" x="{x + PAD:g}" y="{y + 14:g}">{xml(frame.title)}</text>'
    yield f'<text class="count" x="{x + width - PAD:g}" y="{y + 14:g}">{len(agent.tools)}</text></g>'


def _heading(line: Line) -> str:
    return f'<text class="heading" x="{line.x:g}" y="{line.y + 4:g}">{xml(line.text)}</text>' if line.text else ""


def _tool(line: Line, width: float, tool: Tool, numbers: Numbers, needed: Counter[str]) -> str:
    kind = "tool core" if tool.core else "tool"
    radius = 2.2 + 0.5 * math.log2(1 + needed[tool.id])
    left, top = line.x - 3, line.y - LINE / 2
    return (
        f'<g class="{kind}" data-n="{numbers.tools[tool.id]}" tabindex="0" role="button">'
        f"<title>{xml(tool.id)}: {xml(tool.description)}</title>"
        f'<rect class="row" x="{left:g}" y="{top:g}" width="{width + 6:.1f}" height="{LINE:g}" rx="3"/>'
        f'<circle cx="{line.x + 5:g}" cy="{line.y:g}" r="{radius:.1f}"/>'
        f'<text x="{line.x + MARK:g}" y="{line.y + 4:g}">{xml(line.text)}</text></g>'
    )


def _edges(layout: Layout, catalog: Catalog, numbers: Numbers) -> Iterator[str]:
    places = {line.tool: line for frame in layout.frames for line in frame.lines if line.tool}
    edges = [(tool.id, edge) for tool in catalog.tools.values() for edge in tool.depends_on]
    opacity = min(_STRONGEST, max(_FAINTEST, _CROWD / max(1, len(edges))))
    yield f'<g class="edges" stroke-opacity="{opacity:.2f}">'
    for source, edge in edges:
        name = KINDS[edge.kind][0]
        unreviewed = " unreviewed" if edge.provenance in UNREVIEWED else ""
        arrow = f' marker-end="url(#to-{name})"' if len(edges) <= _ARROWS else ""
        ends = f'data-a="{numbers.tools[source]}" data-b="{numbers.tools[edge.tool]}"'
        curve = _curve(places[source], places[edge.tool])
        yield f'<path class="edge {name}{unreviewed}" {ends}{arrow} d="{curve}"/>'
    yield "</g>"


def _curve(start: Line, end: Line) -> str:
    """A curve from dot to dot in one column, otherwise from the end of a name to a dot, so that it crosses no name."""
    if abs(start.x - end.x) < MARK:
        x1, x2 = start.x + 5, end.x + 5
        bend1 = bend2 = -min(40.0, 8 + abs(end.y - start.y) / 8)
    else:
        x1, x2 = (start.end + 3, end.x + 5) if start.x < end.x else (start.x + 5, end.end + 3)
        bend1, bend2 = (x2 - x1) / 2, (x1 - x2) / 2
    return f"M{x1:.1f} {start.y:g}C{x1 + bend1:.1f} {start.y:g} {x2 + bend2:.1f} {end.y:g} {x2:.1f} {end.y:g}"


def _arrowheads() -> Iterator[str]:
    yield "<defs>"
    for name, _ in KINDS.values():
        size = 'viewBox="0 0 8 8" refX="10" refY="4" markerWidth="6" markerHeight="6" orient="auto"'
        yield f'<marker id="to-{name}" class="{name}" {size}><path d="M0 0L8 4L0 8z"/></marker>'
    yield "</defs>"
