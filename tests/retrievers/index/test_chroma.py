from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from chromadb import PersistentClient
from chromadb.config import Settings
from chromadb.utils.embedding_functions import DefaultEmbeddingFunction, ONNXMiniLM_L6_V2

from callsheet.graphs import SettingsError
from callsheet.retrievers import Changes, ChromaIndex, Node
from callsheet.retrievers.index import indexes, rows as stored_rows
from callsheet.retrievers.index.rows import ChromaRows
from counting import Counting, best, index, nodes, other_process
from forked import Forked

CANARY = b"CANARY-of-memory"


def test_an_empty_index_finds_nothing(tmp_path: Path) -> None:
    made = index(tmp_path, Counting())
    assert made.scores("text").shape == (1, 0)
    assert made.sync([]) == Changes()
    assert made.scores("text of", [(0, 4), (5, 7)]).shape == (3, 0)


def test_a_second_indexing_embeds_only_what_changed_and_removes_what_is_gone(tmp_path: Path) -> None:
    before = nodes("a", 10)
    assert index(tmp_path, Counting()).sync(before) == Changes(added=10)
    changed = Node("a/4", "tool", "a", "quite another text", "")
    after = [*before[:4], changed, *before[5:9], *nodes("b", 2)]
    embedder = Counting()
    made = index(tmp_path, embedder)
    assert made.sync(after) == Changes(added=2, updated=1, removed=1)
    assert sorted(embedder.asked) == ["quite another text", "text of b 0", "text of b 1"]
    fresh = index(None, Counting())
    fresh.sync(after)
    assert made.scores("x") == pytest.approx(fresh.scores("x"), abs=1e-5)
    assert best(made, "quite another text") == 4


@pytest.mark.parametrize(
    ("name", "recipe"), [("other", "r1"), ("counting", "r2"), ("Some/Org:embed_v3 (large) é", "r1")]
)
def test_another_embedder_or_recipe_has_vectors_of_its_own(tmp_path: Path, name: str, recipe: str) -> None:
    index(tmp_path, Counting()).sync(nodes("a", 3))
    embedder = Counting(name)
    assert index(tmp_path, embedder, recipe=recipe).sync(nodes("a", 3)) == Changes(added=3)
    assert len(embedder.asked) == 3
    assert index(tmp_path, Counting()).sync(nodes("a", 3)) == Changes()


def test_two_catalogs_in_one_place_do_not_disturb_each_other(tmp_path: Path) -> None:
    one, other = (index(tmp_path, Counting(), catalog=name) for name in ("one", "other"))
    one.sync(nodes("a", 3))
    assert other.sync([*nodes("a", 2), *nodes("b", 1)]) == Changes(added=3)
    assert other.sync([]) == Changes(removed=3)
    embedder = Counting()
    again = index(tmp_path, embedder, catalog="one")
    assert again.sync(nodes("a", 3)) == Changes()
    assert best(again, "text of a 1") == 1


def test_chromas_own_embedding_function_is_never_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        pytest.fail("Chroma's default embedding function was used")

    monkeypatch.setattr(DefaultEmbeddingFunction, "__call__", refuse)
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "__call__", refuse)
    monkeypatch.setattr(ONNXMiniLM_L6_V2, "_download_model_if_not_exists", refuse)
    for _ in range(2):
        made = index(tmp_path, Counting())
        made.sync(nodes("a", 2))
        assert best(made, "text of a 1") == 1


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """An index of 100 nodes whose next indexing, of 600 others, was killed after one chunk of 256."""
    place = tmp_path / "index"
    index(place, Counting()).sync(nodes("old", 100))
    child = other_process("die", place)
    out, _ = child.communicate()
    assert (out, child.returncode) == ("", -signal.SIGKILL)
    return place


@pytest.mark.parametrize("exact", [20_000, 10])
def test_a_killed_indexing_keeps_the_old_rows_and_the_next_embeds_only_what_is_missing(
    killed: Path, monkeypatch: pytest.MonkeyPatch, exact: int
) -> None:
    monkeypatch.setattr(indexes, "EXACT", exact)
    copy = Path(shutil.copytree(killed, killed.with_name("copy")))
    embedder = Counting()
    old = index(copy, embedder)
    old.sync(nodes("old", 100))
    assert embedder.asked == []
    assert best(old, "text of old 42") == 42

    made, told = index(killed, embedder), list[tuple[int, int]]()
    changes = made.sync(nodes("new", 600), lambda done, total: told.append((done, total)))
    assert (len(embedder.asked), changes.removed) == (600 - 256, 100)
    assert told == [(256, 344), (344, 344)]
    assert [best(made, f"text of new {row}") for row in range(0, 600, 50)] == [*range(0, 600, 50)]


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Forked]:
    """Another process, in the middle of indexing 600 nodes at ``tmp_path``; a line on its input lets it go on."""
    child = other_process("wait", tmp_path)
    yield child
    child.kill()
    child.communicate()


