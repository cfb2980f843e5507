"""Files of the data: on disk, and as items of LangGraph's store in Postgres, behave alike."""

from __future__ import annotations

import itertools
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
from callsheet.graphs.storage import StoredFile, StoreError, file_named, replace_bytes, state_file
from callsheet.orchestrator.run.process import postgres_store
from callsheet.orchestrator.run.process.postgres_store import PostgresFiles


@pytest.fixture(params=["disk", "database"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> StoredFile:
    if request.param == "disk":
        return file_named(tmp_path / "folder" / "a.json")
    return shared(request.getfixturevalue("store"), "folder/a.json")


def shared(address: str, name: str) -> StoredFile:
    """A file of the shared store, over a connection of its own, as another process would have it."""
    return StoredFile(name, PostgresFiles(address))


def terminate(postgres: str, process: int) -> None:
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(%s)", [process])


def test_a_stored_file_can_be_replaced_read_and_removed(file: StoredFile) -> None:
    with pytest.raises(FileNotFoundError):
        file.read()
    with pytest.raises(FileNotFoundError):
        file.modified()
    assert file.version() is None
    file.replace("é\n".encode())
    assert file.text() == "é\n"
    assert abs(file.modified() - time.time()) < 60
    beside = file.sibling("b.json")
    beside.replace(b"2")
    assert (file.read(), beside.read()) == ("é\n".encode(), b"2")
    file.remove()
    file.remove()
    with pytest.raises(FileNotFoundError):
        file.text()


def test_a_lock_lets_one_thread_at_a_time_change_a_stored_file(file: StoredFile) -> None:
    file.replace(b"0")

    def add() -> None:
        with file.locked():
            file.replace(str(int(file.text()) + 1).encode())

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(add) for _ in range(40)]:
            done.result()
    assert file.text() == "40"


def test_processes_exclude_each_other(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two objects have two connections, as two processes have."""
    monkeypatch.setattr(postgres_store, "_LOCK_SECONDS", 0.1)
    mine, theirs = (shared(store, "a") for _ in range(2))
    with mine.locked(), pytest.raises(TrustError, match="another process has held a in "), theirs.locked():
        pytest.fail("both hold it")
    with theirs.locked():
        pass


def test_a_block_that_fails_leaves_no_lock(store: str) -> None:
    file = shared(store, "a")
    with suppress(ZeroDivisionError), file.locked(), file.sibling("b").locked():
        raise ZeroDivisionError
    for name in "ab":
        with shared(store, name).locked():
            pass


def test_files_are_in_the_store_that_the_environment_names(store: str) -> None:
    assert str(state_file("pins/a.json")) == "store:pins/a.json"
    Agreements().add(())
    assert Agreements().known() == frozenset()
    ObservationLog().add({("a/x", "b/y", "id"): 2})
    assert ObservationLog().read() == {("a/x", "b/y", "id"): 2}
    named = file_named(str(ObservationLog().file))
    assert named.read() == ObservationLog().file.read()
    assert ObservationLog().forget("b/*") == 1


def test_only_changes_to_pins_and_listings_change_the_catalog_version(store: str) -> None:
    mine, theirs = PostgresFiles(store), PostgresFiles(store)
    versions = [mine.catalog_version()]
    for name in ("pins/a.json", "pins/a.json", "listings/b.json", "observed.json"):
        theirs.write(name, b"1")
        versions.append(mine.catalog_version())
    theirs.write("pins/a.json", None)
    versions.append(mine.catalog_version())
    PostgresFiles(store.replace("schema=", "schema=other_")).write("pins/a.json", b"4")
    versions.append(mine.catalog_version())
    changed = [after != before for before, after in itertools.pairwise(versions)]
    assert changed == [True, False, True, False, True, False]


def test_a_lost_connection_is_opened_again(store: str, postgres: str) -> None:
    files = PostgresFiles(store)
    files.write("a", b"1")
    terminate(postgres, process_of(files))
    files._used = 0.0  # as after a pause
    with files.locked("a"):
        assert files.read("a") == b"1"


def process_of(files: PostgresFiles) -> int:
    with files._connection() as connection:
        return connection.info.backend_pid


def test_a_writer_that_lost_its_lock_writes_nothing_and_gets_an_error(store: str, postgres: str) -> None:
    files = PostgresFiles(store)
    files.write("a", b"1")

    def change() -> None:
        with files.locked("a"):
            terminate(postgres, process_of(files))
            files._used = 0.0  # a new connection would not have the lock
            with suppress(StoreError):
                files.write("a", b"2")
            files.write("a", b"3")

    with pytest.raises(TrustError, match="store:a cannot be written"):
        change()
    assert files.read("a") == b"1"


def test_a_database_that_does_not_answer_is_an_error_without_its_password() -> None:
    file = shared("postgresql://ann:geheim@127.0.0.1:1/books", "a")
    for _ in range(2):
        with pytest.raises(StoreError, match=r"the store at 127\.0\.0\.1/books, schema callsheet cannot be used") as e:
            file.read()
        assert "geheim" not in str(e.value)
    assert file.version() is None
    with pytest.raises(TrustError, match="cannot be written"), file.locked():
        pass


def test_consents_that_cannot_be_read_raise_and_do_not_count_as_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_STORE", "postgresql://127.0.0.1:1/books")
    with pytest.raises(TrustError, match=r"consents cannot be read: the store at 127\.0\.0\.1/books"):
        Agreements().known()


@pytest.mark.parametrize("address", ["mysql://a/b", "postgresql://a/b?schema=A;drop", "nonsense"])
def test_an_invalid_address_says_what_is_valid(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_STORE", address)
    with pytest.raises(SettingsError, match=r"postgresql://user:password@host/database"):
        state_file("a")


def test_an_error_of_the_store_never_shows_its_password() -> None:
    for address in ("postgresql+psycopg://ann:geheim@h/b", "postgresql://ann:geh%zzeim@h"):
        with pytest.raises(SettingsError) as raised:
            PostgresFiles(address)
        assert "ge" not in str(raised.value).replace("message", "")
    for address in ("postgresql://ann:geheim@h/b?sslpassword=geheim", "postgresql://ann:ge[heim@h/b"):
        assert str(PostgresFiles(address)) == "h/b, schema callsheet"


def test_an_empty_schema_of_its_own_is_enough_for_a_user(store: str, postgres: str) -> None:
    role = store.rpartition("=")[2]
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN".encode())
        connection.execute(f"ALTER SCHEMA {role} OWNER TO {role}".encode())
    try:
        file = shared(store.replace("//postgres:@", f"//{role}@"), "a")
        file.replace(b"1")
        assert file.read() == b"1"
    finally:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(f"REASSIGN OWNED BY {role} TO CURRENT_USER".encode())
            connection.execute(f"DROP ROLE {role}".encode())


def test_waiting_for_a_lock_does_not_block_other_threads(store: str) -> None:
    files, elsewhere = PostgresFiles(store), shared(store, "pins/a.json")
    files.write("pins/b.json", b"1")
    with ThreadPoolExecutor(1) as pool, elsewhere.locked():
        waiting = pool.submit(lambda: files.locked("pins/a.json").__enter__())
        time.sleep(0.2)
        assert files.read("pins/b.json") == b"1"
        assert not waiting.done()


def test_a_forked_process_has_a_connection_of_its_own(store: str) -> None:
    file = shared(store, "a")
    file.replace(b"1")
    if not (child := os.fork()):
        with suppress(BaseException):
            os._exit(0 if file.read() == b"1" else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert file.read() == b"1"


def test_the_last_known_version_is_used_while_the_database_does_not_answer(
    store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "_RECENT", 0.0)
    files = PostgresFiles(store)
    files.write("a", b"1")
    known = files.version("a")
    assert known is not None
    asked: list[str] = []

    def lost(_: object, name: str) -> None:
        asked.append(name)
        raise StoreError(5, "lost")

    monkeypatch.setattr(files, "_get", lost)
    assert [files.version("a") for _ in range(5)] == [known] * 5
    assert asked == ["a"]  # and the others do not wait for it


@pytest.mark.parametrize("name", ["../a.json", "/a.json", "a/b/c.json", ".a", "", "x" * 400, "a\nb"])
def test_a_store_address_with_a_bad_name_or_without_a_store_is_refused(
    store: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SettingsError, match="cannot be the name of a stored file"):
        file_named(f"store:{name}")
    monkeypatch.delenv("CALLSHEET_STORE")
    with pytest.raises(SettingsError, match="set CALLSHEET_STORE"):
        file_named(f"store:{name}")


def test_many_processes_create_the_schema_at_once(store: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        files = [shared(store, f"{n}") for n in range(6)]
        list(pool.map(lambda file: file.replace(b"x"), files))
    assert [file.read() for file in files] == [b"x"] * 6


def test_symbolic_links_and_pipes_are_written_to_and_not_replaced(tmp_path: Path) -> None:
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
