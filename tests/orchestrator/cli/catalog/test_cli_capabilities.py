"""``callsheet capabilities`` and ``callsheet discover``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs import load
from callsheet.orchestrator.cli.main import main
from scripted_model import ScriptedModel, calls

TOOLS = [
    {"name": "convert_length", "description": "Converts a length from one unit to another.", "inputSchema": {}},
    {"name": "send_email", "description": "Sends an e-mail.", "inputSchema": {}},
]
OURS = {
    "id": "rowing",
    "name": "rowing",
    "broader": "operate",
    "definition": "Row a boat.",
    "examples": ["row the boat", "pull the oars"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CALLSHEET_CATALOG", raising=False)
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "a.json").write_text(json.dumps({"name": "a", "tools": TOOLS}))
    return tmp_path


def called(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def answered(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_one_json_object_with_capabilities_tools_and_coverage(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("capabilities", "--catalog", str(folder / "manifests"), "--json") == 0
    found = answered(capsys)
    assert found["coverage"] == 1.0
    first = {tool["id"]: tool["capabilities"][0] for tool in found["tools"]}
    assert {tool: entry["id"] for tool, entry in first.items()} == {
        "a/convert_length": "unit-conversion",
        "a/send_email": "messaging",
    }
    assert all(0.5 < entry["confidence"] <= 1 and entry["by"] == "text" for entry in first.values())
    assert next(c for c in found["capabilities"] if c["id"] == "act")["tools"] == ["a/send_email"]


def test_a_table_for_people(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("capabilities", "--catalog", str(folder / "manifests")) == 0
    said = capsys.readouterr().out
    assert "unit-conversion" in said
    assert "2 of 2 tools have a capability (100.0%)" in said


def test_by_a_model_with_capabilities_of_ones_own_and_into_a_file(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "ours.json").write_text(json.dumps({"capabilities": [OURS]}))
    model = ScriptedModel(replies=[calls("Answer", tools=[{"number": 1, "capabilities": ["rowing", "flying"]}])])
    monkeypatch.setattr("callsheet.agents.chat_model", lambda name: model)
    words = ("--taxonomy", str(folder / "ours.json"), "--model", "any:model", "-o", str(folder / "out.json"))
    assert called("capabilities", "--catalog", str(folder / "manifests"), *words, "--json") == 0
    found = answered(capsys)
    assert found["tools"][0] == {
        "id": "a/convert_length",
        "capabilities": [{"id": "rowing", "confidence": 1.0, "by": "model"}],
        "unknown": ["flying"],
    }
    assert found["path"] == str(folder / "out.json")
    kept = load(folder / "out.json").catalog
    assert kept.tool("a/convert_length").capabilities == ("rowing",)
    assert kept.tool("a/send_email").capabilities == ("messaging",)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        ({"capabilities": [{**OURS, "broader": "operat"}]}, "did you mean 'operate'"),
        ({"capabilities": [OURS, OURS]}, "two capabilities have the id 'rowing'"),
    ],
)
@pytest.mark.parametrize("command", [("capabilities",), ("discover", "row the boat")])
def test_a_bad_taxonomy_is_one_clear_line(
    folder: Path, capsys: pytest.CaptureFixture[str], content: object, said: str, command: tuple[str, ...]
) -> None:
    if content is not None:
        (folder / "ours.json").write_text(json.dumps(content))
    assert called(*command, "--catalog", str(folder / "manifests"), "--taxonomy", str(folder / "ours.json")) == 2
    streams = capsys.readouterr()
    assert streams.out == ""
    assert said in streams.err
    assert streams.err.count("\n") == 1


def test_a_file_that_cannot_be_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(folder / "none" / "out.json")
    assert called("capabilities", "--catalog", str(folder / "manifests"), "-o", out) == 2
    assert "cannot be written" in capsys.readouterr().err


def test_a_discovery_as_json_and_for_people(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("discover", "convert 3 miles to km", "--budget", "1", "--catalog", str(folder / "manifests"))
    assert called(*words, "--json") == 0
    found = answered(capsys)
    assert [tool["id"] for tool in found["candidates"]] == ["a/convert_length"]
    assert found["capabilities"][0]["id"] == "unit-conversion"
    assert found["actions"][0] == "transform"
    assert found["sources"][0]["id"] == "a"
    assert called(*words) == 0
    said = capsys.readouterr().out
    assert "likely capabilities" in said
    assert "a/convert_length" in said


def test_a_discovery_that_finds_nothing_and_one_that_asks_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("discover", "zzz qqq", "--catalog", str(folder / "manifests"), "--json") == 1
    assert answered(capsys)["verdict"] == "nothing_fits"
    assert called("discover", " ", "--catalog", str(folder / "manifests")) == 2
    assert "the query is empty" in capsys.readouterr().err
