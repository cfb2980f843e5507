"""The table of arms, from a scripted model over a set of the same form."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.measurements import model_arms
from choosing_model import ChoosingModel

CATALOG = Path(__file__).parents[3] / "examples" / "eval" / "catalog"
QUERIES = [
    {"id": "rain", "query": "Will it rain in Oslo tomorrow?", "tools": ["weather/forecast"]},
    {"id": "air", "query": "How clean is the air in Delhi?", "tools": ["weather/air_quality"]},
]
CHOICES: dict[str, tuple[str, dict[str, Any]]] = {
    "rain": ("forecast", {"place": "Oslo", "days": "1"}),
    "air": ("forecast", {"place": "Delhi", "days": "1"}),
}


def test_a_row_an_arm_and_nothing_is_asked_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / model_arms.SET
    shutil.copytree(CATALOG, folder / "catalog")
    (folder / "queries.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in QUERIES), encoding="utf-8")
    model = ChoosingModel(choices=CHOICES)
    monkeypatch.setattr(model_arms, "chat_model", lambda name, **_: model)
    monkeypatch.setattr(model_arms, "ATTEMPTS", tmp_path / "attempts.jsonl")
    body: Any = model_arms.measure(tmp_path, "scripted:model")
    assert [row[1:3] for row in body["rows"]] == [[arm, "2"] for arm in model_arms.ARMS[model_arms.SET]]
    assert {row[3][:4] for row in body["rows"]} == {"0.50"}
    assert {row[-1] for row in body["rows"]} == {"1 not chosen"}
    monkeypatch.setattr(model_arms, "chat_model", lambda name, **_: ChoosingModel(choices={}))
    assert model_arms.measure(tmp_path, "scripted:model")["rows"] == body["rows"]


def test_the_tasks_of_the_demo_have_every_mode_and_the_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = {
        "id": "1.1",
        "request": "Write 'tea' to a.txt",
        "checks": [{"kind": "file", "path": "a.txt", "equals": "tea"}],
    }
    (tmp_path / "tasks.json").write_text(json.dumps({"tasks": [task]}), encoding="utf-8")
    model = ChoosingModel(choices={"tea": ("write_file", {"file_path": "a.txt", "text": "tea"})})
    monkeypatch.setattr(model_arms, "chat_model", lambda name, **_: model)
    monkeypatch.setattr(model_arms, "ATTEMPTS", tmp_path / "attempts.jsonl")
    monkeypatch.setattr(model_arms, "DEMO_TASKS", tmp_path / "tasks.json")
    monkeypatch.setattr(model_arms, "DEMO_CATALOG", model_arms.DEMO_CATALOG[1:])  # without its servers
    monkeypatch.setenv("CALLSHEET_WORKSPACE", "")
    (found,) = model_arms.on_demo("scripted:model").values()
    assert [(arm.arm, arm.success, arm.usage.calls > 0) for arm in found.arms] == [
        ("none", 1.0, True), ("once", 1.0, True), ("adaptive", 1.0, True), ("rules", 0.0, False)
    ]  # fmt: skip
