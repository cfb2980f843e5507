"""Files of the data: on disk, and as rows of a Postgres database, behave alike."""

from __future__ import annotations

import os
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
    listen,
    replace_bytes,
    state_file,
    stored_file,
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

    mine, place = Database(store), Database(store)
    stop = listen(mine, changed)
    deadline = time.monotonic() + 20
    while not heard and time.monotonic() < deadline:  # until it listens: any file may have changed before
        time.sleep(0.01)
    DatabaseFile(mine, "own").replace(b"0")
    for content in (b"1", b"1", b"2"):
        DatabaseFile(place, "a").replace(content)
    DatabaseFile(Database(store.replace("schema=", "schema=other_")), "a").replace(b"3")
    DatabaseFile(place, "last").replace(b"")
    assert told.wait(20)
    stop.set()
    assert heard == ["", "a", "a", "last"]


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


def test_a_password_is_in_no_message() -> None:
    for address in (
        "postgresql+psycopg://ann:geheim@h/b",
        "postgresql://ann:geh%zzeim@h",
    ):
        with pytest.raises(SettingsError) as raised:
            Database(address)
        assert "ge" not in str(raised.value).replace("message", "")
    for address in ("postgresql://ann:geheim@h/b?sslpassword=geheim", "postgresql://ann:ge[heim@h/b"):
        assert str(Database(address)) == "h/b, schema callsheet"


def test_options_reach_the_database(store: str) -> None:
    with Database(f"{store}&options=-c%20application_name%3Da%2Bb").transaction() as connection:
        assert connection.execute("SHOW application_name").fetchone() == ("a+b",)


def test_an_empty_schema_of_its_own_is_enough_for_a_user(store: str, postgres: str) -> None:
    role = store.rpartition("=")[2]
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        connection.execute(f"ALTER SCHEMA {role} OWNER TO {role}".encode())
    try:
        file = DatabaseFile(Database(store.replace("//postgres:@", f"//{role}@")), "a")
        file.replace(b"1")
        assert file.read() == b"1"
    finally:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"REASSIGN OWNED BY {role} TO CURRENT_USER".encode())
            connection.execute(f"DROP ROLE {role}".encode())


def test_a_thread_that_waits_for_a_lock_keeps_no_other_waiting(store: str) -> None:
    place, elsewhere = Database(store), DatabaseFile(Database(store), "pins/a.json")
    other = DatabaseFile(place, "pins/b.json")
    other.replace(b"1")
    with ThreadPoolExecutor(1) as pool, elsewhere.locked():
        waiting = pool.submit(lambda: place.locked("pins/a.json").__enter__())
        time.sleep(0.2)
        assert other.read() == b"1"
        assert not waiting.done()


def test_a_forked_process_has_a_connection_of_its_own(store: str) -> None:
    file = DatabaseFile(Database(store), "a")
    file.replace(b"1")
    if not (child := os.fork()):
        with suppress(BaseException):
            os._exit(0 if file.read() == b"1" else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert file.read() == b"1"


def test_what_was_known_holds_while_the_database_does_not_answer(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = DatabaseFile(Database(store), "a")
    file.replace(b"1")
    known = file.version()
    assert known is not None

    def lost(_: str) -> None:
        raise DatabaseError(5, "lost")

    monkeypatch.setattr(file, "_value", lost)
    monkeypatch.setattr(stored_file, "_RECENT", 0.0)
    assert [file.version() for _ in range(5)] == [known] * 5


@pytest.mark.parametrize("name", ["../a.json", "/a.json", "a/b/c.json", ".a", "", "x" * 400, "a\nb"])
def test_a_name_that_is_no_file_name(store: str, name: str) -> None:
    with pytest.raises(SettingsError, match="cannot be the name of a stored file"):
        file_named(f"store:{name}")


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


def test_links_and_pipes_are_written_to_not_replaced(tmp_path: Path) -> None:
    real, link, pipe = tmp_path / "real", tmp_path / "link", tmp_path / "pipe"
    real.write_text("old")
    link.symlink_to(real)
    replace_bytes(link, b"new")
    assert (link.is_symlink(), real.read_text()) == (True, "new")
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: received.append(pipe.read_bytes()))
    received: list[bytes] = []
    reader.start()
    replace_bytes(pipe, b"new")
    reader.join(10)
    assert received == [b"new"]
    assert pipe.is_fifo()
