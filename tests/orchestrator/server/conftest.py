"""One LangGraph server for all tests that need one as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from langgraph_server import DevServer
from served import running, served


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server works; what its tools do is written there."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[DevServer]:
    """``langgraph dev`` with our ``langgraph.json`` over the agents of ``tests/fixtures/served``."""
    with running(served(folder)) as started:
        yield started
