"""The table of arms, from a scripted model over a set of the same form."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks import models
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


def test_the_table_has_a_row_for_each_arm_and_no_attempt_is_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / models.SET
    shutil.copytree(CATALOG, folder / "catalog")
    (folder / "queries.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in QUERIES), encoding="utf-8")
    model = ChoosingModel(choices=CHOICES)
    monkeypatch.setattr(models, "chat_model", lambda name, **_: model)
    monkeypatch.setattr(models, "ATTEMPTS", tmp_path / "attempts")
    body: Any = models.measure(tmp_path, "scripted:model")
    assert [row[1:3] for row in body["rows"]] == [[arm, "2"] for arm in models.ARMS]
    assert {row[3][:4] for row in body["rows"]} == {"0.50"}
    assert {row[-1] for row in body["rows"]} == {"1 not chosen"}
    monkeypatch.setattr(models, "chat_model", lambda name, **_: ChoosingModel(choices={}))
    assert models.measure(tmp_path, "scripted:model")["rows"] == body["rows"]
