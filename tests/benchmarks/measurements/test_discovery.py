"""What is shown under a budget, and how a setting is chosen for it."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.measurements import discovery
from benchmarks.measurements.discovery import BUDGETS, COLUMNS, METHODS, measure, shown, worth
from benchmarks.methods.search import World
from benchmarks.methods.vectors import vectors_of_this_run
from benchmarks.sets.cases import Benchmark, Case, wanted
from callsheet.graphs import Catalog
from callsheet.retrievers import AgentGraphRetriever


def of(*rows: tuple[float, int, int]) -> dict[int, np.ndarray]:
    return {budget: np.array(rows, float) for budget in BUDGETS}


def test_recall_and_what_is_right_of_what_is_shown(catalog: Catalog) -> None:
    retriever = AgentGraphRetriever.from_catalog(catalog, index=":memory:")
    cases = [
        Case("1", "convert miles to kilometres", "g", tools=wanted([["units/convert_length"], ["maps/find_place"]]))
    ]
    plain = shown(retriever, cases, {})
    assert plain[3].tolist() == [[1, 2, 3]]
    assert shown(retriever, cases, {"cut": 1e9})[3].tolist() == [[0.5, 1, 1]]


def test_a_choice_that_loses_recall_anywhere_is_worse_than_any_that_does_not() -> None:
    plain = of((1.0, 1, 5), (0.0, 0, 5))
    narrow, safe = of((0.0, 0, 1), (0.0, 0, 1)), of((1.0, 1, 4), (0.0, 0, 4))
    assert worth(safe, plain, [0, 1]) == (0.0, 1 / 8)
    assert worth(safe, plain, [0, 1]) > worth(narrow, plain, [0, 1])
    assert worth(narrow, plain, [1]) == (0.0, 0.0)
    lossy = of((1.0, 1, 1), (0.0, 0, 1))
    lossy[10] = np.array([(0.9, 1, 1), (0.0, 0, 1)])
    assert worth(lossy, plain, [0, 1])[0] == pytest.approx(-0.05)


def test_a_row_a_budget_and_method(catalog: Catalog, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = (
        Case("1", "convert miles to kilometres", "u", tools=wanted([["units/convert_length"]])),
        Case("2", "book a hotel room in Rome", "t", tools=wanted([["travel/book_hotel"]])),
    )
    monkeypatch.setattr(discovery, "GRID", {"capability_weight": (0.1,), "capability_sure": (0.9,), "cut": (0.1, 0.2)})
    bench = Benchmark("livemcpbench-steps", "Two", catalog, cases, ("tool",), ((5,),))
    body = measure(bench, World(catalog, vectors_of_this_run()))
    rows: list[list[str]] = body["rows"]  # type: ignore[assignment]
    assert len(rows) == len(BUDGETS) * (len(METHODS) + 1)
    assert {len(row) for row in rows} == {len(COLUMNS)}
    assert len(body["choices"]) == 2  # type: ignore[arg-type]
