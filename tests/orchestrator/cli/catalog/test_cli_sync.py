"""``callsheet sync``: what servers changed is told and indexed; one that is down keeps its tools."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import commands
from servers import FIXTURES

Sync = Callable[..., tuple[int, Any, str]]


@pytest.fixture
def config(tmp_path: Path, own_home: Path) -> Path:
    args = [str(FIXTURES / "fault_server.py"), f"@{tmp_path / 'mode'}"]
    file = tmp_path / "mcp.json"
    steady = [str(FIXTURES / "fault_server.py"), "ok"]
    servers = {"a": {"command": sys.executable, "args": args}, "steady": {"command": sys.executable, "args": steady}}
    file.write_text(json.dumps({"mcpServers": servers}))
    return file


@pytest.fixture
def sync(config: Path, capfd: pytest.CaptureFixture[str]) -> Sync:
    def run(mode: str, *options: str) -> tuple[int, Any, str]:
        (config.parent / "mode").write_text(mode)
        status, out, err = commands.run(capfd, "sync", "--yes", "--catalog", config, *options)
        return status, json.loads(out) if "--json" in options else out, err

    return run


def test_what_changed_is_told_and_indexed(sync: Sync) -> None:
    status, first, _ = sync("ok", "--json")
    assert status == 0
    assert [server["added"] for server in first["servers"]] == [["work"], ["work"]]
    assert (first["agents"], first["tools"], first["added"]) == (2, 2, 4)
    _, again, _ = sync("ok", "--json")
    assert [server["added"] for server in again["servers"]] == [[], []]
    assert again["added"] == again["removed"] == 0
    _, more, _ = sync("hints", "--json")
    changed = more["servers"][0]
    assert (changed["added"], changed["changed"], changed["removed"]) == (["write"], ["work"], [])
    assert sorted(more["quarantined"]) == ["a/work", "a/write"]
    assert (more["tools"], more["removed"]) == (1, 1)


def test_a_server_that_is_down_keeps_its_tools(sync: Sync) -> None:
    sync("ok")
    status, report, _ = sync("exit", "--json")
    assert status == 0
    down = report["servers"][0]
    assert (down["status"], down["kind"]) == ("down", "start")
    assert "cannot open config" in down["error"]
    assert down["since"].startswith("20")
    assert report["tools"] == 2
    assert report["removed"] == 0


def test_people_read_it_too(sync: Sync) -> None:
    _, said, _ = sync("ok")
    assert "+ a/work\n+ steady/work\n" in said
    _, said, _ = sync("exit")
    assert "a: down, it did not start: the server ended with status 3" in said
    assert "2 agents, 2 tools, 1 down: 0 added, 0 updated, 0 removed" in said
    _, said, _ = sync("hints")
    assert "~ a/work" in said
    assert "not used until you review them: a/work, a/write (callsheet approve)" in said


def test_nothing_that_answers_is_a_negative_answer(sync: Sync, config: Path) -> None:
    config.write_text(json.dumps({"mcpServers": {"gone": {"command": "no-such-program"}}}))
    status, report, _ = sync("ok", "--json")
    assert status == 1
    assert report["servers"][0]["since"] is None
