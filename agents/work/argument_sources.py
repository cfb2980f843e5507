"""Names tools that may return the arguments of other tools, according to inferred dependencies.

Inferred dependencies are not selected themselves, so a model needs their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callsheet.graphs.catalog.model import Catalog, Dependency, Provenance, Tool

_HEADING = (
    "Tools that you do not have, and that may give an argument of yours (nobody has checked this); ask for one by its "
    "name if you lack the value:"
)
_MOST = 6
"""Maximum number of lines."""


def argument_sources(catalog: Catalog, tool_ids: Sequence[str]) -> str:
    """Names the likeliest source of each argument that none of these tools returns, if one was inferred.

    The likeliest sources come first; empty if there are none.
    """
    tools = [catalog.tools[tool_id] for tool_id in tool_ids if tool_id in catalog.tools]
    sources = [(edge, tool) for tool in tools for edge in _lacking(tool, tool_ids)]
    sources.sort(key=lambda one: -one[0].confidence)
    lines = [f"- {edge.tool} gives {edge.parameter} of {tool.name}" for edge, tool in sources]
    return "\n".join([_HEADING, *lines[:_MOST]]) if lines else ""


def _lacking(tool: Tool, tool_ids: Sequence[str]) -> Iterator[Dependency]:
    """Yields the inferred source with the highest confidence for each argument that has no source among these tools."""
    best: dict[str, Dependency] = {}
    given = {edge.parameter for edge in tool.depends_on if edge.tool in tool_ids}
    for edge in tool.depends_on:
        if edge.provenance is not Provenance.PROPOSED or not edge.parameter or edge.parameter in given:
            continue
        if edge.parameter not in best or edge.confidence > best[edge.parameter].confidence:
            best[edge.parameter] = edge
    yield from best.values()
