"""The talk with a rival's process, with a rival of our own in the place of theirs, and the table of all of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import report, rivals
from benchmarks.rankings import OURS
from benchmarks.search import World, vectors_of_this_run
from benchmarks.sets.cases import Benchmark, Case, wanted
from callsheet.graphs import Catalog

ECHO = """
import json, sys
request = json.loads(sys.stdin.readline())
print(json.dumps({"embed": request["queries"]}), flush=True)
columns = json.loads(sys.stdin.readline())["columns"]
first = request["agents"][0]
ranking = [tool["id"] for tool in first["tools"]] + ["no/such"]
rankings = [request["answers"].get(query, ranking) for query in request["queries"]]
print(json.dumps({"rankings": rankings, "seconds": columns / 1000, "version": "1"}), flush=True)
"""


@pytest.fixture
def world(catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Whatever rival is asked, it gives the tools of the first agent, or what was answered before."""
    worker = tmp_path / "worker.py"
    worker.write_text(ECHO, encoding="utf-8")
    monkeypatch.setattr(rivals, "WORKER", worker)
    return World(catalog, vectors_of_this_run())


def test_a_rival_gets_the_catalog_and_vectors_and_gives_rankings(world: World) -> None:
    cases = [Case("1", "rain", "g"), Case("2", "snow", "g")]
    found = rivals.run_rival(Path(sys.executable), "gtc", world, cases, "agent", 5)
    assert found == ({"rain": ["weather"], "snow": ["weather"]}, "1", 192.0)


def test_a_rival_that_asks_a_model_gets_its_recorded_answers(world: World) -> None:
    asked = [Case("1", "rain", "g")]
    answers = {"rain": ["units/convert_length"]}
    found = rivals.run_rival(Path(sys.executable), rivals.ANSWERED, world, asked, "tool", 5, answers)
    assert found.rankings == answers


def test_slow_rivals_are_asked_a_part_and_all_else_every_query(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals, "MOST", 1)
    gold = wanted([[world.catalog.agents[0].tools[0].id]])
    cases = tuple(Case(query, query, query, tools=gold) for query in ("convert miles", "convert feet"))
    bench = Benchmark("metatool", "Two", world.catalog, cases, {"tool": (5, 10)})
    body = rivals.beside_rivals(bench, world, Path(sys.executable), lambda line: None)
    level = body["levels"]["tool"]  # type: ignore[index]
    asked = {title: method.get("n", level["n"]) for title, method in level["methods"].items()}
    slow = {rivals.RIVALS[rival] for rival in rivals.SLOW} & asked.keys()
    assert asked == {OURS: 2} | dict.fromkeys(body["rivals"], 2) | dict.fromkeys(slow, 1)  # type: ignore[call-overload]
    assert (rivals.RIVALS[rivals.DECLARED] in asked) is bench.dependencies
    assert rivals.RIVALS[rivals.ANSWERED] not in asked

    table = report.beside_rivals({"metatool": body, report.RIVALS + "metatool": body})
    rows = {row[0]: row[1:] for row in ([c.strip() for c in line.split("|")[1:-1]] for line in table.splitlines()[2:])}
    assert rows["queries"] == ["", "2"]
    assert rows["callbus, dense"] == ["1", "1.000"]
    assert rows["graph-tool-call, with embedding"] == ["1", "1.000 (n = 1)"]


def test_a_rival_that_fails_is_named_and_left_out(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = tmp_path / "worker.py"
    worker.write_text("""print('{"error": "ImportError: none"}') if input() else None""", encoding="utf-8")
    monkeypatch.setattr(rivals, "WORKER", worker)
    case, said = Case("1", "convert miles", "g", tools=wanted([["units/convert_length"]])), list[str]()
    bench = Benchmark("metatool", "One", catalog, (case,), {"tool": (5, 10)})
    body = rivals.beside_rivals(bench, World(catalog, vectors_of_this_run()), Path(sys.executable), said.append)
    assert body["rivals"] == {}
    assert said[0] == "graph-tool-call, keywords and graph: left out, ImportError: none"
