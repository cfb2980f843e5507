"""Databases whose runs cannot be read: what is wrong, with which, and what helps."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from callsheet.graphs import Catalog, SettingsError
from callsheet.orchestrator.cli.main import main
from callsheet.orchestrator.run.thread_files import Threads
from callsheet.orchestrator.server.runs.stores.database_runs import JoinedRuns, read_databases
from callsheet.orchestrator.server.runs.stores.local_runs import LocalRuns
from explored import explorer

Asked = Callable[..., Any]
_KILLED = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.executescript("PRAGMA journal_mode=DELETE; PRAGMA cache_size=1; BEGIN")
rows = [(i, "x" * 900) for i in range(999)]
connection.executemany("INSERT INTO writes VALUES ('1', '', ?, '', '', 1, '', '', ?)", rows)
os._exit(9)
"""


def checkpoints(file: Path, threads: int = 1) -> Path:
    """A database of a ``SqliteSaver``."""
    with SqliteSaver.from_conn_string(str(file)) as saver:
        saver.setup()
        for i in range(threads):
            config: Any = {"configurable": {"thread_id": f"thread {i}", "checkpoint_ns": ""}}
            checkpoint: Any = {"v": 4, "id": f"1-{i:04}", "ts": "", "channel_versions": {}, "versions_seen": {}}
            saver.put(config, {**checkpoint, "channel_values": {"text": "x" * 5_000}}, {"step": 1}, {})
    return file


def damaged(file: Path) -> None:
    os.truncate(checkpoints(file, 40), 60_000)


def of_another_kind(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE accounts (id)")


def interrupted(file: Path) -> None:
    subprocess.run([sys.executable, "-c", _KILLED, str(checkpoints(file))], check=False)
    assert file.with_name("state.db-journal").exists()


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda _: None, "there is no file"),
        (Path.mkdir, "there is no file"),
        (lambda file: file.write_text("no database, whatever its name says" * 9), "give the file of LangGraph's"),
        (Path.touch, "no such table: checkpoints: these are no checkpoints of LangGraph's SqliteSaver"),
        (of_another_kind, "no such table: checkpoints: these are no checkpoints of LangGraph's SqliteSaver"),
        (damaged, "malformed: it is damaged or half-written: copy a file in use with"),
        (interrupted, "its program was killed while it wrote: start that program once"),
    ],
    ids=["missing", "a folder", "text", "empty", "of another kind", "half-written", "killed"],
)
def test_what_cannot_be_read_is_named_with_its_cure_and_stays_as_it_is(
    make: Callable[[Path], Any], told: str, tmp_path: Path, catalog: Catalog, asked: Asked
) -> None:
    file = tmp_path / "state.db"
    make(file)
    before = {one.name: one.is_file() and one.read_bytes() for one in tmp_path.iterdir()}
    (runs,) = read_databases([str(file)])
    with pytest.raises(SettingsError) as refused:
        runs.listing()
    assert (told in str(refused.value), str(file) in str(refused.value)) == (True, True)
    app = explorer(catalog, runs=JoinedRuns(LocalRuns(Threads(tmp_path / "none")), [runs]))
    (thread,) = asked(app, "runs")
    assert (thread["status"], told in thread["request"]) == ("error", True)
    assert told in asked(app, "run", 500, id=thread["id"])["error"]
    assert {one.name: one.is_file() and one.read_bytes() for one in tmp_path.iterdir()} == before


def test_a_locked_file_is_said_to_be_locked_and_read_afterwards(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("callsheet.orchestrator.server.runs.stores.checkpoint_database._SECONDS", 0.01)
    file = checkpoints(tmp_path / "state.db")
    (runs,) = read_databases([str(file)])
    other = sqlite3.connect(file)
    other.executescript("PRAGMA journal_mode=DELETE; BEGIN EXCLUSIVE")
    with pytest.raises(SettingsError, match="another program has locked it: try again"):
        runs.listing()
    other.close()
    assert (runs.listing().others, runs.listing().threads) == (1, [])


def test_a_thread_that_cannot_be_deserialized_is_counted_and_says_why(
    tmp_path: Path, catalog: Catalog, asked: Asked
) -> None:
    file = checkpoints(tmp_path / "state.db", 3)
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE checkpoints SET type = 'pickle' WHERE thread_id <> 'thread 0'")
    app = explorer(catalog, runs=JoinedRuns(LocalRuns(Threads(tmp_path / "none")), read_databases([str(file)])))
    (note,) = asked(app, "runs")
    assert note["request"] == "0 threads shown, 1 of other graphs left out, 2 unreadable (encrypted or pickled)"
    told = asked(app, "run", 500, id="state.db:thread 1")["error"]
    assert "it is encrypted, pickled, or of another version of LangGraph" in told


def test_two_files_of_one_name_have_names_of_their_own(tmp_path: Path) -> None:
    places = [str(tmp_path / folder / "state.db") for folder in "aab"]
    assert [runs.name for runs in read_databases(places)] == ["state.db", "state.db (2)"]


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("mysql://host/state", "runs cannot be read from mysql://: give a SQLite file or postgresql://"),
        ("postgresql://ann:se cret@host/a?b=%", "an address of runs is postgresql://"),
        ("postgresql://ann:secret@127.0.0.1:1/a", "runs in 127.0.0.1/a cannot be read: connection"),
        ("none.db", "there is no file none.db with runs"),
    ],
)
def test_the_command_line_says_which_place_is_none_before_anything_is_read(
    place: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["explore", "--catalog", "none.json", "--runs", place])
    said = capsys.readouterr().err
    assert (ended.value.code, told in said, "secret" in said, "se cret" in said) == (2, True, False, False)
