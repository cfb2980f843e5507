"""Assigned capabilities beside labelled ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.measurements.capabilities import LABELS, Labelled, figures, labelled
from callsheet.graphs import default_taxonomy
from callsheet.retrievers.capabilities import Assigned, Assignments
from known import taxonomy_of

PUBLISHED = Path(__file__).parents[3] / "benchmarks" / "results" / "graph" / "capabilities.json"


def tool(gold: str, found: str, agent: str = "a", half: str = "held out") -> Labelled:
    return Labelled(agent, half, frozenset(gold.split()), frozenset(found.split()))


def test_micro_averages_are_sums_over_all_tools() -> None:
    tools = [tool("fly", "fly swim"), tool("fly swim", "swim", "b"), tool("run", "", "c")]
    found = figures(tools, taxonomy_of("fly", "swim", "run"), None)
    assert found["precision"].mean == 2 / 3
    assert found["recall"].mean == 2 / 4
    assert found["f1"].mean == pytest.approx(2 * 2 / (4 + 3))


def test_at_a_wider_level_what_is_under_one_capability_counts_as_one() -> None:
    tools = [tool("web-search", "content-search"), tool("delete listing", "delete file-reading")]
    assert figures(tools, default_taxonomy(), None)["f1"].mean == 1 / 3
    assert figures(tools, default_taxonomy(), 1)["f1"].mean == 1.0


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
