"""What somebody meets who uses the command line for the first time."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest

from callsheet.agents import chat_model
from callsheet.graphs import SettingsError
from callsheet.orchestrator.cli.output import run_output
from callsheet.orchestrator.cli.output.console import SafeConsole
from commands import run

HIDDEN = "\x1b[2J"


@pytest.mark.parametrize("group", [(), ("documents",)])
def test_every_command_says_in_a_whole_line_what_it_is_for(
    group: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run(capsys, *group, "--help")
    lines = [line for line in out.partition("Commands:\n")[2].splitlines() if line]
    assert len(lines) > 2
    assert [line for line in lines if not line.endswith(".") or line.endswith("...")] == []


@pytest.mark.parametrize("servers", [{}, {"time": {"command": "uvx", "disabled": True}}])
def test_a_catalog_without_anything_says_so(
    servers: object, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    status, _, err = run(capsys, "retrieve", "time", "--catalog", tmp_path / "mcp.json")
    assert status == 1
    assert "mcp.json: it is empty, or everything in it is disabled" in err


def test_texts_of_documents_send_no_orders_to_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "leave.md").write_text(f"Every employee has 25 days{HIDDEN} of paid leave a year.\n")
    (folder / f"broken{HIDDEN}.pdf").write_bytes(b"no PDF")
    status, out, err = run(capsys, "documents", "ask", folder, "How many days of paid leave are there a year?")
    assert status == 0
    assert "25 days" in out
    assert "left out: broken" in err
    assert "\x1b" not in out + err


def test_a_long_call_is_named_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = SafeConsole(force_terminal=True, file=StringIO(), width=80)
    monkeypatch.setattr(run_output, "console", lambda: terminal)
    shown, call = run_output.Show(), {"call_id": "1", "tool": "handbook/search"}
    said = []
    with shown.working():
        for event in ("tool_started", "tool_finished"):
            shown.event({"event": event, **call})
            shown.event({"event": "plan", "steps": []})  # whatever is printed brings the line up to date
            said.append(terminal.file.getvalue())  # type: ignore[attr-defined]
            terminal.file.truncate(0)
    assert ["Working: handbook/search" in text for text in said] == [True, False]
    assert "Working" in said[1]


def test_calls_and_errors_are_shown_once(capsys: pytest.CaptureFixture[str]) -> None:
    calls = [{"tool": "a/x", "args": {}, "seconds": 0.1, "error": "disk is full", "output": ""}]
    first = {"id": "1", "status": "failed", "error": "a/x failed: disk is full", "calls": calls}
    again = {"tool": "b/y", "args": {}, "seconds": 0.1, "error": "", "output": "saved elsewhere"}
    shown = run_output.Show()
    for result in (first, {**first, "status": "done", "error": "", "calls": [*calls, again]}):
        shown.event({"event": "step", "step_id": "1", "result": result})
    out = capsys.readouterr().out
    assert out.count("disk is full") == 1
    assert out.count("saved elsewhere") == 1


def test_a_model_of_ollama_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("callsheet.agents.models.chat_models.find_spec", lambda _: None)
    with pytest.raises((SettingsError, ImportError), match=r"pip install.*langchain-ollama"):
        chat_model("ollama:no-such-model")
