"""What comes when an agent says by which steps it wants to answer."""

from __future__ import annotations

import pytest

from benchmarks.measurements.to_do_lists import REACH, SET, STEPS, measure, shown
from benchmarks.methods.search import World
from benchmarks.methods.vectors import vectors_of_this_run
from benchmarks.sets.cases import Benchmark, Case, wanted
from callsheet.graphs import Catalog
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings

LENGTH = wanted([["units/convert_length"]])


@pytest.fixture
def question() -> Case:
    return Case("1", "plan a trip to Rome", "t", tools=(*LENGTH, *wanted([["travel/plan_trip"]])))


@pytest.fixture
def steps() -> tuple[Case, ...]:
    return (Case("1/1", "Convert miles to kilometres", "t", tools=LENGTH), Case("2/1", "Anything else", "other"))


def test_the_steps_bring_what_the_question_does_not_name(
    catalog: Catalog,
    minilm: MiniLMEmbeddings,
    question: Case,
    steps: tuple[Case, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(REACH, "tools", 1)
    retriever = AgentGraphRetriever.from_catalog(catalog, index=":memory:", embeddings=minilm)
    alone, _, listed, spoken = (found[0] for found in shown([question], steps, retriever).values())
    assert (alone.share, alone.tools) == (0.5, 1)
    assert (listed.share, listed.tools) == (spoken.share, spoken.tools) == (1.0, 2)


def test_a_row_for_each_way_of_asking(catalog: Catalog, question: Case, steps: tuple[Case, ...]) -> None:
    world = World(catalog, vectors_of_this_run())
    whole = Benchmark(SET, "One", catalog, (question,), ("tool",), ((5, 10),))
    single = Benchmark(STEPS, "Two", catalog, steps, ("tool",), ((5, 10),))
    body = measure([(whole, world), (single, world)])
    assert [row[1] for row in body["rows"]] == ["1"] * 4  # type: ignore[attr-defined]
    assert measure([(whole, world)]) == {}
