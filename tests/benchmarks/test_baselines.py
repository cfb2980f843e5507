"""Each baseline on three tools with vectors set by hand, so that every ranking can be worked out on paper."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from benchmarks.baselines import (
    AGENT_BASELINES,
    TOOL_BASELINES,
    WEIGHT_GRID,
    agent_as_a_graph_at,
    graph_rag_at,
    hybrid,
    mcp_zero,
)
from benchmarks.search import SharedVectors, World
from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Tool

ANGLES = {
    "ask": 0,
    "sky: Weather.": 40,
    "sea: Tides.": 20,
    "rain: Rain in a place.": 10,
    "wind: Wind in a place.": 60,
    "tide: Tide at a harbour.": 30,
}
"""Degrees from the query ``ask``: the smaller, the more similar."""


class Angles(SharedVectors):
    def encode(self, texts: Sequence[str]) -> np.ndarray:
        turned = np.radians([ANGLES.get(text, 90) for text in texts])
        return np.stack([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)


@pytest.fixture
def world() -> World:
    needs_wind = Dependency(tool="sky/wind", kind=DependencyKind.TOOL_DIRECTLY)
    sky = (
        Tool(agent="sky", name="rain", description="Rain in a place.", depends_on=(needs_wind,)),
        Tool(agent="sky", name="wind", description="Wind in a place."),
    )
    sea = (Tool(agent="sea", name="tide", description="Tide at a harbour."),)
    agents = (Agent(id="sky", description="Weather.", tools=sky), Agent(id="sea", description="Tides.", tools=sea))
    return World(Catalog(agents=agents), Angles())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dense, agents", ["sea", "sky"]),  # 20, 40
        ("dense, tools", ["sky", "sea"]),  # rain 10, tide 30
        ("Agent-as-a-Graph 1:1", ["sky", "sea"]),  # rain 10, sea 20
        ("Agent-as-a-Graph 1.5:1", ["sea", "sky"]),  # 1.5 / 62 of sea above 1 / 61 of rain
        ("Agent-as-a-Graph 1:3", ["sky", "sea"]),
    ],
)
def test_agents_by_angle(world: World, name: str, expected: list[str]) -> None:
    assert AGENT_BASELINES[name](world)("ask") == expected


def test_plain_fusion_of_agents_and_tools_is_a_tie_in_the_agents_order(world: World) -> None:
    # each is first once and second once: 1 / 61 + 1 / 62
    assert AGENT_BASELINES["agents + tools, RRF"](world)("ask") == ["sea", "sky"]


def test_tools_by_angle(world: World) -> None:
    assert TOOL_BASELINES["dense (naive RAG)"](world)("ask") == ["sky/rain", "sea/tide", "sky/wind"]


def test_words_are_split_and_stop_words_do_not_count(world: World) -> None:
    assert TOOL_BASELINES["BM25"](world)("the wind at the harbour") == ["sky/wind", "sea/tide"]
    assert TOOL_BASELINES["BM25"](world)("nothing shared") == []
    assert AGENT_BASELINES["BM25, tools"](world)("harbour") == ["sea"]


def test_hybrid_adds_the_ranks_of_both(world: World) -> None:
    # harbour: tide is 1st by words; all have the query's angle 90 from "harbour", wind nearest to it
    assert hybrid(world.tools)("harbour")[0] == "sea/tide"


def test_mcp_zero_multiplies_both_scores_and_the_larger(world: World) -> None:
    cos = {degrees: float(np.cos(np.radians(degrees))) for degrees in (10, 20, 30, 40, 60)}
    tide, rain = cos[20] * cos[30] * cos[20], cos[40] * cos[10] * cos[10]
    assert tide > rain
    assert mcp_zero(world)("ask") == ["sea/tide", "sky/rain", "sky/wind"]
    assert mcp_zero(world, servers=1)("ask") == ["sea/tide"]


def test_a_list_of_length_n_is_all_that_agent_as_a_graph_sees(world: World) -> None:
    assert agent_as_a_graph_at(world, WEIGHT_GRID["1.5:1"], top_n=1)("ask") == ["sky"]


def test_graph_rag_puts_what_a_tool_needs_behind_it_then_the_rest_of_the_search(world: World) -> None:
    assert graph_rag_at(world, 1)("ask") == ["sky/rain", "sky/wind", "sea/tide"]


def test_every_baseline_ranks_known_ids_without_repeating_one(world: World) -> None:
    for level, known in ((AGENT_BASELINES, world.catalog.by_id), (TOOL_BASELINES, world.catalog.tools)):
        for make in level.values():
            found = make(world)("ask about rain")
            assert set(found) <= set(known)
            assert len(found) == len(set(found))
