"""Inferred dependencies against written ones: the arithmetic, and the public data where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.bootstrap import Bootstrap
from benchmarks.measurements.dependencies import (
    EDGE_COLUMNS,
    bare,
    counts,
    figures,
    measure_edges,
    pairs_of,
    parts,
    written_in,
)
from benchmarks.search import World, vectors_of_this_run
from benchmarks.sets.cases import Benchmark, Case, wanted
from benchmarks.sets.loaders import toollinkos
from callsheet.graphs import Agent, Catalog, Tool
from callsheet.retrievers.inference import infer_dependencies


def test_counts_by_the_tool_that_has_the_need() -> None:
    written, proposed = {("a", "b"), ("a", "c"), ("d", "b")}, {("a", "b"), ("d", "b"), ("d", "e")}
    assert counts(["a", "d", "x"], written, proposed) == [(1, 1, 2), (1, 2, 1), (0, 0, 0)]


def test_precision_recall_and_f1_are_ratios_of_sums() -> None:
    precision, recall, f1 = figures([(2, 4, 2), (1, 1, 4), (0, 0, 0)])
    assert precision.mean == 3 / 5
    assert recall.mean == 3 / 6
    assert f1.mean == pytest.approx(2 * 0.6 * 0.5 / 1.1)
    assert precision.low <= precision.mean <= precision.high


def test_a_ratio_of_nothing_is_nothing() -> None:
    assert Bootstrap(["a", "b"]).ratio([0, 0], [0, 0]).mean == 0.0


def test_a_bare_catalog_has_no_edges_but_those_that_are_kept(catalog: Catalog) -> None:
    assert written_in(bare(catalog)) == set()
    kept = bare(catalog, keep=lambda tool: tool.name == "forecast")
    assert list(written_in(kept)) == [("weather/forecast", "maps/find_place")]
    assert list(kept.tools) == list(catalog.tools)


def test_tables_of_a_small_catalog(catalog: Catalog) -> None:
    cases = (Case("1", "plan a trip", "t", tools=wanted([["travel/plan_trip"]])),)
    small = Benchmark("toolsandbox", "Six", catalog, cases, {"tool": (10,)})
    edges = measure_edges([(small, World(catalog, vectors_of_this_run()))])
    (row,) = edges["rows"]  # type: ignore[misc]
    assert len(row) == len(EDGE_COLUMNS)  # type: ignore[has-type]
    assert row[:2] == ["toolsandbox", "3"]  # type: ignore[has-type]


def test_proposals_for_other_arguments_than_the_first_have_a_row_without_them() -> None:
    def tool(name: str, *required: str, gives: str = "") -> Tool:
        needs = {"type": "object", "properties": {key: {"type": "string"} for key in required}, "required": [*required]}
        output = {"type": "object", "properties": {gives: {"type": "string"}}} if gives else None
        return Tool(agent="tv", name=name, description=name, input_schema=needs, output_schema=output)

    search = tool("search_series", "query", gives="series_id")
    show = tool("get_series", "series_id", gives="season_code")
    episodes = tool("list_episodes", "series_id", "season_code")
    catalog = Catalog(agents=(Agent(id="tv", tools=(search, show, episodes)),))
    bench = Benchmark("restbench", "Three", catalog, (), {})
    rows = measure_edges([(bench, World(catalog, vectors_of_this_run()))])["rows"]
    assert [(row[0], row[2]) for row in rows] == [  # type: ignore[attr-defined]
        ("restbench", "3"),
        ("restbench, to first arguments", "2"),
    ]


@pytest.mark.slow
def test_toollinkos_from_schemas_alone(shared: Path) -> None:
    """The promise of the documentation, on the half of the tools that no rule was chosen with."""
    bench = toollinkos(shared / "benchmarks" / "toollinkos")[1]
    proposed = pairs_of(infer_dependencies(bare(bench.catalog)))
    halves = parts(bench)
    assert [len(tools) for _, tools, _ in halves[:3]] == [573, 286, 287]
    assert set(halves[1][1]) | set(halves[2][1]) == set(halves[0][1])
    for _, tools, _ in halves[:3]:
        precision, _, f1 = figures(counts(tools, written_in(bench.catalog), proposed))
        assert precision.mean >= 0.75
        assert f1.mean >= 0.50
