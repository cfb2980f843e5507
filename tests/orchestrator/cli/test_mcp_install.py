"""``callsheet mcp install``: the client's own command is run, or its entry printed."""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commands import run

Install = Callable[..., tuple[int, str, str]]
PROGRAMS = {"claude-code": "claude", "codex": "codex", "gemini": "gemini", "vscode": "code"}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a catalog that starts a command, and no client on the path."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CALLSHEET_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b.json").write_text('{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}')
    return tmp_path


@pytest.fixture
def install(home: Path, capsys: pytest.CaptureFixture[str]) -> Install:
    return lambda client, *more: run(capsys, "mcp", "install", "--client", client, "--catalog", "a b.json", *more)


def program(home: Path, name: str, status: int = 0) -> None:
    """A client's program, which writes its arguments to a file."""
    file = home / name
    write = f"json.dump(sys.argv[1:], open({str(home / 'ran')!r}, 'w'))"
    code = f"import json, sys\n{write}\nprint('no room', file=sys.stderr)\nsys.exit({status})\n"
    file.write_text(f"#!{sys.executable}\n{code}")
    file.chmod(0o755)


def entry(home: Path, **more: Any) -> dict[str, Any]:
    beside = Path(sys.executable).with_name("callsheet")
    args = ["mcp", f"--catalog={home / 'a b.json'}", "--yes"]
    return {"command": str(beside) if beside.exists() else "callsheet", "args": args, **more}


@pytest.mark.parametrize("data", [None, "data"])
@pytest.mark.parametrize("client", PROGRAMS)
def test_the_clients_own_command_is_run(
    client: str, data: str | None, install: Install, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if data:
        monkeypatch.setenv("CALLSHEET_HOME", data)
    own = entry(home, **({"env": {"CALLSHEET_HOME": str(home / data)}} if data else {}))
    env = ["--env", f"CALLSHEET_HOME={home / data}"] if data else []
    program(home, PROGRAMS[client])
    status, out, _ = install(client, "--yes", "--json")
    assert status == 0
    words = {
        "claude-code": ["mcp", "add", "callsheet", "--scope", "user", *env, "--", own["command"], *own["args"]],
        "codex": ["mcp", "add", "callsheet", *env, "--", own["command"], *own["args"]],
        "gemini": ["mcp", "add", "--scope", "user", *env, "callsheet", own["command"], "--", *own["args"]],
        "vscode": ["--add-mcp", json.dumps({"name": "callsheet", **own})],
    }[client]
    assert json.loads((home / "ran").read_text()) == words
    report = json.loads(out)
    assert (report["command"], report["entry"], report["done"]) == ([PROGRAMS[client], *words], own, True)


@pytest.mark.parametrize("client", [*PROGRAMS, "cursor"])
def test_the_entry_is_printed_where_the_client_has_no_command(client: str, install: Install, home: Path) -> None:
    status, out, err = install(client)
    printed = tomllib.loads(out) if client == "codex" else json.loads(out)
    key = {"codex": "mcp_servers", "vscode": "servers"}.get(client, "mcpServers")
    assert (status, printed) == (0, {key: {"callsheet": entry(home)}})
    assert "put this into " in err
    assert "Callsheet will start:\n  time: uvx mcp-server-time" in err


def test_without_commands_in_the_catalog_the_entry_agrees_to_none(home: Path, install: Install) -> None:
    (home / "a b.json").write_text('{"name": "weather", "tools": []}')
    assert "--yes" not in json.loads(install("cursor")[1])["mcpServers"]["callsheet"]["args"]


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 130)])
def test_the_client_is_changed_only_if_a_person_agrees(
    answer: str, status: int, install: Install, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(home, "claude")
    monkeypatch.setattr("callsheet.orchestrator.cli.mcp.has_terminal", lambda: True)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: answer)
    assert install("claude-code")[0] == status
    assert (home / "ran").exists() is (answer == "y")


def test_no_command_of_a_client_runs_without_consent(install: Install, home: Path) -> None:
    program(home, "claude")
    status, out, _ = install("claude-code", "--dry-run")
    assert (status, out.startswith("claude mcp add callsheet --scope user -- ")) == (0, True)
    status, _, err = install("claude-code")
    assert (status, "--yes runs" in err) == (2, True)
    assert not (home / "ran").exists()


def test_what_is_wrong_is_said(install: Install, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program(home, "codex", status=3)
    status, _, err = install("codex", "--yes")
    assert (status, "ended with status 3: no room" in err) == (2, True)
    status, _, err = run(capsys, "mcp", "install", "--client", "cursor", "--catalog", "gone.json")
    assert (status, "no catalog at gone.json" in err) == (2, True)
