"""A guard against losing what was measured, on LiveMCPBench where it lies beside the checkout; no benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.methods.vectors import vectors_of_this_run
from callsheet.retrievers import AgentGraphRetriever

Gold = list[list[str]]


@pytest.fixture
def bench(shared: Path) -> Path:
    place = shared / "benchmarks" / "livemcpbench"
    if not (place / "aligned.json").is_file():
        pytest.skip("LiveMCPBench is not among the public data beside this checkout")
    return place


def steps_of(bench: Path) -> list[tuple[str, Gold]]:
    """The aligned steps that need an agent, each agent as the list of those that would do."""
    aligned = json.loads((bench / "aligned.json").read_text(encoding="utf-8"))
    steps = [step for query in aligned["queries"] for step in query["steps"]]
    return [(step["text"], step["gold_agent_alts"]) for step in steps if step["gold_agent_alts"]]


def recall(found: list[str], gold: Gold) -> float:
    return sum(any(agent in found for agent in alternatives) for alternatives in gold) / len(gold)


def test_recall_counts_any_of_the_alternatives() -> None:
    assert recall(["a", "b"], [["x", "a"], ["y"]]) == 0.5


@pytest.mark.slow
def test_agents_of_livemcpbenchs_steps_are_still_found(bench: Path) -> None:
    vectors = vectors_of_this_run()  # other measurements have embedded this catalog
    steps = steps_of(bench)
    assert len(steps) == 211
    retriever = AgentGraphRetriever.from_catalog(bench / "tools.json", k=5, embeddings=vectors, index=":memory:")
    default = [recall([a.id for a in retriever.select(text).agents], gold) for text, gold in steps[::2]]
    assert sum(default) / len(default) > 0.87

    published = [
        recall([a.id for a in retriever.select(text, ranking="agent_as_a_graph", lexical_weight=0.0).agents], gold)
        for text, gold in steps[::4]
    ]
    assert sum(published) / len(published) > 0.6
