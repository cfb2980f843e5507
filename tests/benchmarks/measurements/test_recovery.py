"""What comes when a worker says what it lacks."""

from __future__ import annotations

import pytest

from benchmarks.measurements.recovery import SCRIPTS, SET, in_other_words, measure, misses
from benchmarks.methods.search import World
from benchmarks.methods.vectors import vectors_of_this_run
from benchmarks.sets.cases import Benchmark, Case, wanted
from callsheet.graphs import Catalog
from callsheet.retrievers import AgentGraphRetriever, MiniLMEmbeddings


@pytest.fixture
def bench(catalog: Catalog) -> Benchmark:
    cases = (
        Case("1", "convert miles to kilometres", "u", tools=wanted([["units/convert_length"]])),
        Case("2", "plan a trip by train to Rome", "t", tools=wanted([["units/convert_mass"]])),
    )
    return Benchmark(SET, "Two", catalog, cases, ("tool",), ((5, 10),))


def test_only_what_was_not_bound_is_asked_for(bench: Benchmark, minilm: MiniLMEmbeddings) -> None:
    retriever = AgentGraphRetriever.from_catalog(bench.catalog, index=":memory:", embeddings=minilm)
    found = list(misses(bench, retriever, SCRIPTS["the words of the tool's name"]))
    assert [(one.group, one.came) for one in found] == [("t", 1)]
    assert found[0].added <= 5


def test_a_description_in_other_words(catalog: Catalog) -> None:
    assert in_other_words(catalog.tool("maps/find_place")) == "the coordinates of a by its name."


def test_a_row_a_script(bench: Benchmark) -> None:
    body = measure([(bench, World(bench.catalog, vectors_of_this_run()))])
    assert [row[0] for row in body["rows"]] == list(SCRIPTS)  # type: ignore[attr-defined]
