"""The whole graph as a picture that stays legible at hundreds of tools: an SVG file, or a page that answers."""

from callsheet.graphs.pictures.page import to_html
from callsheet.graphs.pictures.svg import to_svg

__all__ = ["to_html", "to_svg"]
