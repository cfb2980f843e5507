"""The reranker that knows the answers: headroom, and labelled so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from langchain_core.documents import Document

from benchmarks.measurements.run import OURS, outcomes
from benchmarks.methods.oracle import HEADROOM, ORACLE, Oracle
from benchmarks.methods.search import World
from benchmarks.methods.vectors import vectors_of_this_run
from benchmarks.sets.cases import Benchmark, Case, Level, wanted
from callsheet.graphs import Catalog
from callsheet.retrievers import Reranker

SHOWN = [Document(i, metadata={"id": i, "agent": i[0]}) for i in ("a/x", "b/y", "a/z", "c/v")]


@pytest.mark.parametrize(
    ("level", "asked", "expected"),
    [
        ("tool", [["c/v"], ["a/z"]], "a/z c/v a/x b/y"),
        ("tool", [["a/z", "b/y"]], "b/y a/x a/z c/v"),
        ("tool", [["d/none"]], "a/x b/y a/z c/v"),
        ("agent", [["c"], ["b"]], "b/y c/v a/x a/z"),
    ],
)
def test_what_is_wanted_comes_first_and_of_alternatives_one(
    level: Level, asked: list[list[str]], expected: str
) -> None:
    reranker = Oracle({"q": wanted(asked)}, level)
    assert isinstance(reranker, Reranker)
    assert [document.metadata["id"] for document in reranker.compress_documents(SHOWN, "q")] == expected.split()


def test_it_is_measured_beside_ours_only_where_it_is_named_and_labelled(catalog: Catalog) -> None:
    case = Case("1", "convert miles to kilometres", "t", tools=wanted([["travel/book_hotel"]]))
    bench = Benchmark("toolsandbox", "One", catalog, (case,), ("tool",), ((1, 10),))
    world = World(catalog, vectors_of_this_run())
    found = dict(outcomes(bench, "tool", world))
    assert list(found)[:2] == [OURS, ORACLE]
    assert found[ORACLE].tuning == HEADROOM
    assert (found[OURS].values["recall@1"], found[ORACLE].values["recall@1"]) == ([0.0], [1.0])
    assert ORACLE not in dict(outcomes(replace(bench, name="metatool"), "tool", world))
