"""Each baseline on three tools with vectors set by hand, so that every ranking can be worked out on paper."""

from __future__ import annotations

import numpy as np
import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings

from benchmarks.baselines import (
    AGENT_BASELINES,
    TOOL_BASELINES,
    WEIGHT_GRID,
    fusion_at,
    method,
)
from benchmarks.measurements.papers import agent_as_a_graph, error, tool_fusion
from benchmarks.search import World, embedder_of_this_run
from benchmarks.sets.cases import Benchmark, Case
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


class Angles(Embeddings):
    def embed_query(self, text: str) -> list[float]:
        turned = np.radians(ANGLES.get(text, 90))
        return [float(np.cos(turned)), float(np.sin(turned))]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]


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
def test_agents_are_ranked_by_angle(world: World, name: str, expected: list[str]) -> None:
    assert AGENT_BASELINES[name](world)("ask") == expected


@pytest.mark.parametrize(
    ("weights", "expected"),
    [("1:1", ["sea", "sky"]), ("1:2", ["sky", "sea"]), ("2:1", ["sea", "sky"])],
)
def test_eq_2_adds_over_the_lists_of_types(world: World, weights: str, expected: list[str]) -> None:
    # agents: sea, sky; owners of tools: sky, sea. At 1:1 a tie, in the agents' order; at 1:2 sky has 1 / 62 + 2 / 61.
    assert fusion_at(world, "weighted-rrf", WEIGHT_GRID[weights])("ask") == expected


def test_tools_by_words_without_stop_words_and_by_angle(world: World) -> None:
    assert TOOL_BASELINES["BM25"](world)("the wind at the harbour") == ["sky/wind", "sea/tide"]
    assert TOOL_BASELINES["BM25"](world)("nothing shared") == []
    assert TOOL_BASELINES["dense (naive RAG)"](world)("ask") == ["sky/rain", "sea/tide", "sky/wind"]  # by angle
    assert AGENT_BASELINES["BM25, tools"](world)("harbour") == ["sea"]


def test_hybrid_adds_the_ranks_of_both(world: World) -> None:
    # harbour: tide is 1st by words; all have the query's angle 90 from "harbour", wind nearest to it
    assert TOOL_BASELINES["BM25 + dense, RRF"](world)("harbour")[0] == "sea/tide"


def test_mcp_zero_takes_tools_by_their_servers_and_themselves(world: World) -> None:
    assert TOOL_BASELINES["MCP-Zero"](world)("ask") == ["sea/tide", "sky/rain", "sky/wind"]
    assert AGENT_BASELINES["MCP-Zero"](world)("ask") == ["sea", "sky"]


def test_a_list_of_length_n_is_all_that_agent_as_a_graph_sees(world: World) -> None:
    assert fusion_at(world, "agent-as-a-graph", WEIGHT_GRID["1.5:1"], top_n=1)("ask") == ["sky"]


def test_graph_rag_is_algorithm_1_and_no_more(world: World) -> None:
    assert method(world, "graph-rag-tool-fusion", expand=1)("ask") == ["sky/rain", "sky/wind"]
    assert method(world, "graph-rag-tool-fusion", expand=2)("ask") == ["sky/rain", "sky/wind", "sea/tide"]


def test_the_methods_of_the_papers_are_measured_with_their_settings(world: World) -> None:
    case = Case("1", "ask", "g", agents=(frozenset({"sky"}),), tools=(frozenset({"sky/rain"}), frozenset({"sky/wind"})))
    bench = Benchmark("b", "B", world.catalog, (case,), {})
    figures = {row[0]: row for row in agent_as_a_graph(bench, world)["rows"]}  # type: ignore[attr-defined]
    assert figures["1.5:1"][-1] == "100.0%"  # both by their own nodes
    assert figures["1:1"][-1] == "50.0%"  # sky by rain, sea by itself
    assert tool_fusion([(bench, world)])["rows"][0] == ["mAP@10, d_limit 1", "1.000 [1.000, 1.000]"]  # type: ignore[index]


def test_an_error_has_its_first_cause() -> None:
    case = Case("1", "q", "g", tools=(frozenset("a"), frozenset("bc")))
    rest = [str(number) for number in range(9)]
    assert [error(ranked, case) for ranked in (["a", *rest], ["a", *rest, "c"], ["a", "0", "b"], ["b", "a"])] == [
        "search",
        "cut",
        "order",
        "",
    ]


def test_any_embedder_of_langchain_is_asked_once_for_each_text(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    class Counting(DeterministicFakeEmbedding):
        def embed_query(self, text: str) -> list[float]:
            asked.append(text)
            return super().embed_query(text)

    monkeypatch.setattr("benchmarks.search.embeddings_of", lambda name: Counting(size=8))
    remembering = embedder_of_this_run("any:model")
    assert remembering.embed_query("a") == remembering.embed_query("a")
    assert asked == ["a"]
