"""A fleet of servers that attack, with a home of its own for agreements, pins and indexes."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet import Fleet
from notebook import Notebook


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    """An empty fleet; every reading asks its servers."""
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    for name in ("CALLSHEET_YES", "CALLSHEET_PINS", "CALLSHEET_POLICY", "CALLSHEET_CATALOG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CALLSHEET_LIMIT_FRESH", "0")
    folder = tmp_path / "fleet"
    folder.mkdir()
    return Fleet(folder)


@pytest.fixture
def notebook() -> Notebook:
    """An empty one."""
    return Notebook()
