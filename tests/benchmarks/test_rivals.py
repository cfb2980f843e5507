"""The talk with a rival's process, with a rival of our own in the place of theirs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import rivals
from benchmarks.search import World, vectors_of_this_run
from benchmarks.sets.cases import Benchmark, Case, wanted
from callsheet.graphs import Catalog

ECHO = """
import json, sys
request = json.loads(sys.stdin.readline())
print(json.dumps({"embed": request["queries"]}), flush=True)
columns = json.loads(sys.stdin.readline())["columns"]
first = request["agents"][0]
ranking = [first["id"] + "/" + tool["name"] for tool in first["tools"]] + ["no/such"]
print(json.dumps({"rankings": [ranking], "seconds": columns / 1000, "version": "1"}), flush=True)
"""


def test_a_rival_gets_the_catalog_and_vectors_and_gives_rankings(
    catalog: Catalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, world = tmp_path / "worker.py", World(catalog, vectors_of_this_run())
    worker.write_text(ECHO, encoding="utf-8")
    monkeypatch.setattr(rivals, "WORKER", worker)
    found = rivals.run_rival(Path(sys.executable), "gtc", world, [Case("1", "rain", "g")], "agent", 5)
    assert found == ([["weather"]], 0.384, "1")


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
