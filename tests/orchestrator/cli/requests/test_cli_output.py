"""What a person reads at the terminal: nothing empty, nothing left out, numbers and their words in the right form."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import click
import pytest

from callsheet.graphs import counted
from callsheet.orchestrator.cli import main as command_line
from callsheet.orchestrator.cli.output import SafeConsole, run_output

HIDDEN = "\x1b[2J"
CATALOG = Path(__file__).parents[4] / "examples" / "eval" / "catalog"


def test_every_row_of_retrieve_has_a_tool_and_the_other_agents_are_named_once(cli: Any) -> None:
    _, out, _ = cli("retrieve", "will it rain tomorrow", "--catalog", str(CATALOG), "--tools", "2")
    header, *rows, last = out.splitlines()
    assert header.split() == ["agent", "score", "tool"]
    assert [row.split()[-1] for row in rows] == ["weather/forecast", "weather/current_weather"]
    assert last.startswith("without a tool among these: calendar (")
    assert [name in last for name in ("mail (", "files (", "weather")] == [True, True, False]


def test_an_empty_catalog_is_no_table(cli: Any, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {}}')
    _, out, _ = cli("retrieve", "will it rain tomorrow", "--catalog", str(config))
    assert out == "Nothing in the catalog fits.\n"


def test_every_tool_that_a_worker_gets_is_named_among_the_picked(capsys: pytest.CaptureFixture[str]) -> None:
    tools = [{"id": f"a/t{n}"} for n in range(4)]
    agents = [{"id": "a", "tools": tools}, *({"id": name, "tools": [{"id": f"{name}/t"}]} for name in "bcd")]
    why = {tool["id"]: "score 1" for agent in agents for tool in agent["tools"]}  # type: ignore[index]
    event = {"event": "picked", "step_id": "1", "attempt": 1, "why": why}
    run_output.Show().event({**event, "selection": {"verdict": "found", "agents": agents}})
    out = capsys.readouterr().out
    assert all(tool in out for tool in why)
    assert out.splitlines()[-1] == "  and a/t2, a/t3, d/t"


def test_one_is_not_many(cli: Any, tmp_path: Path) -> None:
    folder = tmp_path / "one"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps({"name": "a", "tools": [{"name": "t", "inputSchema": {}}]}))
    assert cli("index", "--catalog", str(folder))[1].startswith("1 agent, 1 tool, 0 dependencies, 0 inferred: ")
    assert cli("check", "--catalog", str(folder))[1].splitlines()[-1].startswith("1 agent, 1 tool: ")
    _, _, err = cli("export", "--format", "json", "-o", str(tmp_path / "x.json"), "--catalog", str(folder))
    assert err.startswith("1 agent, 1 tool in ")
    forms = counted(0, "tool"), counted(1, "query", "queries"), counted(2000, "query", "queries")
    assert forms == ("0 tools", "1 query", "2,000 queries")


@pytest.mark.parametrize("how", [KeyboardInterrupt, click.Abort])
def test_an_interrupt_ends_its_line_first(monkeypatch: pytest.MonkeyPatch, cli: Any, how: type[BaseException]) -> None:
    @click.command()
    def hangs() -> None:
        error = how()
        error.add_note("continue with: this")
        raise error

    monkeypatch.setattr(command_line, "callsheet", hangs)
    assert cli()[2] == "\ninterrupted\ncontinue with: this\n"


@pytest.mark.parametrize("group", [(), ("documents",)])
def test_every_command_says_in_a_whole_line_what_it_is_for(
    group: tuple[str, ...], cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = cli(*group, "--help")
    lines = [line for line in out.partition("Commands:\n")[2].splitlines() if line]
    assert len(lines) >= 2
    assert [line for line in lines if not line.endswith(".") or line.endswith("...")] == []


@pytest.mark.parametrize("servers", [{}, {"time": {"command": "uvx", "disabled": True}}])
def test_a_catalog_without_anything_says_so(servers: object, tmp_path: Path, cli: Any) -> None:
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    status, _, err = cli("retrieve", "time", "--catalog", tmp_path / "mcp.json")
    assert status == 1
    assert "mcp.json: it is empty, or everything in it is disabled" in err


def test_texts_of_documents_send_no_orders_to_the_terminal(tmp_path: Path, cli: Any) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "leave.md").write_text(f"Every employee has 25 days{HIDDEN} of paid leave a year.\n")
    (folder / f"broken{HIDDEN}.pdf").write_bytes(b"no PDF")
    status, out, err = cli("documents", "ask", folder, "How many days of paid leave are there a year?")
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
