"""Tasks over a fleet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import report
from benchmarks.fleet import measure, read_tasks
from callsheet.graphs import CatalogError

ASKED = "Tell me the time in Oslo, then write that into a note"
TASKS: list[dict[str, Any]] = [
    {
        "id": "note",
        "task": ASKED,
        "gold": [
            {"server": "clock", "tool": "tell_time", "args": {"city": "Oslo"}},
            {"server": "notes", "tool": "write_note", "args": {"text": "at 18:00"}},
        ],
        "check": {"kind": "file_regex", "path": "{FLEET}/sandbox/notes.log", "regex": "write_note.*at 09:30"},
        "note": "passed over",
    },
    {
        "id": "gone",
        "task": "Delete the note",
        "gold": [{"server": "notes", "tool": "delete_note", "args": {"text": "x"}}],
        "check": {"kind": "file_regex", "path": "{FLEET}/sandbox/notes.log", "regex": "delete_note"},
    },
]


def tool(name: str, description: str, parameter: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    return {"name": name, "description": description, "inputSchema": schema}


LISTINGS = {
    "clock": [tool("tell_time", "Tells the time in a city.", "city")],
    "notes": [tool("write_note", "Writes a note.", "text"), tool("delete_note", "Deletes a note.", "text")],
}


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "fleet" / "tasks.json"
    for folder in (path.parent, tmp_path / "data"):
        folder.mkdir(exist_ok=True)
    path.write_text(json.dumps({"tasks": TASKS}))
    return path


def test_a_row_a_call_and_one_for_all(tasks: Path) -> None:
    for name, tools in LISTINGS.items():
        file = tasks.parent / "manifests" / f"{name}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"name": name, "tools": tools}))
    assert measure(tasks.parents[1] / "data")["rows"] == [
        ["note, 1", "clock/tell_time", "1", "1", "1", "1"],
        ["note, 2", "notes/write_note", "2", "1", "2", "1"],
        ["gone, 1", "notes/delete_note", "1", "1", "1", "1"],
        ["all", "3 calls, 2 tasks", *["3 calls, 2 tasks"] * 4],
    ]


def test_the_documented_figures_are_those_that_were_measured() -> None:
    kept = report.read_all()["fleet-tasks"]
    *calls, total = kept["rows"]
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "servers.md").read_text(encoding="utf-8")
    tasks = total[1].split()[2]
    for label, cells in (("right agents among 5", total[2:4]), ("right tools among 10", total[4:6])):
        said = " | ".join(cell.replace(" calls", f" of {len(calls)} calls").replace(" tasks", f" of {tasks} tasks")
                          for cell in cells)  # fmt: skip
        assert f"| {label} | {said} |" in page


def test_a_task_is_read_with_its_place_and_all_its_checks_must_hold(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Add it\nclean")
    checks = [
        {"kind": "file_regex", "path": "{FLEET}/a.md", "regex": r"^Add[\s\S]*clean"},
        {"kind": "answer", "regex": "tea"},
    ]
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps({"tasks": [{"id": "t", "task": "Do", "check": checks, "note": "n"}]}))
    (found,) = read_tasks(path, tmp_path)
    assert [len(found.unmet(text)) for text in ("tea", "")] == [0, 1]
    (tmp_path / "a.md").unlink()
    assert len(found.unmet("")) == 2


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_what_is_no_list_of_tasks_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(text)
    with pytest.raises(CatalogError, match="holds no tasks"):
        read_tasks(path, tmp_path)
