"""Assigned capabilities beside labelled ones; what is shown under a budget, beside text alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.measurements.toolkg import (
    BUDGETS,
    LABELS,
    METHODS,
    Labelled,
    figures,
    measure_discovery,
)
from benchmarks.search import World, vectors_of_this_run
from benchmarks.sets.cases import Benchmark, Case, wanted
from callsheet.graphs import Catalog, shipped_taxonomy
from callsheet.graphs.capabilities.taxonomy import SHIPPED
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
    detailed = shipped_taxonomy("detailed")
    assert figures(tools, detailed, None)[0].mean == 1 / 3
    assert figures(tools, detailed, 1)[0].mean == 1.0


def test_the_labels_are_leaves_of_each_taxonomy_in_two_halves_without_a_shared_agent() -> None:
    sets = json.loads(LABELS.read_text(encoding="utf-8"))["sets"]
    entries = [(agent, entry) for agents in sets.values() for agent, entry in agents.items()]
    for name in SHIPPED:
        labels = [entry["tools"][name] for _, entry in entries]
        assert {one for of in labels for gold in of.values() for one in gold} <= set(shipped_taxonomy(name).leaves)
        assert sum(map(len, labels)) == 283
    halves = {
        half: {agent for agent, entry in entries if entry["half"] == half} for half in ("held out", "development")
    }
    assert not halves["held out"] & halves["development"]
    assert {entry["half"] for _, entry in entries} == set(halves)


def test_the_table_has_a_row_for_each_set_budget_and_method(catalog: Catalog, tmp_path: Path) -> None:
    cases = (
        Case("1", "convert miles to kilometres", "u", tools=wanted([["units/convert_length"]])),
        Case("2", "book a hotel room in Rome", "t", tools=wanted([["travel/book_hotel"]])),
    )
    bench = Benchmark("livemcpbench-steps", "Two", catalog, cases, {"tool": (5,)})
    body = measure_discovery([(bench, World(catalog, vectors_of_this_run()))], tmp_path)
    rows: list[list[str]] = body["rows"]  # type: ignore[assignment]
    assert len(rows) == len(BUDGETS) * (len(METHODS) + 1)
    assert {len(row) for row in rows} == {len(body["columns"])}  # type: ignore[arg-type]
