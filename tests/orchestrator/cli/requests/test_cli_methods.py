"""``--methods`` and ``--method``: the published methods on the example in the repository."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from callsheet import AgentGraphRetriever
from callsheet.retrievers import METHODS

EXAMPLE = Path(__file__).parents[4] / "examples" / "eval"
QUERIES = str(EXAMPLE / "queries.jsonl")


@pytest.fixture(autouse=True)
def example(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_CATALOG", str(EXAMPLE / "catalog"))


ALL_METHODS = ",".join(METHODS)


def test_methods_are_measured_side_by_side(cli: Any) -> None:
    status, out, err = cli("eval", QUERIES, "--methods", ALL_METHODS, "--json")
    report = json.loads(out)
    by_name = {method.pop("name"): method for method in report["methods"]}
    assert (status, err, [*by_name]) == (0, "", [*METHODS])
    assert by_name["callsheet"].items() <= report.items()
    for method in by_name.values():
        assert set(method["agent"]) == set(report["agent"])
        assert set(method["tool"]) == set(report["tool"])
        assert method["intervals"].keys() == report["intervals"].keys()
    assert len({method["tool"]["map@10"] for method in by_name.values()}) > 3
    status, out, _ = cli("eval", QUERIES, "--methods", "dense,bm25")
    rows = [line for line in out.splitlines() if line.strip().startswith(("dense", "bm25"))]
    assert len(rows) == 2
    assert max(map(len, rows)) <= 100


@pytest.mark.parametrize("name", [name for name in METHODS if name not in ("callsheet", "agent-as-a-graph")])
def test_retrieve_shows_what_eval_measures(name: str, cli: Any) -> None:
    query = json.loads(Path(QUERIES).read_text(encoding="utf-8").splitlines()[0])["query"]
    status, out, _ = cli("retrieve", query, "--method", name, "-k", "10", "--json")
    found = json.loads(out)
    tools = sorted((tool for agent in found["agents"] for tool in agent["tools"]), key=lambda tool: -tool["use"])
    settings = replace(METHODS[name], agents=10)
    retriever = AgentGraphRetriever.from_catalog(str(EXAMPLE / "catalog"), settings=settings, index=":memory:", k=10)
    assert (status, found["verdict"]) == (0, "found")
    assert [tool["id"] for tool in tools] == [tool.id for tool in retriever.select(query).tools]


@pytest.mark.parametrize(("command", "option"), [("retrieve", "--method"), ("eval", "--methods")])
def test_the_methods_are_named_in_the_help_and_in_the_refusal(command: str, option: str, cli: Any) -> None:
    helped = " ".join(cli(command, "--help")[1].split())
    assert all(name in helped for name in METHODS if name != "callsheet")
    status, _, err = cli(command, QUERIES, option, "bm26")
    assert status == 2
    assert f"there is no method 'bm26'; there are {', '.join(METHODS)}" in " ".join(err.split())
