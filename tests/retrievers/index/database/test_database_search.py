"""Search inside Postgres: what the process does not hold is found all the same, in exactly one state of the catalog."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import psycopg
import pytest
from langchain_core.embeddings import Embeddings

from callsheet.graphs import SettingsError
from callsheet.graphs.storage import Database
from callsheet.retrievers import Changes, ChromaIndex, Node
from callsheet.retrievers.index.protocols import PartOfIndex
from callsheet.retrievers.index.rows import DatabaseSearch, PostgresRows, database_table
from callsheet.retrievers.index.rows.rows_copy import copy_rows
from counting import index, nodes

N, D = 3_000, 48


class Subjects(Embeddings):
    """Vectors around 100 subjects, drawn by the text."""

    name = "subjects"

    def __init__(self, dimensions: int = D) -> None:
        self.asked = 0
        self._subjects = np.random.default_rng(1).normal(size=(100, dimensions))

    def embed_query(self, text: str) -> list[float]:
        draw = np.random.default_rng(list(text.encode()))
        vector = self._subjects[draw.integers(100)] + 0.7 * self._subjects[draw.integers(100)]
        vector += 0.4 * draw.normal(size=len(vector))
        return (vector / np.linalg.norm(vector)).tolist()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked += len(texts)
        return [self.embed_query(text) for text in texts]


@pytest.fixture(autouse=True)
def in_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_IN_MEMORY", "20")


def exact(made: ChromaIndex, wanted: Sequence[Node], query: str) -> np.ndarray:
    embed = made.embeddings.embed_query
    return np.array([vector_of(made, node.text) for node in wanted]) @ np.array(embed(query))


@cache
def vector_of(made: ChromaIndex, text: str) -> list[float]:
    return made.embeddings.embed_query(text)


def searches_inside(made: ChromaIndex) -> bool:
    return isinstance(made._vectors, DatabaseSearch)


def table_of(made: ChromaIndex) -> str:
    assert isinstance(made._vectors, DatabaseSearch)
    return made._vectors.table


def database_of(made: ChromaIndex) -> Database:
    assert isinstance(made._rows, PostgresRows)
    return made._rows._database


@pytest.fixture(scope="module")
def large(postgres: str) -> Iterator[tuple[ChromaIndex, list[Node]]]:
    """An index of 3,000 nodes, which several tests search."""
    schema = "largecatalog"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CALLSHEET_IN_MEMORY", "20")
        made, wanted = index(f"{postgres}&schema={schema}", Subjects()), nodes("a", N)
        made.sync(wanted)
    yield made, wanted
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())


def test_the_exact_best_30_are_found(large: tuple[ChromaIndex, list[Node]]) -> None:
    made, wanted = large
    assert searches_inside(made)
    plan = f"EXPLAIN SELECT id FROM {table_of(made)} ORDER BY vector <#> '{[1] * D}' LIMIT 400"
    with database_of(made).connect() as connection:
        assert "vector_idx" in str(connection.execute(plan.encode()).fetchall())
    shares = []
    for number in range(20):
        true, found = exact(made, wanted, f"query {number}"), made.scores(f"query {number}")[0]
        best = np.argsort(-true)[:30]
        shares.append(len({*best.tolist()} & {*np.argsort(-found)[:30].tolist()}) / 30)
        assert found[best[0]] == pytest.approx(true[best[0]], abs=1e-3)
        assert found.min() <= np.sort(found)[-400]
        assert len(np.unique(found)) <= 401  # the others have one estimate
        also = np.array([5, 17])
        assert made.scores_of(None, f"query {number}", (), [also])[0, also] == pytest.approx(true[also], abs=1e-3)
    assert np.mean(shares) >= 0.97


def test_of_a_query_and_its_parts_each_is_searched(large: tuple[ChromaIndex, list[Node]]) -> None:
    made, _ = large
    whole = made.scores("text of a 7, text of a 9", [(0, 11), (13, 24)])
    assert whole.shape == (3, N)
    assert [int(row.argmax()) for row in whole[1:]] == [7, 9]


@pytest.mark.parametrize(("most", "size"), [(20_000, 50), (100, 600)])
def test_only_what_a_user_may_see_is_searched(
    large: tuple[ChromaIndex, list[Node]], monkeypatch: pytest.MonkeyPatch, most: int, size: int
) -> None:
    made, wanted = large
    monkeypatch.setattr("callsheet.retrievers.index.rows.database_search._PART", most)
    rows = sorted(np.random.default_rng(3).choice(N, size, replace=False).tolist())
    true = exact(made, wanted, "query 5")[rows]
    found = PartOfIndex(made, rows).scores("query 5")[0]
    assert found.shape == (size,)
    assert np.argsort(-found)[:30].tolist() == np.argsort(-true)[:30].tolist()


def test_products_are_of_all_nodes(large: tuple[ChromaIndex, list[Node]]) -> None:
    made, wanted = large
    queries = np.array([made.embeddings.embed_query("one"), made.embeddings.embed_query("two")], np.float32)
    found = made.products(queries)
    assert found[1] == pytest.approx(exact(made, wanted, "two"), abs=1e-3)


def test_a_search_sees_the_old_catalog_or_the_new(store: str) -> None:
    old, new = nodes("a", 40), [*nodes("a", 30), *nodes("b", 10)]
    first = index(store, Subjects())
    first.sync(old)
    following, other = first.fork(), index(store, Subjects())
    assert isinstance(following, ChromaIndex)
    assert other.sync(new) == Changes(added=10, removed=10)
    assert searches_inside(other)
    assert first.scores("q")[0] == pytest.approx(exact(first, old, "q"), abs=1e-3)
    assert other.scores("q")[0] == pytest.approx(exact(first, new, "q"), abs=1e-3)
    assert following.sync(new) == Changes()
    assert following.scores("q")[0] == pytest.approx(exact(first, new, "q"), abs=1e-3)
    third = index(store, Subjects())
    assert third.sync(old) == Changes(added=10, removed=10)
    for made, wanted in ((first, old), (other, new), (third, old)):
        assert made.scores("q")[0] == pytest.approx(exact(first, wanted, "q"), abs=1e-3)


def test_an_interrupted_update_leaves_the_old_state(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made, old, new = index(store, Subjects()), nodes("a", 40), nodes("b", 40)
    made.sync(old)
    with monkeypatch.context() as patch:
        patch.setattr(database_table.DatabaseTable, "_copy", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            index(store, Subjects()).sync(new)
    assert made.scores("q")[0] == pytest.approx(exact(made, old, "q"), abs=1e-3)
    embedder = Subjects()
    again = index(store, embedder)
    again.sync(new)
    assert embedder.asked == 0
    assert again.scores("q")[0] == pytest.approx(exact(made, new, "q"), abs=1e-3)


def test_rows_that_no_process_needs_are_deleted_after_an_hour(store: str) -> None:
    made = index(store, Subjects())
    made.sync(nodes("a", 30))
    made.sync(nodes("b", 30))
    table = table_of(made)
    with Database(store).connect() as connection:
        connection.execute(f"UPDATE {table} SET gone_at = gone_at - interval '2 hours'".encode())
        made.sync(nodes("c", 30))
        counts = connection.execute(f"SELECT count(*), count(gone_at) FROM {table}".encode()).fetchone()
    assert counts == (60, 30)


def test_without_the_extension_vectors_are_compared_in_memory(
    store: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(database_table, "_NEEDED", (9, 0))
    made = index(store, Subjects())
    with caplog.at_level(logging.WARNING):
        made.sync(nodes("a", 30))
    assert not searches_inside(made)
    assert "is older than 9.0, so the 30 vectors of a catalog are compared in memory" in caplog.text
    assert made.scores("q")[0] == pytest.approx(exact(made, nodes("a", 30), "q"), abs=1e-4)


def test_a_store_that_was_copied_searches_without_embedding(store: str, postgres: str) -> None:
    index(store, Subjects()).sync(nodes("a", 30))
    there = store + "copy"
    assert copy_rows(store, there) == 30
    embedder = Subjects()
    made = index(there, embedder)
    made.sync(nodes("a", 30))
    assert (embedder.asked, searches_inside(made)) == (0, True)
    assert made.scores("q")[0] == pytest.approx(exact(made, nodes("a", 30), "q"), abs=1e-3)
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {there.rpartition('=')[2]} CASCADE".encode())


def test_a_lost_connection_is_opened_again_and_a_lost_database_is_named(
    store: str, postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = index(store, Subjects())
    made.sync(nodes("a", 30))
    before, table = made.scores("q"), table_of(made)
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE %s AND pid <> pg_backend_pid()"
    with psycopg.connect(postgres, autocommit=True) as connection:
        assert connection.execute(end, [f"%{table}%"]).rowcount
        assert np.array_equal(made.scores("q"), before)
        assert connection.execute(end, [f"%{table}%"]).rowcount
    database_of(made)._conninfo = "postgresql://127.0.0.1:1/nowhere"
    with pytest.raises(SettingsError, match="cannot be used"):
        made.scores("q")


def test_many_threads_search_at_once(large: tuple[ChromaIndex, list[Node]]) -> None:
    made, _ = large
    queries = [f"text of a {number}" for number in range(64)]
    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(lambda query: int(made.scores(query)[0].argmax()), queries)) == list(range(64))


def test_other_dimensions_are_named(store: str) -> None:
    index(store, Subjects()).sync(nodes("a", 30))
    with pytest.raises(SettingsError, match=r"has vectors of 24 and 48 dimensions.*needs another name"):
        index(store, Subjects(24)).sync(nodes("a", 31))
    made = index(None, Subjects())
    made.sync(nodes("a", 3))
    made.embeddings = Subjects(24)
    with pytest.raises(SettingsError, match=r"has vectors of 48 dimensions, but subjects made one of 24"):
        made.scores("q")


def test_the_number_of_nodes_in_memory_must_be_a_number(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_IN_MEMORY", "many")
    with pytest.raises(SettingsError, match="CALLSHEET_IN_MEMORY must be a number of nodes, not 'many'"):
        index(store, Subjects()).sync(nodes("a", 2))
