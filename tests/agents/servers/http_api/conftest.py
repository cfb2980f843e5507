from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from api_server import ShopApi, shop


@pytest.fixture
def served() -> Iterator[ShopApi]:
    with shop() as running:
        yield running


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
