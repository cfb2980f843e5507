"""The command line, run in this process, with a home of its own."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from commands import Cli, run


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of this test, without a catalog, a model or a policy."""
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    for name in ("CATALOG", "INDEX", "MODEL", "POLICY"):
        monkeypatch.delenv(f"CALLSHEET_{name}", raising=False)
    return tmp_path / "home"


@pytest.fixture
def cli(own_home: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    """``callsheet`` with these arguments: exit status, standard output, standard error."""
    return partial(run, capsys)
