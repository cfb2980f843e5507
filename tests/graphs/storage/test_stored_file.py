"""Files of the data: on disk, and as rows of a Postgres database, behave alike."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from callsheet.graphs import Agreements, SettingsError, TrustError
from callsheet.graphs.dependencies import ObservationLog
from callsheet.graphs.storage import (
    Database,
    DatabaseError,
    DatabaseFile,
    LocalFile,
    StoredFile,
    database,
    file_named,
    state_file,
)


@pytest.fixture(params=["disk", "database"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> StoredFile:
    if request.param == "disk":
        return LocalFile(tmp_path / "folder" / "a.json")
    return DatabaseFile(Database(request.getfixturevalue("store")), "folder/a.json")


def test_what_is_replaced_is_read(file: StoredFile) -> None:
    with pytest.raises(FileNotFoundError):
        file.read()
    with pytest.raises(FileNotFoundError):
        file.modified()
    assert file.version() is None
    file.replace("é\0".encode())
    assert file.text() == "é\0"
    assert abs(file.modified() - time.time()) < 60
    beside = file.sibling("b.json")
    beside.replace(b"2")
    assert (file.read(), beside.read()) == ("é\0".encode(), b"2")
    file.remove()
    file.remove()
    with pytest.raises(FileNotFoundError):
        file.text()


def test_one_at_a_time_reads_and_replaces_it(file: StoredFile) -> None:
    file.replace(b"0")

    def add() -> None:
        with file.locked():
            file.replace(str(int(file.text()) + 1).encode())

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(add) for _ in range(40)]:
            done.result()
    assert file.text() == "40"


def test_processes_exclude_each_other(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two ``Database`` objects have two connections, as two processes have."""
    monkeypatch.setattr(database, "_LOCK_SECONDS", 1)
    mine, theirs = (DatabaseFile(Database(store), "a") for _ in range(2))
    with mine.locked():
        mine.replace(b"mine")
        with pytest.raises(FileNotFoundError):  # not before the block ends
            theirs.read()
        with pytest.raises(TrustError, match="another process has held a in "), theirs.locked():
            pytest.fail("both hold it")
    assert theirs.read() == b"mine"


def test_a_block_that_fails_changes_nothing(store: str) -> None:
    file = DatabaseFile(Database(store), "a")
    file.replace(b"before")
    with suppress(ZeroDivisionError), file.locked():
        file.replace(b"after")
        raise ZeroDivisionError
    assert file.read() == b"before"


def test_files_are_in_the_store_that_the_environment_names(store: str) -> None:
    assert isinstance(state_file("pins/a.json"), DatabaseFile)
    Agreements().add(())
    assert Agreements().known() == frozenset()
    ObservationLog().add({("a/x", "b/y", "id"): 2})
    assert ObservationLog().read() == {("a/x", "b/y", "id"): 2}
    named = file_named(str(ObservationLog().file))
    assert named.read() == ObservationLog().file.read()
    assert ObservationLog().forget("b/*") == 1


def test_a_change_is_announced_and_the_same_content_is_not(store: str) -> None:
    heard: list[str] = []
    told = threading.Event()

    def changed(name: str) -> None:
        heard.append(name)
        if name == "last":
            told.set()

    place = Database(store)
    stop = place.listen(changed)
    deadline = time.monotonic() + 20
    while not heard and time.monotonic() < deadline:  # until it listens
        DatabaseFile(place, "first").replace(str(time.monotonic()).encode())
        time.sleep(0.05)
    for content in (b"1", b"1", b"2"):
        DatabaseFile(place, "a").replace(content)
    DatabaseFile(Database(store.replace("schema=", "schema=other_")), "a").replace(b"3")
    DatabaseFile(place, "last").replace(b"")
    assert told.wait(20)
    stop.set()
    assert [name for name in heard if name != "first"] == ["a", "a", "last"]


def test_a_lost_connection_is_opened_again(store: str, postgres: str) -> None:
    file = DatabaseFile(place := Database(store), "a")
    file.replace(b"1")
    with place.transaction() as connection:
        pid = connection.info.backend_pid
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [pid])
    place._used = 0.0  # as after a pause
    assert file.read() == b"1"


def test_a_database_that_does_not_answer_is_an_error_without_its_password() -> None:
    place = Database("postgresql://ann:geheim@127.0.0.1:1/books")
    file = DatabaseFile(place, "a")
    for _ in range(2):
        with pytest.raises(
            DatabaseError, match=r"the store at 127\.0\.0\.1/books, schema callsheet cannot be used"
        ) as e:
            file.read()
        assert "geheim" not in str(e.value)
    assert file.version() is None
    with pytest.raises(TrustError, match="cannot be written"), file.locked():
        pass


def test_consents_that_cannot_be_read_are_not_taken_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_STORE", "postgresql://127.0.0.1:1/books")
    with pytest.raises(TrustError, match=r"consents cannot be read: the store at 127\.0\.0\.1/books"):
        Agreements().known()


@pytest.mark.parametrize("address", ["mysql://a/b", "postgresql://a/b?schema=A;drop", "nonsense"])
def test_an_invalid_address_says_what_is_valid(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_STORE", address)
    with pytest.raises(SettingsError, match=r"postgresql://user:password@host/database"):
        state_file("a")


def test_a_name_in_the_store_without_a_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CALLSHEET_STORE", raising=False)
    with pytest.raises(SettingsError, match="set CALLSHEET_STORE"):
        file_named("store:pins/a.json")


def test_a_schema_of_a_newer_version_is_refused(store: str) -> None:
    with Database(store).transaction() as connection:
        connection.execute("UPDATE migrations SET version = 99")
    with pytest.raises(DatabaseError, match="newer version"):
        DatabaseFile(Database(store), "a").read()


def test_many_processes_create_the_schema_at_once(store: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        files = [DatabaseFile(Database(store), f"{n}") for n in range(6)]
        list(pool.map(lambda file: file.replace(b"x"), files))
    assert [file.read() for file in files] == [b"x"] * 6
