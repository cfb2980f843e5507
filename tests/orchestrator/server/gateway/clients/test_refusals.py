"""Files that cannot be edited: an error that names file and place, and nothing written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callsheet.orchestrator.server.gateway.clients import change, config_document
from client_configs import configured, servers

Mcp = Callable[..., tuple[int, str, str]]
Report = Callable[..., dict[str, Any]]
JSON = "config.json"
TOML = "config.toml"


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (JSON, b'{\n  "mcpServers": {,}\n}', "line 2 column 18"),
        (JSON, b'{"mcpServers": {}', "not valid JSON"),
        (JSON, b'{"a": /* never closed', "not valid JSON"),
        (JSON, b'{"mcpServers": []}', "'mcpServers' must hold servers by name"),
        (JSON, b'{"mcpServers": {"a": {"command": "x"}, "a": {}}}', "'a' occurs twice"),
        (JSON, b'{"mcpServers": {}, "mcpServers": {}}', "'mcpServers' occurs twice"),
        (JSON, b"[]", "must hold a JSON object"),
        (JSON, b'{"a": "\xff"}', "not UTF-8 text: invalid start byte at byte 7"),
        (JSON, b'{"a": ' + b"[" * 100_000, "nested too deeply"),
        (JSON, b'{"mcpServers": {"callsheet": {"command": "other"}}}', "has an entry 'callsheet' already"),
        (TOML, b"[mcp_servers.a\n", "not valid TOML"),
        (TOML, b"mcp_servers = 3\n", "'mcp_servers' must hold servers by name"),
        (TOML, b"[[mcp_servers]]\n", "'mcp_servers' must hold servers by name"),
        (
            TOML,
            b'mcp_servers = {a = {command = "x"}, b = {command = "y"}}\n',
            "write each server as an entry of its own",
        ),
    ],
)
def test_a_file_that_cannot_be_edited_stays(name: str, content: bytes, said: str, mcp: Mcp, user_home: Path) -> None:
    file = user_home / name
    file.write_bytes(content)
    status, _, err = mcp("install", "--client", "codex" if name == TOML else "cursor", "--file", file, "--yes")
    assert status == 2
    assert str(file) in err
    assert said in err
    assert file.read_bytes() == content
    assert not (user_home / ".local" / "share" / "callsheet" / "clients").exists()


@pytest.mark.parametrize(
    "entry",
    [
        3,
        {"command": 3},
        {"command": "x", "url": "https://x.example"},
        {},
        {"command": "x", "args": ["${CLAUDE"]},
        {"command": "/opt/callsheet", "args": ["mcp"]},
        {"type": "ws", "url": "wss://x.example"},
        {"command": "x", "env": {"A": None}},
        {"command": "x", "args": ["\ud800"]},
    ],
)
def test_an_odd_server_stays_where_it_is(entry: object, report: Report, user_home: Path) -> None:
    file = user_home / JSON
    file.write_text(json.dumps({"mcpServers": {"odd": entry, "time": {"command": "uvx"}}}))
    done = report("install", "--client", "claude-code", "--file", file)
    assert done["moved"] == ["time"]
    assert done["stays"]["odd"]
    assert servers(file)["odd"] == entry


@pytest.mark.parametrize(
    "form",
    [
        'mcp_servers.time.command = "uvx"\nmcp_servers.time.args = ["x"]\n\n[tui]\ntheme = "dark"\n',
        '[mcp_servers]\ntime = { command = "uvx", args = ["x"] } # in a line\n# end\n',
        'mcp_servers = { time = { command = "uvx", args = ["x"] } }\n',
        '[mcp_servers."time"]\r\ncommand = "uvx"\r\nargs = [\r\n"x"]\r\n',
    ],
)
def test_every_form_of_a_table_can_be_moved_and_put_back(form: str, report: Report, user_home: Path) -> None:
    file = user_home / TOML
    file.write_bytes(form.encode())
    was = servers(file)
    assert report("install", "--client", "codex", "--file", file)["moved"] == ["time"]
    assert list(servers(file)) == ["callsheet"]
    file.write_bytes(file.read_bytes() + b"\n[changed]\n")
    report("uninstall", "--client", "codex", "--file", file)
    assert servers(file) == was


def test_a_huge_file_is_not_read(mcp: Mcp, user_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change, "LARGEST", 1_000)
    file = user_home / JSON
    file.write_text("{}" + " " * 1_000)
    status, _, err = mcp("install", "--client", "cursor", "--file", file, "--yes")
    assert status == 2
    assert f"{file}: 1,002 bytes; at most 1,000 are read" in err
    assert config_document.LARGEST > 1_000_000


def test_what_is_no_file_is_refused(mcp: Mcp, user_home: Path) -> None:
    os.mkfifo(user_home / "pipe")
    (user_home / "circle").symlink_to("circle")
    for name, said in (("pipe", "not a file"), ("circle", "its symbolic links lead nowhere")):
        status, _, err = mcp("install", "--client", "cursor", "--file", user_home / name, "--yes")
        assert status == 2
        assert said in err


def test_a_file_that_is_not_writable_is_named(mcp: Mcp, user_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = configured("cursor")
    before = file.read_bytes()
    monkeypatch.setattr(change.os, "access", lambda path, _: path != file)
    status, _, err = mcp("install", "--client", "cursor", "--yes")
    assert status == 2
    assert f"{file}: not writable: nothing was written" in err
    assert file.read_bytes() == before


def test_the_clients_own_file_is_no_catalog(mcp: Mcp, user_home: Path) -> None:
    file = configured("cursor")
    status, _, err = mcp("install", "--client", "cursor", "--catalog", file, "--yes")
    assert status == 2
    assert "is the client's own configuration" in err


def test_nothing_to_undo_says_so(mcp: Mcp, user_home: Path) -> None:
    file = configured("cursor")
    status, _, err = mcp("uninstall", "--client", "cursor", "--yes")
    assert (status, err) == (1, f"nothing to undo: Callsheet was not installed in {file}\n")


def test_an_option_before_the_subcommand_is_not_ignored(mcp: Mcp) -> None:
    for option in (("--catalog", "mcp.json"), ("--pins", "x"), ("--yes",)):
        status, _, err = mcp(*option, "install", "--client", "cursor")
        assert status == 2
        assert f"{option[0]} is before 'install'" in err
