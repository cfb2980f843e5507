"""A full disk and a damaged file end in one line that says what to do, and never in advice that loses something."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from callsheet.graphs import SettingsError, TrustError, load
from callsheet.graphs.storage import is_full
from callsheet.orchestrator.run.threads import Threads
from callsheet.retrievers.documents import DocumentIndex
from commands import run
from fleet import Fleet, definition

CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
FREE = "free some space"


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes the disk full for every file that is written anew."""

    def fill() -> None:
        def fails(_: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", fails)

    return fill


async def kept(threads: Threads, note: str = "x", room: str = "PRAGMA page_count") -> None:
    """Keeps a checkpoint of the thread ``t``; its file may be told how much room it has."""
    with threads.locked("t"):
        async with threads.saver("t") as saver:
            await cast("AsyncSqliteSaver", saver).conn.execute(room)
            await saver.aput(CONFIG, {**empty_checkpoint(), "channel_values": {"note": note}}, {}, {})


def test_a_full_disk_costs_no_pin_and_is_told_in_one_line(
    fleet: Fleet, full: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    fleet.serve("a", definition("work"))
    load(fleet.config, yes=True)
    book = next((fleet.folder.parent / "home" / "pins").iterdir())
    before = book.read_text()
    fleet.serve("b", definition("work"))
    full()
    status, _, err = run(capsys, "index", "--catalog", str(fleet.config), "--yes")
    assert (status, err.count("\n")) == (2, 1)
    assert os.strerror(errno.ENOSPC) in err
    assert FREE in err
    assert book.read_text() == before
    assert [file.name for file in book.parent.iterdir()] == [book.name]


async def test_a_thread_that_finds_no_room_says_so_and_stays(tmp_path: Path) -> None:
    threads = Threads(tmp_path)
    await kept(threads)
    with pytest.raises(SettingsError, match=FREE):
        await kept(threads, "x" * 1_000_000, room="PRAGMA max_page_count = 1")
    await kept(threads, "again")


def test_any_command_tells_of_a_full_disk(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        try:
            raise sqlite3.OperationalError("database or disk is full")
        except sqlite3.Error as error:
            raise RuntimeError("error returned from database: (code: 13)") from error

    fleet.serve("a", definition("work"))
    monkeypatch.setattr("callsheet.retrievers.index.rows.ChromaRows.add", fails)
    status, _, err = run(capsys, "index", "--catalog", str(fleet.config), "--yes")
    assert (status, FREE in err, "Traceback" in err) == (2, True, False)


def test_an_internal_error_is_not_called_a_full_disk(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("a fault of ours")

    fleet.serve("a", definition("work"))
    monkeypatch.setattr("callsheet.retrievers.index.rows.ChromaRows.add", fails)
    status, _, err = run(capsys, "index", "--catalog", str(fleet.config), "--yes")
    assert (status, FREE in err, "RuntimeError: a fault of ours" in err) == (70, False, True)
    assert not is_full(OSError(errno.EACCES, "x"))
    assert is_full(ExceptionGroup("two", [ValueError(), OSError(errno.EDQUOT, "x")]))


def truncated(content: bytes) -> bytes:
    return content[: len(content) // 2]


def without_pages(content: bytes) -> bytes:
    return content[:4_096] + bytes(len(content) - 4_096)


def overwritten(content: bytes) -> bytes:
    return b"no database at all" * 100


@pytest.mark.parametrize("damage", [truncated, without_pages, overwritten], ids=lambda damage: damage.__name__)
async def test_a_damaged_thread_is_named_and_nobody_is_told_to_remove_it(
    damage: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = Threads(tmp_path)
    await kept(threads, "x" * 20_000)
    file = tmp_path / "t.sqlite"
    file.write_bytes(damage(file.read_bytes()))
    for rest in ("-wal", "-shm"):
        Path(f"{file}{rest}").unlink(missing_ok=True)
    with pytest.raises(SettingsError, match="is damaged") as told:
        await kept(threads)
    assert "check what its calls have done" in str(told.value)
    assert "remove it" not in str(told.value)


async def test_a_checkpoint_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    threads = Threads(tmp_path)
    await kept(threads)
    with sqlite3.connect(tmp_path / "t.sqlite") as connection:
        connection.execute("UPDATE checkpoints SET checkpoint = ?", (b"\xc1\x00garbage",))
    with pytest.raises(SettingsError, match="is damaged"):
        await kept(threads)


async def test_a_thread_that_another_program_has_locked_is_not_damaged(tmp_path: Path) -> None:
    threads = Threads(tmp_path)
    await kept(threads)
    told = threads._unusable("t", sqlite3.OperationalError("database is locked"))
    assert "in use by another program" in str(told)


def test_a_failure_of_the_run_is_not_taken_for_one_of_the_folder(tmp_path: Path) -> None:
    threads = Threads(tmp_path)
    with pytest.raises(ConnectionResetError), threads.locked("t"):
        raise ConnectionResetError(errno.ECONNRESET, "the model's server hung up")
    with threads.locked("t"):
        pass


def test_texts_that_find_no_room_are_not_to_be_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()

    def fails(*_: Any, **__: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr("callsheet.retrievers.documents.document_text.TextStore._connect", fails)
    with pytest.raises(SettingsError, match=FREE) as told:
        DocumentIndex(tmp_path / "docs", index=tmp_path / "index")
    assert "delete" not in str(told.value)


def test_pins_that_cannot_be_read_are_not_to_be_deleted(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet.serve("a", definition("work"))
    folder = fleet.folder.parent / "pins.json"
    folder.mkdir()
    with pytest.raises(TrustError, match="cannot be read, so nothing is used") as told:
        load(fleet.config, yes=True, pins=folder)
    assert "delete" not in str(told.value)
    assert json.loads(fleet.config.read_text())["mcpServers"]
