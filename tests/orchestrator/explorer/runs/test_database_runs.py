"""Runs of other programs: read from the database of their checkpointer, which stays as it is."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from starlette.testclient import TestClient

from asking import KEY, Asking
from callsheet.graphs import SettingsError, User
from callsheet.orchestrator.run.thread_files import Threads
from callsheet.orchestrator.server import Site
from callsheet.orchestrator.server.runs.shown_runs import runs_of
from callsheet.orchestrator.server.runs.stores.checkpoint_database import SqliteFile, checkpoint_database
from callsheet.orchestrator.server.runs.stores.database_runs import JoinedRuns, read_databases
from callsheet.orchestrator.server.runs.stores.local_runs import LocalRuns
from chromium import Browser
from explored import explorer, served
from other_program import ASKED, OtherProgram

HEADERS = {"x-callsheet-key": KEY}
Asked = Callable[..., Any]


@pytest.fixture
def program(tmp_path: Path, shop: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[OtherProgram]:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    made = OtherProgram(folder / "state.db", shop.loaded(monkeypatch))
    yield made
    made.close()


def joined(tmp_path: Path, *places: Path | str) -> JoinedRuns:
    return JoinedRuns(LocalRuns(Threads(tmp_path / "threads")), read_databases([*map(str, places)]))


def content(folder: Path, *, but: str = "none") -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if not file.name.endswith(but)}


def test_runs_of_a_program_are_shown_while_it_goes_on_and_after_it(
    tmp_path: Path, program: OtherProgram, asked: Asked
) -> None:
    program.asks("rates")
    program.asks("waits", "always")
    app = explorer(program.loaded, runs=joined(tmp_path, program.file))
    for end in (lambda: None, program.close):
        end()
        before = content(program.file.parent, but="-shm")
        threads = {thread["id"]: thread for thread in asked(app, "runs")}
        assert [*threads] == ["state.db:waits", "state.db:rates"]
        assert {thread["source"] for thread in threads.values()} == {"state.db"}
        assert [thread["status"] for thread in threads.values()] == ["interrupted", "idle"]
        (run,) = asked(app, "run", id="state.db:rates")
        (step,) = run["steps"]
        assert (run["request"], run["status"], step["status"]) == (ASKED, "done", "done")
        assert (step["calls"][0]["tool"]["id"], step["wave"], run["seconds"] > 0) == ("bank/exchange_rate", 1, True)
        assert step["calls"][0]["began"] >= run["began"] > 0
        assert "only shown here: only that program can answer" in run["locked"]
        (waiting,) = asked(app, "run", id="state.db:waits")
        assert [question["tool"]["id"] for question in waiting["questions"]] == ["bank/exchange_rate"]
        assert "no thread" in asked(app, "run", 404, id="state.db:none")["error"]
        assert content(program.file.parent, but="-shm") == before
    assert [file.name for file in program.file.parent.iterdir()] == ["state.db"]


async def test_a_thread_of_the_command_line_is_the_same_run_from_its_file(
    tmp_path: Path, program: OtherProgram
) -> None:
    threads, found = Threads(tmp_path / "threads"), served(program.loaded)
    file = tmp_path / "threads" / "rates.sqlite"
    file.parent.mkdir()
    copy = OtherProgram(file, program.loaded)
    copy.asks("rates")
    copy.close()
    seen = Site(lambda: found).seen(User())
    request: Any = None
    (own,) = runs_of(seen, await LocalRuns(threads).history(request, "rates"))
    (other,) = runs_of(seen, await joined(tmp_path, file).history(request, "rates.sqlite:rates"))
    assert own.steps[0].calls
    assert other.model_copy(update={"locked": ""}) == own


def test_threads_of_other_graphs_are_left_out_and_counted(tmp_path: Path, program: OtherProgram, asked: Asked) -> None:
    for i in range(3):
        program.runs_another_graph(f"other {i}")
    program.asks("rates")
    app = explorer(program.loaded, runs=joined(tmp_path, program.file))
    thread, note = asked(app, "runs")
    assert thread["id"] == "state.db:rates"
    assert (note["status"], note["request"]) == ("note", "1 thread shown, 3 of other graphs left out")
    assert "no thread" in asked(app, "run", 404, id="state.db:other 1")["error"]


def test_a_program_that_starts_while_its_file_is_read_is_read_again(program: OtherProgram) -> None:
    program.runs_another_graph("first")
    program.close()
    opened = list[sqlite3.Connection]()

    def reader(_: Any, connection: sqlite3.Connection) -> list[str]:
        if not opened:  # as another process would
            opened.append(sqlite3.connect(program.file))
            opened[0].execute("DELETE FROM checkpoints")
            opened[0].commit()
            opened[0].execute("PRAGMA wal_checkpoint(TRUNCATE)")
            opened[0].execute("CREATE TABLE more (a)")
        return [row["name"] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]

    assert SqliteFile(program.file).read(reader) == ["checkpoints", "writes", "more"]
    opened[0].close()


@dataclass
class Harm:
    """What a foreign file names, and what is made of it if somebody trusts the file."""

    made = 0
    word: str = ""

    def __post_init__(self) -> None:
        Harm.made += 1


def test_no_type_that_a_file_names_is_imported(
    program: OtherProgram, monkeypatch: pytest.MonkeyPatch, asked: Asked, tmp_path: Path
) -> None:
    program.asks("rates")
    module = ModuleType("harm_of_the_tests")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    module.Harm = Harm  # type: ignore[attr-defined]
    monkeypatch.setattr(Harm, "__module__", module.__name__)
    config: Any = {"configurable": {"thread_id": "rates", "checkpoint_ns": ""}}
    last: Any = program.saver.get_tuple(config)
    values = {**last.checkpoint["channel_values"], "preferences": {"a": Harm("x")}}
    checkpoint = {**last.checkpoint, "id": "2" + last.checkpoint["id"][1:], "channel_values": values}
    program.saver.put(config, checkpoint, last.metadata, {})
    program.saver.get_tuple(config)
    made, app = Harm.made, explorer(program.loaded, runs=joined(tmp_path, program.file))
    (run,) = asked(app, "run", id="state.db:rates")
    assert (run["status"], made > 1, Harm.made) == ("done", True, made)


def test_a_run_of_another_program_is_not_continued_or_stopped_here(
    tmp_path: Path, program: OtherProgram, monkeypatch: pytest.MonkeyPatch
) -> None:
    program.asks("waits", "always")
    before = content(program.file.parent, but="-shm")
    client = TestClient(Asking(tmp_path, monkeypatch).page(databases=[str(program.file)]), headers=HEADERS)
    (run,) = client.get("/callsheet/api/run", params={"id": "state.db:waits"}).json()
    given: dict[str, Any] = {"thread": "state.db:waits"}
    answers = {run["questions"][0]["id"]: {"type": "approve"}}
    for name, more in (("start", {"text": "more"}), ("resume", {"answers": answers}), ("cancel", {})):
        refused = client.post(f"/callsheet/api/{name}", json=given | more)
        assert (refused.status_code, "only the program that started a run" in refused.json()["error"]) == (409, True)
    assert "callsheet_approvals_waiting 0.0" in client.get("/callsheet/metrics").text
    assert content(program.file.parent, but="-shm") == before


@pytest.mark.server
def test_the_page_says_which_runs_are_of_another_program_and_why_they_are_only_shown(
    tmp_path: Path, program: OtherProgram, monkeypatch: pytest.MonkeyPatch, show: Callable[..., Browser]
) -> None:
    program.asks("waits", "always")
    program.runs_another_graph("other")
    page = show(Asking(tmp_path, monkeypatch).page(databases=[str(program.file)]), f"#key={KEY}")
    page.run("location.hash = '#/runs'")
    page.wait("document.querySelectorAll('.threads li').length === 2")
    first, note = page.run("[...document.querySelectorAll('.threads li')].map((e) => e.innerText)")
    assert ("state.db" in first, "waits" in first, "waits for you" in first) == (True, True, False)
    assert note == "state.db: 1 thread shown, 1 of other graphs left out"
    page.run("document.querySelector('.threads a').click()")
    page.wait("document.querySelector('.thread > .run')?.dataset.status === 'waiting'")
    said = page.run("document.querySelector('.thread').innerText")
    for part in ("Waits for a person", "It is only shown here", "bank/exchange_rate", "USD"):
        assert part in said
    shown = "[...document.querySelectorAll('.run button, .next button')].filter((e) => e.checkVisibility()).length"
    assert page.run(shown) == 0
    assert page.complaints == []


def test_runs_in_postgres_are_shown_and_not_written(
    tmp_path: Path, program: OtherProgram, store: str, asked: Asked
) -> None:
    from langgraph.checkpoint.postgres import PostgresSaver

    place, _, schema = store.partition("&schema=")
    address = f"{place}&options=-csearch_path%3D{schema}"
    (runs,) = read_databases([address])
    with pytest.raises(SettingsError, match="no checkpoints of LangGraph's PostgresSaver"):
        runs.listing()
    with PostgresSaver.from_conn_string(address) as saver:
        saver.setup()
        program.asks("rates", saver=saver)
        program.asks("waits", "always", saver=saver)
    app = explorer(program.loaded, runs=joined(tmp_path, address))
    waits, rates = asked(app, "runs")
    assert ([waits["status"], rates["status"]], rates["source"]) == (["interrupted", "idle"], runs.name)
    (run,) = asked(app, "run", id=rates["id"])
    assert (run["status"], run["steps"][0]["calls"][0]["tool"]["id"]) == ("done", "bank/exchange_rate")
    with pytest.raises(SettingsError, match="read-only transaction"):
        checkpoint_database(address).read(lambda _, connection: connection.execute("DELETE FROM checkpoints"))
