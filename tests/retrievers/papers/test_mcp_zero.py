"""MCP-Zero by hand."""

from __future__ import annotations

import pytest

from callsheet.graphs import knowledge_graph
from callsheet.retrievers import mcp_zero
from scripted import catalog_of

GRAPH = knowledge_graph(catalog_of(sky_rain="", sky_wind="", sea_tide=""))
TOOLS = {"sky/rain": 0.9, "sky/wind": 0.5, "sea/tide": 0.8}


def test_a_tool_scores_by_its_server_and_itself() -> None:
    """(s_server * s_tool) * max(s_server, s_tool): tide .9 * .8 * .9, rain .6 * .9 * .9, wind .6 * .5 * .6."""
    found = mcp_zero({"sky": 0.6, "sea": 0.9}, TOOLS, GRAPH)
    assert [hit.id for hit in found] == ["sea/tide", "sky/rain", "sky/wind"]
    assert [hit.score for hit in found] == pytest.approx([0.648, 0.486, 0.18])


def test_only_tools_of_the_first_servers_are_found() -> None:
    assert [hit.id for hit in mcp_zero({"sky": 0.6, "sea": 0.9}, TOOLS, GRAPH, servers=1)] == ["sea/tide"]
