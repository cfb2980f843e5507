"""Tasks over a fleet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import report
from benchmarks.fleet import measure, read_tasks
from callsheet.graphs import CatalogError

TASKS: list[dict[str, Any]] = [
    {
        "id": "note",
        "task": "Tell me the time in Oslo, then write that into a note",
        "gold": [{"server": "clock", "tool": "tell_time"}, {"server": "notes", "tool": "write_note"}],
    },
    {"id": "gone", "task": "Delete the note", "gold": [{"server": "notes", "tool": "delete_note"}]},
]


def tool(name: str, description: str, parameter: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {parameter: {"type": "string"}}, "required": [parameter]}
    return {"name": name, "description": description, "inputSchema": schema}


LISTINGS = {
    "clock": [tool("tell_time", "Tells the time in a city.", "city")],
    "notes": [tool("write_note", "Writes a note.", "text"), tool("delete_note", "Deletes a note.", "text")],
}


def test_the_table_has_a_row_for_each_call_and_one_for_all(tmp_path: Path) -> None:
    fleet = tmp_path / "fleet"
    for folder in (fleet / "manifests", tmp_path / "data"):
        folder.mkdir(parents=True)
    check = {"kind": "file_regex", "path": "{FLEET}/sandbox/notes.log", "regex": "note"}
    (fleet / "tasks.json").write_text(json.dumps({"tasks": [{**task, "check": check} for task in TASKS]}))
    for name, tools in LISTINGS.items():
        (fleet / "manifests" / f"{name}.json").write_text(json.dumps({"name": name, "tools": tools}))
    assert measure(tmp_path / "data")["rows"] == [
        ["note, 1", "clock/tell_time", "1", "1", "1", "1"],
        ["note, 2", "notes/write_note", "2", "1", "2", "1"],
        ["gone, 1", "notes/delete_note", "1", "1", "1", "1"],
        ["all", "3 calls, 2 tasks", *["3 calls, 2 tasks"] * 4],
    ]


def test_the_documented_figures_are_those_that_were_measured() -> None:
    kept = report.read_all()["fleet-tasks"]
    *calls, total = kept["rows"]
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "servers.md").read_text(encoding="utf-8")
    tasks = total[1].split()[2]
    for label, cells in (("right agents among 5", total[2:4]), ("right tools among 10", total[4:6])):
        said = " | ".join(cell.replace(" calls", f" of {len(calls)} calls").replace(" tasks", f" of {tasks} tasks")
                          for cell in cells)  # fmt: skip
        assert f"| {label} | {said} |" in page


def test_a_task_is_read_with_the_folder_of_its_servers(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps({"tasks": [{"id": "t", "task": "Read {FLEET}/a.md", "note": "n"}]}))
    (task,) = read_tasks(path, tmp_path)
    assert task.task == f"Read {tmp_path}/a.md"


@pytest.mark.parametrize("text", ["{", "[]", "{}"])
def test_a_file_without_a_list_of_tasks_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(text)
    with pytest.raises(CatalogError, match="holds no tasks"):
        read_tasks(path, tmp_path)
