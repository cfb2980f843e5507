"""The whole graph as one SVG picture."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files

from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.export.pictures.drawing import KINDS, drawn, xml
from callsheet.graphs.export.pictures.layout import CELL, GAP, lay_out
from callsheet.graphs.text.sanitizing import counted

_TOP, _STEP = 46.0, 34.0


def to_svg(catalog: Catalog) -> str:
    """All agents, tools and dependencies as one self-contained SVG picture.

    An agent is a frame, a tool a line in it, a dependency a curve to the needed tool. The colours follow the light or
    dark setting of the viewer.
    """
    layout = lay_out(catalog)
    width, height = max(layout.width, 760.0), layout.height + _TOP
    style = f"{asset('picture.css')}@media (prefers-color-scheme: dark) {{\n{asset('picture_dark.css')}}}\n"
    return "\n".join(
        (
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}">',
            f"<title>{xml(summary(catalog))}</title>",
            f"<style>{style}</style>",
            '<rect class="ground" width="100%" height="100%"/>',
            *_legend(catalog),
            f'<g transform="translate(0 {_TOP:g})">',
            *drawn(layout, catalog),
            "</g>",
            "</svg>\n",
        )
    )


def summary(catalog: Catalog) -> str:
    """The numbers of agents, tools and dependencies."""
    edges = sum(len(tool.depends_on) for tool in catalog.tools.values())
    nodes = (counted(len(catalog.agents), "agent"), counted(len(catalog.tools), "tool"))
    return ", ".join((*nodes, counted(edges, "dependency", "dependencies")))


def asset(name: str) -> str:
    """A file of this package."""
    return files("callsheet.graphs.export.pictures").joinpath("files", name).read_text(encoding="utf-8")


def signs(catalog: Catalog) -> Iterator[tuple[str, str, str]]:
    """The signs that occur in a picture: an element of 26 pixels, its meaning, the CSS class of a dependency."""
    dot = '<g class="{}"><circle cx="{}" cy="0" r="{}"/></g>'
    needed = any(tool.depends_on for tool in catalog.tools.values())
    larger = dot.format("tool", 8, 2) + dot.format("tool", 20, 4.5)
    yield (larger, "tool, larger if more need it", "") if needed else (dot.format("tool", 20, 2.5), "tool", "")
    if any(tool.core for tool in catalog.tools.values()):
        yield dot.format("tool core", 20, 4), "core tool", ""
    used = {edge.kind for tool in catalog.tools.values() for edge in tool.depends_on}
    for kind, (name, meaning) in KINDS.items():
        if kind in used:
            yield f'<path class="edge {name}" d="M0 0h26"/>', meaning, name


def _legend(catalog: Catalog) -> Iterator[str]:
    """The legend of the signs that occur."""
    yield f'<text class="title" x="{GAP:g}" y="18">{xml(summary(catalog))}</text>'
    x = GAP
    for sign, label, _ in signs(catalog):
        text = f'<text class="legend" x="{_STEP - 4:g}" y="4">{label}</text>'
        yield f'<g transform="translate({x:.1f} 35)">{sign}{text}</g>'
        x += _STEP + len(label) * CELL + 2 * GAP
