"""Tasks over a fleet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import report
from benchmarks.fleet import COLUMNS, Task, measure, read_tasks, total_row
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


def test_the_last_row_counts_the_calls_and_the_tasks_with_all_of_theirs() -> None:
    rows = [
        ("a, 1", "clock/tell_time", "1", "1", "2", "1"),
        ("a, 2", "notes/write_note", "2", "-", "(30)", "-"),
        ("b, 1", "notes/write_note", "1", "1", "-", "3"),
    ]
    placed = ["3 calls, 2 tasks", "2 calls, 1 tasks", "1 calls, 0 tasks", "2 calls, 1 tasks"]
    total = total_row(rows)
    assert total == ["all", "3 calls, 2 tasks", *placed]
    assert len(total) == len(COLUMNS)


def test_the_documented_figures_are_those_that_were_measured() -> None:
    kept = report.read_all()["fleet-tasks"]
    *calls, total = kept["rows"]
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "servers.md").read_text(encoding="utf-8")
    tasks = total[1].split()[2]
    for label, cells in (("right agents among 5", total[2:4]), ("right tools among 10", total[4:6])):
        said = " | ".join(cell.replace(" calls", f" of {len(calls)} calls").replace(" tasks", f" of {tasks} tasks")
                          for cell in cells)  # fmt: skip
        assert f"| {label} | {said} |" in page


def holds(answer: str = "", **check: Any) -> bool:
    return not Task(id="t", task="Do it", check=check).unmet(answer)  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "fits"), [("Add it", True), ("No", False), ("", False)])
def test_the_text_of_a_file_and_the_answer(text: str, fits: bool, tmp_path: Path) -> None:
    if text:
        (tmp_path / "a.md").write_text(f"{text}\nclean")
    assert holds(kind="file_regex", path=tmp_path / "a.md", regex=r"^Add[\s\S]*clean") is fits
    assert holds(text, kind="answer", regex="^Add") is fits


def test_of_several_checks_all_must_hold() -> None:
    checks = tuple({"kind": "answer", "regex": word} for word in ("tea", "milk"))
    task = Task(id="t", task="Do it", check=checks)  # type: ignore[arg-type]
    assert [len(task.unmet(text)) for text in ("", "tea", "tea, milk")] == [2, 1, 0]


def test_the_place_of_the_fleet_is_filled_in_whatever_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    check = {"kind": "file_regex", "path": "{FLEET}/sandbox/a", "regex": "x"}
    path.write_text(json.dumps({"tasks": [{"id": "t", "task": "Do", "check": check, "note": "n"}]}))
    (found,) = read_tasks(path, Path('/a "b"\\c'))
    assert found.check[0].path == Path('/a "b"\\c/sandbox/a')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "holds no tasks"),
        ("[]", "holds no tasks"),
        ("{}", "holds no tasks"),
    ],
)
def test_what_is_no_list_of_tasks_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(text)
    with pytest.raises(CatalogError, match=said):
        read_tasks(path, tmp_path)
    with pytest.raises(CatalogError, match="holds no tasks"):
        read_tasks(tmp_path / "missing.json", tmp_path)
