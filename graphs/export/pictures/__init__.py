"""Pictures of the whole graph, legible for hundreds of tools: an SVG file, or an interactive page."""

from callsheet.graphs.export.pictures.html import to_html
from callsheet.graphs.export.pictures.svg import to_svg

__all__ = ["to_html", "to_svg"]
