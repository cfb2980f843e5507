"""Every part of the default off, on every set."""

from __future__ import annotations

import pytest

from benchmarks.bootstrap import Interval
from benchmarks.measurements import ablations
from benchmarks.report import compact
from benchmarks.search import World, vectors_of_this_run
from benchmarks.sets.cases import Benchmark, Case, wanted
from callsheet.graphs import Catalog
from callsheet.retrievers import SelectSettings


@pytest.fixture
def bench(catalog: Catalog) -> Benchmark:
    cases = (
        Case("1", "convert miles to kilometres", "u", tools=wanted([["units/convert_length"]])),
        Case("2", "book a hotel room in Rome", "t", tools=wanted([["travel/book_hotel"]])),
    )
    return Benchmark("toolsandbox", "Two", catalog, cases, {"tool": (5, 10)})


def test_a_set_has_a_row_for_the_default_and_one_for_each_part_that_is_off(bench: Benchmark) -> None:
    rows = ablations.rows_of(bench, World(bench.catalog, vectors_of_this_run()))
    first, *others = rows
    assert first[:3] == ["toolsandbox", "2", ablations.WHOLE]
    assert first[3] == "1.000 [1.000, 1.000]"
    assert {row[2] for row in others} > ablations.SETTINGS.keys()
    assert all(len(row) == len(ablations.COLUMNS) for row in rows)
    by_part = {row[2]: row[3] for row in others}
    assert by_part["places of copies"] == "+.000 (+.000 to +.000)"


def test_every_part_is_on_by_default() -> None:
    default = SelectSettings().to_dict()
    for part, changes in ablations.SETTINGS.items():
        assert {name: default[name] for name in changes} != changes, part


def test_a_set_with_dependencies_is_also_measured_without_them(bench: Benchmark) -> None:
    names = [row[0] for row in ablations.measure([(bench, World(bench.catalog, vectors_of_this_run()))])["rows"]]  # type: ignore[attr-defined]
    assert list(dict.fromkeys(names)) == ["toolsandbox", "toolsandbox, undeclared"]


def test_the_page_shows_the_intervals() -> None:
    row = ["metatool", "2", "clauses", ablations.gain(Interval(-0.0123, -0.02, 0.004)), "+.000", "+.000"]
    table = compact("ablations", {"about": "About", "columns": ablations.COLUMNS, "rows": [row]})
    assert "-.012 (-.020 to +.004)" in table
