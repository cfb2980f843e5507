"""Whole requests with recorded plans: what a worker gets, by retrieval, by name, and by the product's path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.measurements.whole_requests import (
    COLUMNS,
    LARGE,
    LARGE_QUERIES,
    LARGE_TOOLS,
    PLANS,
    WAYS,
    RecordedPlan,
    large_catalog,
    measure,
    read_plans,
    rows_of,
)
from benchmarks.search import World, vectors_of_this_run
from benchmarks.sets import loaders
from benchmarks.sets.cases import Benchmark, Case, wanted
from callsheet.graphs import Catalog
from callsheet.retrievers import AgentGraphRetriever

SETS = Path(loaders.__file__).parent
HOTEL = RecordedPlan(("travel/book_hotel",), ("book a hotel room", "convert miles to kilometres"))
PATH, BY_REQUEST = "the product's path, picks on the first step", "retrieval by the whole request"
CASE = Case("1", "first this, then that", "1", tools=wanted([["travel/book_hotel"], ["units/convert_length"]]))


@pytest.fixture
def bench(catalog: Catalog) -> Benchmark:
    return Benchmark("mcp-atlas-requests", "Two", catalog, (CASE, Case("2", "no plan", "2")), {"tool": (5, 10)})


@pytest.fixture
def retriever(catalog: Catalog) -> AgentGraphRetriever:
    return AgentGraphRetriever.from_catalog(catalog, index=":memory:", embeddings=vectors_of_this_run())


def test_picks_come_first_where_a_way_uses_them(retriever: AgentGraphRetriever) -> None:
    given = {title: way(retriever, CASE, HOTEL) for title, way in WAYS.items()}
    assert given["picks by name alone"] == ["travel/book_hotel"]
    for title in ("picks by name, then the steps' best up to ten", PATH):
        assert given[title][0] == "travel/book_hotel"
        assert "units/convert_length" in given[title]
    assert "units/convert_length" in given["the steps, each through the retriever, in turn"]


def test_a_pick_goes_to_the_step_that_it_fits(retriever: AgentGraphRetriever) -> None:
    plan = RecordedPlan(("units/convert_length",), ("book a hotel room", "convert miles to kilometres"))
    given = WAYS["the product's path, picks on the step they fit"](retriever, CASE, plan)
    assert {"units/convert_length", "travel/book_hotel"} <= set(given)


def test_a_row_for_each_way_over_the_requests_with_a_plan(bench: Benchmark) -> None:
    rows = rows_of(bench, World(bench.catalog, vectors_of_this_run()), {"1": HOTEL})
    assert [row[2] for row in rows] == list(WAYS)
    assert all(len(row) == len(COLUMNS) and row[:2] == ["mcp-atlas-requests", "1"] for row in rows)
    by_name = next(row for row in rows if row[2] == "picks by name alone")
    assert [figure.split()[0] for figure in by_name[3:6]] == [".500", ".000", "1.0"]


def test_sets_without_plans_have_no_row(bench: Benchmark) -> None:
    other = Benchmark("metatool", "Two", bench.catalog, bench.queries, bench.levels)
    assert measure([(other, World(bench.catalog, vectors_of_this_run()))])["rows"] == []


@pytest.mark.parametrize("name", PLANS.values())
def test_recorded_plans_hold_ids_and_texts_only(name: str) -> None:
    lines = [json.loads(line) for line in (SETS / name).read_text(encoding="utf-8").splitlines()]
    assert {tuple(line) for line in lines} == {("id", "picks", "steps")}
    assert len(read_plans(SETS / name)) == len(lines)
    for line in lines:
        assert len(line["picks"]) <= 10
        assert line["steps"]
        assert all("/" in pick for pick in line["picks"])


def test_a_part_of_a_catalog_has_the_queries_that_need_no_other_tool(bench: Benchmark) -> None:
    part = large_catalog(bench, tools=3, queries=5)
    assert part.name == "mcp-atlas-requests-3"
    assert len(part.catalog.agents) < len(bench.catalog.agents)
    assert large_catalog(bench, tools=3, queries=5) == part
    whole = large_catalog(bench, tools=1_000, queries=5)
    assert len(whole.catalog.tools) == len(bench.catalog.tools)
    assert [case.id for case in whole.queries] == ["1"]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("mcp-atlas-requests", 0.80), ("livemcpbench-direct", 0.91)])
def test_the_path_of_the_product_finds_what_whole_requests_need(shared: Path, name: str, least: float) -> None:
    benches, said = loaders.load_benchmarks(shared / "benchmarks", [name])
    if not benches:
        pytest.skip(said[0])
    world, plans = World(benches[0].catalog, vectors_of_this_run()), read_plans(SETS / PLANS[name])
    (path,) = rows_of(benches[0], world, plans, ways=[PATH])
    recall, tools = (float(path[place].split()[0]) for place in (3, 5))
    assert recall >= least
    assert tools <= 12


@pytest.mark.slow
@pytest.mark.exhaustive  # 3,000 texts are embedded; the test before holds the path over the catalogs of real servers
def test_in_a_catalog_of_three_thousand_tools_the_path_finds_at_least_what_retrieval_by_the_query_finds(
    shared: Path,
) -> None:
    benches, said = loaders.load_benchmarks(shared / "benchmarks", [LARGE])
    if not benches:
        pytest.skip(said[0])
    part = large_catalog(benches[0])
    assert (len(part.catalog.tools), len(part.queries)) == (LARGE_TOOLS, LARGE_QUERIES)
    world, plans = World(part.catalog, vectors_of_this_run()), read_plans(SETS / PLANS[LARGE])
    path, by_request = (float(row[3].split()[0]) for row in rows_of(part, world, plans, ways=[PATH, BY_REQUEST]))
    assert path >= by_request
