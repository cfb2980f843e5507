"""The snapshot beside a collection: of just these rows, whole, or not taken."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from callsheet.graphs.catalog.formats.manifests import dump
from callsheet.retrievers import Changes
from callsheet.retrievers.index.indexes import read_snapshot, write_snapshot
from counting import Counting, index, nodes
from small import small_catalog

ROWS = ["a", "b", "c"]
VECTORS = np.arange(12, dtype=np.float32).reshape(3, 4)


def test_a_written_snapshot_is_read_back(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "s", ROWS, VECTORS)
    found = read_snapshot(tmp_path / "s", ROWS)
    assert found is not None
    assert np.array_equal(found, VECTORS)
    assert [file.name for file in tmp_path.iterdir()] == ["s"]
    for rows in (["a", "b"], ["a", "b", "c", "d"], ["b", "a", "c"], []):
        assert read_snapshot(tmp_path / "s", rows) is None


def test_a_damaged_snapshot_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / "s"
    assert read_snapshot(file, ROWS) is None
    write_snapshot(file, ROWS, VECTORS)
    whole = file.read_bytes()
    for damaged in (b"", whole[:-1], whole + b"x", whole[:20], b"[]\n", whole[:-5] + b"\xff" + whole[-4:]):
        file.write_bytes(damaged)
        assert read_snapshot(file, ROWS) is None, damaged
    file.write_bytes(whole)
    assert read_snapshot(file, ROWS) is not None


def test_a_folder_that_cannot_be_written_is_tolerated(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "missing" / "s", ROWS, VECTORS)
    assert not (tmp_path / "missing").exists()


def test_an_index_finds_the_same_by_its_snapshot_and_without(tmp_path: Path) -> None:
    first = index(tmp_path, Counting())
    assert first.sync(nodes("a", 2)) == Changes(added=2)
    again = index(tmp_path, Counting())
    assert again.sync(nodes("a", 2)) == Changes()
    (file,) = tmp_path.glob("*.vectors")
    file.unlink()
    without = index(tmp_path, Counting())
    assert without.sync(nodes("a", 2)) == Changes()
    for other in (again, without):
        assert np.array_equal(other.scores("q"), first.scores("q"))
    assert file.exists()


UNUSED = ("chromadb", "langchain_core", "langgraph", "mcp", "rdflib")
TOLD = "import sys\nfrom callsheet.orchestrator.cli.main import main\ntry: main({words!r})\nexcept SystemExit: pass\n"


def test_retrieve_on_a_built_index_imports_only_what_it_uses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path))
    (tmp_path / "callsheet.json").write_text(dump(small_catalog()))
    words = ["retrieve", "the weather tomorrow", "--catalog", str(tmp_path / "callsheet.json")]
    script = TOLD.format(words=words) + f"print('imported', [m for m in {UNUSED!r} if m in sys.modules])"
    said = [
        subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert "imported ['chromadb'" in said[0]
    assert said[1].endswith("imported []\n")