def test_two_processes_that_index_at_once_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: Forked
) -> None:
    embedder = Counting()
    assert writer.stdout
    assert writer.stdin
    assert writer.stdout.readline() == "indexing\n"
    made = index(tmp_path, embedder)
    monkeypatch.setattr(stored_rows, "_LOCK_SECONDS", 0.05)
    with pytest.raises(
        SettingsError, match=r"another process has been writing .* wait for it, or give this one another"
    ):
        made.sync(nodes("new", 600))
    writer.stdin.write("go on\n")
    writer.stdin.flush()
    monkeypatch.setattr(stored_rows, "_LOCK_SECONDS", 60.0)
    assert made.sync(nodes("new", 600)) == Changes()
    assert embedder.asked == []
    assert best(made, "text of new 7") == 7


@pytest.mark.parametrize("exact", [20_000, 10])
def test_rows_written_by_another_process_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exact: int
) -> None:
    monkeypatch.setattr(indexes, "EXACT", exact)
    embedder = Counting()
    bystander, made = index(tmp_path, Counting()), index(tmp_path, embedder)
    made.sync(nodes("old", 20))
    out, _ = other_process("neither", tmp_path).communicate()
    assert out == "done\n"
    assert best(made, "text of old 3") == 3
    assert made.sync(nodes("new", 600)) == Changes()
    assert len(embedder.asked) == 20
    assert best(made, "text of new 7") == 7
    assert bystander.sync(nodes("new", 600)) == Changes()


def test_an_index_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(SettingsError, match=r"the index at .*file cannot be opened"):
        index(tmp_path / "file", Counting()).sync([])


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "chroma.sqlite3").write_bytes(b"this is no database" * 100)
    with pytest.raises(SettingsError, match=r"cannot be opened: .*not a database"):
        index(tmp_path, Counting()).sync([])


@pytest.mark.parametrize("place", ["postgresql://ann:geheim@h/b", "mysql://h"])
def test_an_address_that_is_not_a_chroma_server_is_refused(place: str) -> None:
    with pytest.raises(SettingsError, match=r"an index cannot be at \w+://: give a folder") as raised:
        index(place, Counting())
    assert "geheim" not in str(raised.value)


def test_a_server_that_does_not_answer_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"the index at http://127\.0\.0\.1:9 cannot be opened"):
        ChromaIndex(Counting(), catalog="c", recipe="r1", where="http://127.0.0.1:9").sync([])


def test_the_rows_say_which_node_and_kind_they_are(tmp_path: Path) -> None:
    made = index(tmp_path, Counting("named"))
    made.sync([Node("a", "agent", "a", "an agent", ""), *nodes("a", 1)])
    (held,) = PersistentClient(tmp_path, Settings(anonymized_telemetry=False)).list_collections()
    assert held.name.startswith("nodes-named-r1-")
    rows = held.get(include=["metadatas"])["metadatas"] or []
    assert sorted((row["node"], row["kind"], row["owner"], row["agent"]) for row in rows) == [
        ("a", "agent", "a", "a"),
        ("a/0", "tool", "a", "a"),
    ]


@pytest.mark.parametrize("rows", [3, 1_200])
def test_unused_slots_are_cleared_and_the_vectors_stay(tmp_path: Path, rows: int) -> None:
    index, ids = ChromaRows("rows", tmp_path), [str(number) for number in range(rows)]
    vectors = np.random.default_rng(1).random((rows, 8), np.float32)
    with index.writing():
        index.add(ids, vectors)
        for file in (*tmp_path.glob("*/data_level0.bin"), *tmp_path.glob("*/length.bin")):
            if rows < 1_000:  # a longer index is written again without unused slots
                file.write_bytes(file.read_bytes()[: -len(CANARY)] + CANARY)
    on_disk = [file.read_bytes() for file in tmp_path.glob("*/*.bin")]
    assert len(on_disk) >= 3
    assert not any(CANARY in content for content in on_disk)
    again = ChromaRows("rows", tmp_path)
    assert again.vectors(ids) == pytest.approx(vectors, abs=1e-2)
