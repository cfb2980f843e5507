"""How much of a list of tools stays from turn to turn."""

from __future__ import annotations

from benchmarks.costs.tool_prefix import SET, measure, row
from benchmarks.methods.search import World
from benchmarks.methods.vectors import vectors_of_this_run
from benchmarks.sets.cases import Benchmark, Case
from callsheet.graphs import Catalog


def test_the_arithmetic_of_a_row() -> None:
    first, second = b"a" * 40, b"b" * 40
    lists = [[first], [first, second], [first, second], [second]]
    # sizes 80, 80, 40; the second turn changes nothing; kept 40 of 40, 80 of 80, and 0 of 80
    assert row([lists]) == ["17", "3", "0.333", "0.667", "10"]


def test_three_tools_never_change_and_direct_ones_do(catalog: Catalog) -> None:
    cases = (Case("1", "Convert miles to kilometres", "t"), Case("2", "plan a trip to Rome", "t"))
    bench = Benchmark(SET, "Two steps", catalog, cases, ("tool",), ((5,),))
    body = measure(bench, World(catalog, vectors_of_this_run()))
    rows: dict[str, list[str]] = {one[0]: one for one in body["rows"]}  # type: ignore[attr-defined]
    assert rows["three tools"][3:6] == rows["all tools, without Callsheet"][3:6] == ["2", "1.000", "1.000"]
    assert float(rows["three tools, --direct 5"][4]) < 1
