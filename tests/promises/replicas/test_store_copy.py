"""``callsheet store copy``: from a folder to Postgres and back, without a loss."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from callsheet.graphs.dependencies import ObservationLog
from callsheet.graphs.storage import cache_file
from callsheet.orchestrator.cli.main import main
from callsheet.retrievers.index.rows import rows_of
from callsheet.retrievers.index.rows.rows_copy import copy_rows
from fleet import Fleet, definition, empty_fleet

SEEN = {("notes/add_note", "weather/forecast", "text"): 3}


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """Two servers, pinned and indexed in a folder, and what was learned from runs."""
    fleet = empty_fleet(tmp_path, monkeypatch)
    monkeypatch.delenv("CALLSHEET_LIMIT_FRESH")
    fleet.serve("weather", definition("forecast", "The weather forecast of a place."))
    fleet.serve("notes", definition("add_note", "Writes a note."))
    monkeypatch.setenv("CALLSHEET_CATALOG", str(fleet.config))
    ObservationLog().add(SEEN)
    return fleet


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*words: str, status: int = 0) -> dict[str, Any]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([*words, "--json"])
        output = capsys.readouterr()
        assert end.value.code == status, output.err
        return json.loads(output.out) if output.out else {"error": output.err}

    return run


def contents(home: Path) -> dict[str, bytes]:
    wanted = ("*.json", "pins/*.json", "listings/*.json")
    return {str(path.relative_to(home)): path.read_bytes() for glob in wanted for path in home.glob(glob)}


def test_to_a_database_and_back(
    fleet: Fleet, said: Any, tmp_path: Path, postgres: str, monkeypatch: pytest.MonkeyPatch, request: Any
) -> None:
    said("index", "--yes")
    home = tmp_path / "home"
    address = request.getfixturevalue("store")
    monkeypatch.delenv("CALLSHEET_STORE")
    copied = said("store", "copy", str(home), address)
    assert (len(copied["files"]), copied["vectors"], copied["kept"]) == (4, 4, [])
    assert copied["rows"] == 8

    monkeypatch.setenv("CALLSHEET_STORE", address)
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "another machine"))
    before = fleet.bytes_sent("weather")
    indexed = said("index", "--yes")
    assert (indexed["added"], indexed["updated"], indexed["removed"]) == (0, 0, 0)
    assert fleet.bytes_sent("weather") == before  # its listing was in the store
    assert ObservationLog().read() == SEEN

    monkeypatch.delenv("CALLSHEET_STORE")
    back = tmp_path / "back"
    assert said("store", "copy", address, str(back))["rows"] == 8
    assert contents(back) == contents(home)
    monkeypatch.setenv("CALLSHEET_HOME", str(back))
    assert said("index", "--yes")["added"] == 0
    assert said("store", "copy", str(home), str(back))["rows"] == 0


def test_a_listing_is_as_old_as_it_was(fleet: Fleet, said: Any, tmp_path: Path, store: str) -> None:
    (listings := tmp_path / "old" / "listings").mkdir(parents=True)
    (listings / "a.json").write_text("{}")
    os.utime(listings / "a.json", (1_000_000, 1_000_000))
    assert said("store", "copy", str(tmp_path / "old"), store)["rows"] == 1
    assert cache_file("listings/a.json").modified() == 1_000_000
    assert said("store", "copy", store, str(tmp_path / "back"))["rows"] >= 1
    assert (tmp_path / "back" / "listings" / "a.json").stat().st_mtime == 1_000_000


def test_nothing_is_overwritten(fleet: Fleet, said: Any, tmp_path: Path, store: str) -> None:
    ObservationLog().add({("a/x", "b/y", "id"): 1})
    found = said("store", "copy", str(tmp_path / "home"), store, status=1)
    assert found["kept"] == ["observed.json"]
    assert ObservationLog().read() == {("a/x", "b/y", "id"): 1}


def test_vectors_without_metadata_are_copied_too(store: str, tmp_path: Path) -> None:
    vectors = np.eye(3, 4, dtype=np.float32)
    rows_of("sentences", store).add(["a", "b", "c"], vectors)
    assert copy_rows(store, str(tmp_path)) == 3
    assert (rows_of("sentences", tmp_path / "index").vectors(["c", "a"]) == vectors[[2, 0]]).all()


@pytest.mark.parametrize("place", ["nowhere/at/all", "postgresql://127.0.0.1:1/books", "postgresql://a/b?schema=É"])
def test_a_place_that_cannot_be_used_is_a_usage_error(said: Any, tmp_path: Path, place: str) -> None:
    assert "error: " in said("store", "copy", place, str(tmp_path / "to"), status=2)["error"]
    assert not (tmp_path / "to").exists()
