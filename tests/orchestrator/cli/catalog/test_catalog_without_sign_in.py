"""A catalog whose server nobody has signed in to: each command names the cure, and after the sign-in it is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from callsheet.orchestrator.cli.main import main
from callsheet.orchestrator.run.process import process_state
from signed_in_server import SignedInServer, signed_in_server

WHO = "who is signed in"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SignedInServer]:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALLSHEET_KEY", "k" * 32)
    with signed_in_server() as started:
        config = tmp_path / "mcp.json"
        config.write_text(json.dumps({"mcpServers": {"tickets": {"url": started.url}}}))
        monkeypatch.setenv("CALLSHEET_CATALOG", str(config))
        monkeypatch.setenv("CALLSHEET_YES", "1")
        yield started


def status(*words: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main([*words])
    return ended.value.code


@pytest.mark.parametrize("words", [("index",), ("retrieve", WHO), ("ask", WHO), ("check",)], ids=lambda words: words[0])
def test_each_command_says_once_how_to_sign_in(
    server: SignedInServer, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert status(*words) == 1
    shown = capsys.readouterr()
    lines = [line for line in f"{shown.out}\n{shown.err}".splitlines() if "sign-in http" in line]
    assert len(lines) == 1
    assert f"run `callsheet sign-in {server.url}`" in lines[0]


def test_the_log_of_a_langgraph_server_says_it(server: SignedInServer, caplog: pytest.LogCaptureFixture) -> None:
    process_state._opened.cache_clear()
    try:
        assert not process_state.served().registry.catalog.tools
    finally:
        process_state._opened.cache_clear()
    (line,) = (record.getMessage() for record in caplog.records if record.name == "callsheet")
    assert line == f"left out: tickets: it asks for sign-in: run `callsheet sign-in {server.url}`"
