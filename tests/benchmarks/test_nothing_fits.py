"""Each query with the agents that serve it, and without them."""

from __future__ import annotations

import pytest

from benchmarks.measurements.nothing_fits import COLUMNS, Asked, asked, figures, gold_agents, measure
from benchmarks.report import grid
from benchmarks.search import World, vectors_of_this_run
from benchmarks.sets.cases import Benchmark, Case, wanted
from callsheet.graphs import Catalog


@pytest.fixture
def bench(catalog: Catalog) -> Benchmark:
    cases = (
        Case("1", "convert miles to kilometres", "u", tools=wanted([["units/convert_length"]])),
        Case("2", "book a hotel room in Rome", "t", wanted([["travel"]]), wanted([["travel/book_hotel"]])),
        Case("3", "nobody knows", "n"),
    )
    return Benchmark("metatool", "Three", catalog, cases, {"tool": (5, 10)})


def test_the_agents_that_serve_are_those_named_and_the_owners_of_tools(bench: Benchmark) -> None:
    both = Case("4", "q", "g", wanted([["travel"]]), wanted([["units/convert_length", "travel/book_hotel"]]))
    assert gold_agents(both, bench.catalog) == ("travel", "units")
    assert gold_agents(bench.queries[2], bench.catalog) == ()


def test_a_query_is_weaker_without_what_serves_it(bench: Benchmark) -> None:
    found = asked(bench, World(bench.catalog, vectors_of_this_run()))
    assert [one.group for one in found] == ["u", "t"]
    assert all(one.there > one.away for one in found)


def test_figures_from_pairs() -> None:
    found = figures([Asked("a", 1.0, 0.2, False, True), Asked("b", 0.6, 0.8, False, False)])
    assert [figure.mean for figure in found[:3]] == [3 / 4, 0.0, 0.5]


def test_a_row_a_set(bench: Benchmark) -> None:
    body = measure([(bench, World(bench.catalog, vectors_of_this_run()))])
    (row,) = body["rows"]  # type: ignore[misc]
    assert row[:2] == ["metatool", "2"]  # type: ignore[has-type]
    assert len(grid(COLUMNS, [row]).splitlines()) == 3  # type: ignore[has-type]
