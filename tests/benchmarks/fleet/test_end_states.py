"""How it is known that a task was done, and what a stand-in for a model makes of gold arguments."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fleet.end_states import FleetTask, moved, read_tasks
from benchmarks.fleet.gold_path import NotInResultsError, Taken, filled
from callsheet.graphs import CatalogError


def task(**check: Any) -> FleetTask:
    return FleetTask(id="t", task="Do it", gold=({"server": "a", "tool": "x"},), check=check)  # type: ignore[arg-type]


def test_an_entity_with_a_fitting_observation(tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    has = task(kind="jsonl_entity", path=file, name="Call", observation_regex="1[78]:00").check
    lacks = task(kind="jsonl_no_entity", path=file, name="Call").check
    assert not has.holds()
    file.write_text('{"type":"relation","name":"Call"}\n\n{"type":"entity","name":"Other","observations":["18:00"]}\n')
    assert (has.holds(), lacks.holds()) == (False, True)
    with file.open("a") as more:
        more.write('{"type":"entity","name":"Call","observations":["x"]}\n')
    assert (has.holds(), lacks.holds()) == (False, False)
    with file.open("a") as more:
        more.write('{"type":"entity","name":"Call","observations":["x", "18:00 there"]}\n')
    assert (has.holds(), lacks.holds()) == (True, False)


def test_the_text_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    check = task(kind="file_regex", path=file, regex=r"a[\s\S]*clean").check
    assert not check.holds()
    file.write_text("unclean a")
    assert not check.holds()
    file.write_text("a\nclean")
    assert check.holds()


@pytest.mark.parametrize(("printed", "holds"), [("Add it", True), ("No", False)])
def test_the_output_of_a_command(printed: str, holds: bool) -> None:
    words = (sys.executable, "-c", f"print({printed!r})")
    assert task(kind="cmd", argv=words, stdout_regex="^Add").check.holds() is holds


def test_the_place_of_the_fleet_is_filled_in_whatever_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    check = {"kind": "file_regex", "path": "{FLEET}/sandbox/a", "regex": "x"}
    gold = [{"server": "a", "tool": "x", "args": {"uri": "file://{FLEET}/b"}}]
    path.write_text(json.dumps({"tasks": [{"id": "t", "task": "Do", "gold": gold, "check": check, "note": "n"}]}))
    (found,) = read_tasks(path, Path('/a "b"\\c'))
    assert found.gold[0].args == {"uri": 'file:///a "b"\\c/b'}
    assert found.check.path == Path('/a "b"\\c/sandbox/a')  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "holds no tasks"),
        ("[]", "holds no tasks"),
        ("{}", "holds no tasks"),
        ('{"tasks": [{"id": "t", "task": "Do", "gold": [], "check": {"kind": "file_regex"}}]}', "gold"),
        ('{"tasks": [{"id": "t", "task": "Do", "gold": [{}], "check": {"kind": "by_heart"}}]}', "by_heart"),
    ],
)
def test_what_is_no_list_of_tasks_is_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "tasks.json"
    path.write_text(text)
    with pytest.raises(CatalogError, match=said):
        read_tasks(path, tmp_path)
    with pytest.raises(CatalogError, match="holds no tasks"):
        read_tasks(tmp_path / "missing.json", tmp_path)


def test_servers_get_a_copy_of_their_data(tmp_path: Path) -> None:
    here, there = tmp_path / 'the "fleet"', tmp_path / "scratch"
    (here / "sandbox").mkdir(parents=True)
    (here / "sandbox" / "a.txt").write_text("a")
    config = here / "mcp.json"
    entry = {"command": str(here / "bin"), "args": [str(here / "sandbox" / "a.txt")]}
    config.write_text(json.dumps({"mcpServers": {"a": entry}}))
    copied = json.loads(moved(config, there).read_text())["mcpServers"]["a"]
    assert copied == {"command": str(here / "bin"), "args": [str(there / "sandbox" / "a.txt")]}
    assert (there / "sandbox" / "a.txt").read_text() == "a"


def test_gold_arguments_take_what_earlier_steps_gave() -> None:
    taken = (Taken("42.164813", r"42\.\d+"), Taken("26.08", r"mean: (\d+\.\d+)", form=".2f"), Taken("absent", "x"))
    args = {"numbers": [42.164813, 10], "said": ["average 26.08 km"]}
    results = ["42.1648128 kilometer", "mean: 1.0", "mean: 26.0824"]
    assert filled(args, taken, results) == {"numbers": [42.1648128, 10], "said": ["average 26.08 km"]}
    assert filled({"x": "# Hello\n"}, [Taken("# Hello", "# .+")], ['# Say "hi"']) == {"x": '# Say "hi"\n'}
    with pytest.raises(NotInResultsError, match=r"no earlier result holds .* for '42\.164813'"):
        filled(args, taken, ["nothing of use"])
