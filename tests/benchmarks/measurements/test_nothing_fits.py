"""Each query with the agents that serve it, and without them; and beside an agent that wants to be selected."""

from __future__ import annotations

import pytest

from benchmarks.measurements import attack
from benchmarks.measurements.nothing_fits import COLUMNS, Asked, asked, figures, measure, reliability
from benchmarks.report import grid
from benchmarks.search import World, vectors_of_this_run
from benchmarks.sets.cases import Benchmark, Case, wanted
from callsheet.graphs import Agent, Catalog


@pytest.fixture
def bench(catalog: Catalog) -> Benchmark:
    cases = (
        Case("1", "convert miles to kilometres", "u", tools=wanted([["units/convert_length"]])),
        Case("2", "book a hotel room in Rome", "t", wanted([["travel"]]), wanted([["travel/book_hotel"]])),
        Case("3", "nobody knows", "n"),
    )
    return Benchmark("metatool", "Three", catalog, cases, {"tool": (5, 10)})


def test_a_query_is_weaker_without_what_serves_it(bench: Benchmark) -> None:
    found = asked(bench, World(bench.catalog, vectors_of_this_run()))
    assert [one.group for one in found] == ["u", "t"]
    assert all(one.there > one.away for one in found)


def test_figures_are_computed_from_pairs() -> None:
    found = figures([Asked("a", 1.0, 0.2, "found", "nothing_fits"), Asked("b", 0.6, 0.8, "unsure", "found")])
    assert [figure.mean for figure in found] == [3 / 4, 0.0, 0.5, 0.5, 0.5, pytest.approx((0.04 + 0.16 + 0.64) / 4)]


def test_reliability_is_computed_by_fifths() -> None:
    pairs = [("a", 0.9, 0.3), ("b", 0.5, 0.3), ("c", 0.35, 1.0)]
    found = [Asked(group, there, away, "unsure", "unsure") for group, there, away in pairs]
    assert reliability(found) == ".32 / .33, .50 / 1.00, .90 / 1.00"


def test_the_table_has_a_row_for_each_set(bench: Benchmark) -> None:
    body = measure([(bench, World(bench.catalog, vectors_of_this_run()))])
    (row,) = body["rows"]  # type: ignore[misc]
    assert row[:2] == ["metatool", "2"]  # type: ignore[has-type]
    assert len(grid(COLUMNS, [row]).splitlines()) == 3  # type: ignore[has-type]


def test_the_gain_of_an_attacker_is_measured(bench: Benchmark) -> None:
    """Its share of the selected tools, of the selections and of the first tools, and what is right of the others."""
    vectors, cases = vectors_of_this_run(), bench.cases("tool")
    alone = attack.figures_of(bench.catalog, cases, vectors)
    assert (alone[:3], alone[4]) == ((0.0, 0.0, 0.0), 1.0)
    made = {name: tools for name, tools, _ in attack.attacks(bench.catalog)}
    copies = made["copies of tools"]
    assert {tool.name for tool in copies} <= {tool.name for tool in bench.catalog.tools.values()}
    assert not any(tool.input_schema.get("required") for tool in made["sources of arguments"])
    only = Catalog(agents=(Agent(id=copies[0].agent, tools=copies),))
    assert attack.figures_of(only, cases, vectors) == (1.0, 1.0, 1.0, 0.0, 0.0)
    assert (len(made["30 generic tools"]), len(made["8 generic tools"])) == (30, 8)
    reworded = {tool.name: tool.description for tool in made["copies with 40 words exchanged"]}
    assert reworded["locate_place"] == "Finds the coordinates of a place by its title."
    (first, *_, last) = attack.measure(bench, World(bench.catalog, vectors))["rows"]  # type: ignore[misc]
    assert (first[0], last[0]) == ("nothing", "sources of arguments")  # type: ignore[has-type]
