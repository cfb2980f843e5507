"""A fleet of servers that attack, with a home of its own for agreements, pins and indexes."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet import Fleet, empty_fleet
from notebook import Notebook


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """An empty fleet; every reading asks its servers."""
    return empty_fleet(tmp_path, monkeypatch)


@pytest.fixture
def notebook() -> Notebook:
    """An empty one."""
    return Notebook()
