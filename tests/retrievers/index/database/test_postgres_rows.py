"""The index in Postgres, while other processes write to it, die, or lose it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from callsheet.graphs import Catalog, SettingsError
from callsheet.graphs.storage import database_at
from callsheet.retrievers import AgentGraphRetriever, Changes, default_place
from callsheet.retrievers.index.rows import postgres_rows
from counting import Counting, best, index, nodes, other_process


def test_a_killed_indexing_keeps_the_old_rows_and_the_next_embeds_only_what_is_missing(store: str) -> None:
    index(store, Counting()).sync(nodes("old", 100))
    child = other_process("die", store)
    out, _ = child.communicate()
    assert (out, child.returncode) == ("", -signal.SIGKILL)
    embedder = Counting()
    made = index(store, embedder)
    held = made._held()
    assert {f"old/{i}" for i in range(100)} < set(held.values())
    changes = made.sync(nodes("new", 600))
    assert (len(embedder.asked), changes.removed) == (600 - 256, 100)
    assert best(made, "text of new 599") == 599


def test_two_processes_that_index_at_once_wait_for_each_other(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, embedder = other_process("wait", store), Counting()
    assert writer.stdout
    assert writer.stdout.readline() == "indexing\n"
    made = index(store, embedder)
    monkeypatch.setattr(postgres_rows, "_LOCK_SECONDS", 1)
    with pytest.raises(SettingsError, match=r"another process has held the index .* wait for it"):
        made.sync(nodes("new", 600))
    monkeypatch.setattr(postgres_rows, "_LOCK_SECONDS", 60)
    writer.communicate("go on\n")
    assert made.sync(nodes("new", 600)) == Changes()
    assert embedder.asked == []
    assert best(made, "text of new 7") == 7


class LosingTheLock(Counting):
    """Ends the connection that holds the lock of the index, as soon as a text is embedded."""

    def __init__(self, store: str) -> None:
        super().__init__()
        self._store, self.lock = database_at(store), ""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        with self._store.transaction() as connection:
            [(ended,)] = connection.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' "
                "AND (classid::bigint << 32 | objid::bigint) = hashtextextended(%s, 0)",
                [f"{self._store.schema} the index {self.lock}"],
            ).fetchall()
        assert ended == 1
        return super().embed_documents(texts)


def test_without_its_lock_an_indexer_writes_and_deletes_nothing(store: str) -> None:
    index(store, Counting()).sync(nodes("old", 3))
    embedder = LosingTheLock(store)
    made = index(store, embedder)
    assert isinstance(made._rows, postgres_rows.PostgresRows)
    embedder.lock = made._rows._name
    held = made._held()
    with pytest.raises(SettingsError, match="cannot be used"):
        made.sync(nodes("new", 3))
    assert made._held() == held
    assert made.sync(nodes("old", 3)) == Changes()


def test_two_collections_are_written_at_once(store: str) -> None:
    writer = other_process("wait", store)
    assert writer.stdout
    assert writer.stdout.readline() == "indexing\n"
    assert index(store, Counting("another")).sync(nodes("new", 3)) == Changes(added=3)
    writer.communicate("go on\n")


def test_a_retriever_of_a_catalog_on_disk_uses_the_store(store: str, catalog: Catalog, tmp_path: Path) -> None:
    from callsheet.graphs import dump

    file = tmp_path / "callsheet.json"
    file.write_text(dump(catalog))
    first, second = (AgentGraphRetriever.from_catalog(file, embeddings=Counting()) for _ in range(2))
    assert (first.changes.added, second.changes.added) == (len(catalog.tools) + len(catalog.agents), 0)
    assert second.select("rain").tools == first.select("rain").tools
    assert default_place() == store


def test_a_database_that_does_not_answer(catalog: Catalog) -> None:
    address = "postgresql://ann:geheim@127.0.0.1:1/books"
    with pytest.raises(SettingsError, match=r"the store at 127\.0\.0\.1/books") as raised:
        AgentGraphRetriever.from_catalog(catalog, index=address)
    assert "geheim" not in str(raised.value)


def test_the_place_is_told_without_its_password() -> None:
    assert "geheim" not in str(index("postgresql://ann:geheim@127.0.0.1/books", Counting()).where)
