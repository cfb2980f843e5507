"""Assigned capabilities beside labelled ones; what is shown under a budget, and how a setting is chosen for it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.measurements import toolkg
from benchmarks.measurements.toolkg import (
    BUDGETS,
    DISCOVERY_COLUMNS,
    LABELS,
    METHODS,
    Labelled,
    figures,
    labelled,
    measure_discovery,
    shown,
    worth,
)
from benchmarks.search import World, vectors_of_this_run
from benchmarks.sets.cases import Benchmark, Case, wanted
from callsheet.graphs import Catalog, default_taxonomy
from callsheet.retrievers import AgentGraphRetriever
from callsheet.retrievers.capabilities import Assigned, Assignments
from known import taxonomy_of


def tool(gold: str, found: str, agent: str = "a", half: str = "held out") -> Labelled:
    return Labelled(agent, half, frozenset(gold.split()), frozenset(found.split()))


def test_micro_averages_are_sums_over_all_tools() -> None:
    tools = [tool("fly", "fly swim"), tool("fly swim", "swim", "b"), tool("run", "", "c")]
    f1, precision, recall = figures(tools, taxonomy_of("fly", "swim", "run"), None)
    assert precision.mean == 2 / 3
    assert recall.mean == 2 / 4
    assert f1.mean == pytest.approx(2 * 2 / (4 + 3))


def test_at_a_wider_level_what_is_under_one_capability_counts_as_one() -> None:
    tools = [tool("web-search", "content-search"), tool("delete listing", "delete file-reading")]
    assert figures(tools, default_taxonomy(), None)[0].mean == 1 / 3
    assert figures(tools, default_taxonomy(), 1)[0].mean == 1.0


def test_agents_that_are_not_there_are_named() -> None:
    labels = {
        "sets": {"s": {"a": {"half": "held out", "tools": {"x": ["fly"]}}, "b": {"half": "h", "tools": {"y": []}}}}
    }
    assigned = {"s": Assignments(taxonomy_of("fly"), {"a/x": (Assigned("fly", 1.0, "text"),)})}
    tools, missing = labelled(labels, assigned)
    assert tools == [Labelled("s a", "held out", frozenset({"fly"}), frozenset({"fly"}))]
    assert missing == ["s b"]
    assert labelled(labels, {}) == ([], ["s a", "s b"])


def test_the_labels_are_leaves_of_the_default_taxonomy_in_two_halves_without_a_shared_agent() -> None:
    sets = json.loads(LABELS.read_text(encoding="utf-8"))["sets"]
    entries = [(agent, entry) for agents in sets.values() for agent, entry in agents.items()]
    used = {name for _, entry in entries for gold in entry["tools"].values() for name in gold}
    assert used <= set(default_taxonomy().leaves)
    assert sum(len(entry["tools"]) for _, entry in entries) >= 160
    halves = {
        half: {agent for agent, entry in entries if entry["half"] == half} for half in ("held out", "development")
    }
    assert not halves["held out"] & halves["development"]
    assert {entry["half"] for _, entry in entries} == set(halves)


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
    monkeypatch.setattr(toolkg, "GRID", {"capability_weight": (0.1,), "capability_sure": (0.9,), "cut": (0.1, 0.2)})
    bench = Benchmark("livemcpbench-steps", "Two", catalog, cases, {"tool": (5,)})
    body = measure_discovery(bench, World(catalog, vectors_of_this_run()))
    rows: list[list[str]] = body["rows"]  # type: ignore[assignment]
    assert len(rows) == len(BUDGETS) * (len(METHODS) + 1)
    assert {len(row) for row in rows} == {len(DISCOVERY_COLUMNS)}
    assert len(body["choices"]) == 2  # type: ignore[arg-type]
