"""``callsheet mcp`` over a home of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands import run


@pytest.fixture
def user_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without anything in it."""
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "CALLSHEET_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mcp(user_home: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """``callsheet mcp`` with these arguments: exit status, standard output, standard error."""
    return lambda *arguments: run(capsys, "mcp", *arguments)


@pytest.fixture
def report(mcp: Callable[..., tuple[int, str, str]]) -> Callable[..., dict[str, Any]]:
    """What ``callsheet mcp ... --yes --json`` reports."""

    def reported(*arguments: object) -> dict[str, Any]:
        status, out, err = mcp(*arguments, "--yes", "--json")
        assert status == 0, err
        return dict(json.loads(out))

    return reported
