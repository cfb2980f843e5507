"""A server that asks for sign-in, with tokens kept in a folder of the test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from callsheet.agents import SessionPool
from signed_in_server import SignedInServer, signed_in_server


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SignedInServer]:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALLSHEET_KEY", "k" * 32)
    monkeypatch.setattr("callsheet.agents.calls.run_claim._PASSING_ON", 0.1)
    with signed_in_server() as started:
        yield started


@pytest.fixture
def pool() -> Iterator[SessionPool]:
    made = SessionPool()
    yield made
    made.close()
