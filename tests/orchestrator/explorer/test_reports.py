"""Evaluations: what `callsheet eval --json` prints is shown, anything else is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs import Catalog, SettingsError
from callsheet.orchestrator.server import Site, create_explorer
from callsheet.orchestrator.server.explorer.evaluations import read_reports
from callsheet.retrievers import AgentGraphRetriever, evaluate, read_queries
from explored import FixedEmbeddings, explorer, served

Asked = Callable[..., Any]


@pytest.fixture
def report(catalog: Catalog, tmp_path: Path) -> Path:
    lines = [
        {"query": "weather forecast for a place", "tools": ["weather/forecast"]},
        {"query": "pounds in kilograms", "tools": ["travel/plan_trip"], "agents": ["travel"]},
    ]
    queries = tmp_path / "queries.jsonl"
    queries.write_text("\n".join(map(json.dumps, lines)))
    retriever = AgentGraphRetriever.from_catalog(catalog, embeddings=FixedEmbeddings(), index=":memory:", k=1)
    found = evaluate(retriever, read_queries(queries, catalog), agents=1, tools=3)
    (tmp_path / "report.json").write_text(json.dumps(found.to_dict()))
    return tmp_path / "report.json"


def test_a_report_becomes_rows_with_intervals(catalog: Catalog, report: Path, asked: Asked) -> None:
    (shown,) = asked(explorer(catalog, reports=read_reports([report])), "evaluations")
    assert (shown["name"], shown["n"], shown["cuts"]) == ("report.json", 2, [1, 3])
    rows = {(row["of"], row["metric"]): row for row in shown["rows"]}
    assert rows["agent", "recall"]["values"] == [0.5, None]
    low, high = rows["agent", "recall"]["interval"]
    assert low <= 0.5 <= high
    assert {("tool", "recall"), ("tool", "mAP"), ("tool", "nDCG"), ("tool", "complete")} <= set(rows)
    assert {query["query"] for query in shown["missed"]} >= {"pounds in kilograms"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "cannot be read"),
        ("[]", "must be an object"),
        ('{"n": 3}', "agent: Field required"),
        ('{"n": "many", "agent": {}}', "n: "),
        ('{"n": 1, "agent": {"recall@5": NaN}}', "agent.recall@5"),
        ("[" * 100_000, "cannot be read"),
    ],
)
def test_anything_else_is_refused_by_name(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "odd.json").write_text(text)
    with pytest.raises(SettingsError, match=r"odd\.json") as raised:
        read_reports([tmp_path / "odd.json"])
    assert says in str(raised.value)


def test_a_wrong_report_takes_nothing_else_down(catalog: Catalog, asked: Asked) -> None:
    found = served(catalog)
    app = create_explorer(Site(lambda: found), reports=lambda: read_reports(["none.json"]), hosts=("testserver",))
    assert asked(app, "overview")["tools"] == 6
    assert "none.json cannot be read" in asked(app, "evaluations", status=500)["error"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"none\.json cannot be read"):
        read_reports([tmp_path / "none.json"])
