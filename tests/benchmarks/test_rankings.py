"""From a benchmark to a results file and a table, over the small catalog of all tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import report
from benchmarks.latency import COLUMNS, cost, generated_catalog, generated_queries
from benchmarks.rankings import (
    HEADROOM,
    ORACLE,
    OURS,
    OURS_PUBLISHED,
    evaluate,
    ours_at,
    outcomes,
    summary,
)
from benchmarks.search import SharedVectors, World, vectors_of_this_run
from benchmarks.sets.cases import Benchmark, Case, wanted
from callsheet.graphs import Agent, Catalog, Tool
from callsheet.retrievers import AgentGraphRetriever
from callsheet.retrievers.index.node_texts import plain_text


@pytest.fixture
def bench(catalog: Catalog) -> Benchmark:
    cases = (
        Case("1", "convert miles to kilometres", "u", wanted([["units"]]), wanted([["units/convert_length"]])),
        Case("2", "book a room in Rome", "t", wanted([["travel"]]), wanted([["travel/book_hotel"]])),
    )
    return Benchmark("metatool", "Two", catalog, cases, {"tool": (5, 10)})


def test_a_row_has_all_metrics_at_all_cutoffs(bench: Benchmark) -> None:
    values = evaluate(
        [["units/convert_length"], ["travel/plan_trip", "travel/book_hotel"]], bench.queries, "tool", (1, 2)
    )
    assert values["recall@1"] == [1.0, 0.0]
    assert values["map@2"] == [1.0, 0.5]
    assert set(values) == {f"{m}@{k}" for m in ("recall", "map", "ndcg", "complete") for k in (1, 2)}


def test_ours_is_what_a_selection_hands_over_and_a_longer_list_begins_with_it() -> None:
    subjects, verbs = (
        ("videos", "money", "lengths", "zones", "prose", "colours", "genomes", "music"),
        ("trim", "merge", "list", "sell"),
    )
    agents = (Agent(id=a, tools=tuple(Tool(agent=a, name=f"{verb}_{a}") for verb in verbs)) for a in subjects)
    world = World(Catalog(agents=tuple(agents)), vectors_of_this_run())
    retriever = AgentGraphRetriever.from_catalog(world.catalog, index=":memory:", embeddings=world.vectors)
    chosen = retriever.select("convert")
    short, longer = (ours_at(world, "tool", depth)("convert") for depth in (1, 30))
    assert short == [tool.id for tool in chosen.tools] == longer[: len(short)]
    assert len(longer) == 30


def test_the_agents_of_ours_are_as_many_as_are_measured(bench: Benchmark) -> None:
    world = World(bench.catalog, vectors_of_this_run())
    few, more = (ours_at(world, "agent", depth)("convert") for depth in (1, 2))
    assert few == more[:1]
    assert len(more) == 2


def test_baselines_embed_with_the_published_model(bench: Benchmark) -> None:
    world = World(bench.catalog, SharedVectors(), SharedVectors(tuned=False))
    found = dict(outcomes(bench, "tool", world))
    assert list(found)[:2] == [OURS, OURS_PUBLISHED]
    tool = bench.catalog.tools["units/convert_length"]
    query = "convert miles to kilometres"
    text, asked = world.published.encode([plain_text(tool), query])
    assert world.tools.cosines(query)[world.tools.ids.index(tool.id)] == pytest.approx(float(text @ asked), abs=1e-4)


def test_queries_become_a_results_file_and_a_table(bench: Benchmark, tmp_path: Path) -> None:
    found = dict(outcomes(bench, "tool", World(bench.catalog, vectors_of_this_run())))
    assert next(iter(found)) == OURS
    body = {"about": bench.about, "levels": {"tool": summary(bench, "tool", found)}, **report.circumstances()}
    report.write("metatool", body, tmp_path)
    kept = report.read_all(tmp_path)
    ours = kept["metatool"]["levels"]["tool"]["methods"][OURS]
    assert ours["metrics"]["recall@5"]["mean"] == 1.0
    assert ours["ours_minus_this"]["recall@5"] == {"mean": 0.0, "low": 0.0, "high": 0.0}
    page, (begin, end) = tmp_path / "page.md", report.TABLES
    page.write_text(f"# By hand\n\n{begin}\nold\n{end}\n\nAlso by hand\n", encoding="utf-8")
    report.put_between(page, report.TABLES, report.page(kept))
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# By hand")
    assert text.endswith("Also by hand\n")
    assert "| Callsheet, default " in text
    assert "old" not in text


@pytest.mark.parametrize(
    ("path", "markers", "made"),
    [(report.PAGE, report.TABLES, report.page), (report.README, report.FIGURES, report.headline)],
)
def test_the_pages_say_what_the_results_files_say(
    path: Path, markers: tuple[str, str], made: Callable[[Mapping[str, Any]], str]
) -> None:
    said = path.read_text(encoding="utf-8").partition(markers[0])[2].partition(markers[1])[0]
    assert said.strip() == made(report.read_all()).strip(), "run python -m benchmarks --tables"


@pytest.mark.parametrize(("name", "link"), report.ELSEWHERE.items())
def test_a_table_on_another_page_is_there_or_only_the_file_has_it(name: str, link: str) -> None:
    assert (f"### {name}\n" in report.PAGE.read_text(encoding="utf-8")) == bool(link)
    if not link:
        assert name in report.read_all()
        return
    page, _, anchor = link.partition("#")
    headings = re.findall(r"^#+ (.+)$", (report.PAGE.parent / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert anchor in [heading.lower().replace(" ", "-") for heading in headings]
    assert name in report.read_all()


def test_the_cost_of_a_small_catalog_is_measured() -> None:
    found = dict(zip(COLUMNS, cost("small", generated_catalog(20), generated_queries(4), drawn=True), strict=True))
    assert (found["catalog"], found["tools"], found["index / embedding"]) == ("small", "20", "")
    for ratio in ("select / embedding", "in processor time"):
        mean, low, high = map(float, re.findall(r"[\d.]+", found[ratio]))
        assert low <= mean <= high
    assert float(found["again, ms"]) < float(found["select, ms"])
    assert float(found["32 at once"]) > 0


def test_the_oracle_is_measured_beside_ours_only_where_it_is_named_and_labelled(catalog: Catalog) -> None:
    case = Case("1", "convert miles to kilometres", "t", tools=wanted([["travel/book_hotel"]]))
    bench = Benchmark("toolsandbox", "One", catalog, (case,), {"tool": (1, 10)})
    world = World(catalog, vectors_of_this_run())
    found = dict(outcomes(bench, "tool", world))
    assert list(found)[:2] == [OURS, ORACLE]
    assert found[ORACLE].tuning == HEADROOM
    assert (found[OURS].values["recall@1"], found[ORACLE].values["recall@1"]) == ([0.0], [1.0])
    assert ORACLE not in dict(outcomes(replace(bench, name="metatool"), "tool", world))
