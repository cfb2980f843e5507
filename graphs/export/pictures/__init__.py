"""The whole graph as a picture that stays legible at hundreds of tools: an SVG file, or a page that answers."""

from callsheet.graphs.export.pictures.html import to_html
from callsheet.graphs.export.pictures.svg import to_svg

__all__ = ["to_html", "to_svg"]
