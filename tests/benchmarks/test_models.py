"""The table of arms, from a scripted model over a set of the same form."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks import models
from callsheet.agents import Call
from callsheet.orchestrator.apps.model_evaluation import Attempt
from callsheet.retrievers import LabelledQuery
from choosing_model import ChoosingModel

CATALOG = Path(__file__).parents[2] / "examples" / "eval" / "catalog"
QUERIES = [
    {"id": "rain", "query": "Will it rain in Oslo tomorrow?", "tools": ["weather/forecast"]},
    {"id": "air", "query": "How clean is the air in Delhi?", "tools": ["weather/air_quality"]},
]
CHOICES: dict[str, tuple[str, dict[str, Any]]] = {
    "rain": ("forecast", {"place": "Oslo", "days": "1"}),
    "air": ("forecast", {"place": "Delhi", "days": "1"}),
}


def test_a_row_an_arm_and_nothing_is_asked_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / models.SET
    shutil.copytree(CATALOG, folder / "catalog")
    (folder / "queries.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in QUERIES), encoding="utf-8")
    model = ChoosingModel(choices=CHOICES)
    monkeypatch.setattr(models, "chat_model", lambda name, **_: model)
    monkeypatch.setattr(models, "ATTEMPTS", tmp_path / "attempts")
    body: Any = models.measure(tmp_path, "scripted:model")
    assert [row[1:3] for row in body["rows"]] == [[arm, "2"] for arm in models.ARMS[models.SET]]
    assert {row[3][:4] for row in body["rows"]} == {"0.50"}
    assert {row[-1] for row in body["rows"]} == {"1 not chosen"}
    monkeypatch.setattr(models, "chat_model", lambda name, **_: ChoosingModel(choices={}))
    assert models.measure(tmp_path, "scripted:model")["rows"] == body["rows"]


def files_of_the_demo(folder: Path) -> str:
    """A catalog with the demo's toolkit, without its servers."""
    servers = json.loads(Path(models.DEMO_CATALOG[0]).read_text(encoding="utf-8"))["mcpServers"]
    (folder / "files.json").write_text(json.dumps({"mcpServers": {"files": servers["files"]}}), encoding="utf-8")
    return str(folder / "files.json")


def test_the_tasks_of_the_demo_have_every_mode_and_the_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check = {"kind": "file_regex", "path": "{FLEET}/sandbox/a.txt", "regex": "^tea$"}
    task = {"id": "1.1", "task": "Write 'tea' to a.txt", "check": check}
    (tmp_path / "tasks.json").write_text(json.dumps({"tasks": [task]}), encoding="utf-8")
    model = ChoosingModel(choices={"tea": ("write_file", {"file_path": "a.txt", "text": "tea"})})
    monkeypatch.setattr(models, "chat_model", lambda name, **_: model)
    monkeypatch.setattr(models, "ATTEMPTS", tmp_path / "attempts")
    monkeypatch.setattr(models, "DEMO_TASKS", tmp_path / "tasks.json")
    monkeypatch.setattr(models, "DEMO_CATALOG", [files_of_the_demo(tmp_path), models.DEMO_CATALOG[1]])
    monkeypatch.setenv("CALLSHEET_WORKSPACE", "")
    body: Any = models.measure_demo("scripted:model")
    assert [(row[1], row[3][:4], float(row[5]) > 0, row[-1]) for row in body["rows"]] == [
        ("none", "1.00", True, ""), ("auto", "1.00", True, ""),
        ("rules", "1.00", False, ""),  # an evaluation allows all tools by name
    ]  # fmt: skip


def graded_as(**fields: Any) -> str:
    attempt = Attempt(**{"offered": ("a/x",), "unmet": ("a check",), **fields})
    return models.graded_task(LabelledQuery("1", "q", ()), attempt).cause


def test_causes_of_tasks() -> None:
    assert graded_as() == "end state"
    assert graded_as(offered=()) == "plan"
    assert graded_as(stopped="the limit of 8 model calls") == "gave up"
    assert graded_as(calls=(Call(agent="a", tool="a/x", error="broken"),)) == "tool error"
    assert graded_as(failure="overloaded") == "model error"
    assert graded_as(unmet=()) == ""
