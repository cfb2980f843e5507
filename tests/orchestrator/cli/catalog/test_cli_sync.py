"""``callsheet sync``: what servers changed is told and indexed; ``capabilities`` and ``discover``."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import commands
from callsheet.graphs import load
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


def test_sync_reports_changes_and_indexes_them(sync: Sync) -> None:
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


def test_sync_prints_text_without_json(sync: Sync) -> None:
    _, said, _ = sync("ok")
    assert "+ a/work\n+ steady/work\n" in said
    _, said, _ = sync("exit")
    assert "a: down, it did not start: the server ended with status 3" in said
    assert "2 agents, 2 tools, 1 down: 0 added, 0 updated, 0 removed" in said
    _, said, _ = sync("hints")
    assert "~ a/work" in said
    assert "not used until you review them: a/work, a/write (`callsheet approve --catalog" in said


def test_sync_ends_with_status_1_if_no_server_answers(sync: Sync, config: Path) -> None:
    config.write_text(json.dumps({"mcpServers": {"gone": {"command": "no-such-program"}}}))
    status, report, _ = sync("ok", "--json")
    assert status == 1
    assert report["servers"][0]["since"] is None


TOOLS = [
    {"name": "convert_length", "description": "Converts a length from one unit to another.", "inputSchema": {}},
    {"name": "send_email", "description": "Sends an e-mail.", "inputSchema": {}},
]
OURS = {
    "id": "rowing",
    "name": "rowing",
    "broader": "shell-execution",
    "definition": "Row a boat.",
    "examples": ["row the boat", "pull the oars"],
}


Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(cli: Cli, tmp_path: Path) -> Cli:
    """A command over a catalog of two tools."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "a.json").write_text(json.dumps({"name": "a", "tools": TOOLS}))
    return lambda *words: cli(*words, "--catalog", tmp_path / "manifests")


def test_capabilities_prints_one_json_object_with_tools_and_coverage(run: Cli) -> None:
    status, out, _ = run("capabilities", "--json")
    found = json.loads(out)
    assert status == 0
    assert found["coverage"] == 1.0
    first = {tool["id"]: tool["capabilities"][0] for tool in found["tools"]}
    assert {tool: entry["id"] for tool, entry in first.items()} == {
        "a/convert_length": "information-transformation",
        "a/send_email": "external-api-access",
    }
    assert all(0.5 < entry["confidence"] <= 1 and entry["by"] == "text" for entry in first.values())
    assert next(c for c in found["capabilities"] if c["id"] == "information-access")["tools"] == ["a/send_email"]
    _, said, _ = run("capabilities")
    assert "information-transformation" in said
    assert said.endswith("2 of 2 tools have a capability (100.0%)\n")


def test_capabilities_takes_another_taxonomy_and_writes_to_a_file(run: Cli, tmp_path: Path) -> None:
    (tmp_path / "ours.json").write_text(json.dumps({"capabilities": [OURS]}))
    words = ("--taxonomy", tmp_path / "ours.json", "-o", tmp_path / "out.json")
    status, out, _ = run("capabilities", *words, "--json")
    found = json.loads(out)
    assert status == 0
    assert "rowing" in {capability["id"] for capability in found["capabilities"]}
    assert found["path"] == str(tmp_path / "out.json")
    kept = load(tmp_path / "out.json").catalog
    assert kept.tool("a/convert_length").capabilities == ("information-transformation",)
    assert kept.tool("a/send_email").capabilities == ("external-api-access",)


@pytest.mark.parametrize("command", [("capabilities",), ("discover", "row the boat")])
def test_a_bad_taxonomy_is_one_clear_line(run: Cli, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "ours.json").write_text(json.dumps({"capabilities": [{**OURS, "broader": "shell-executio"}]}))
    status, out, err = run(*command, "--taxonomy", tmp_path / "ours.json")
    assert (status, out, "did you mean 'shell-execution'" in err, err.count("\n")) == (2, "", True, 1)


def test_discover_prints_json_or_text(run: Cli) -> None:
    words = ("discover", "convert 3 miles to km", "--budget", "1")
    status, out, _ = run(*words, "--json")
    found = json.loads(out)
    assert status == 0
    assert [tool["id"] for tool in found["candidates"]] == ["a/convert_length"]
    assert next(iter(found["capabilities"])) == "information-transformation"
    assert found["actions"][0] == "data-processing"
    assert next(iter(found["sources"])) == "a"
    status, said, _ = run(*words)
    assert status == 0
    assert "likely capabilities" in said
    assert "a/convert_length" in said


def test_discover_ends_with_status_1_without_a_result_and_2_without_a_query(run: Cli) -> None:
    status, out, _ = run("discover", "zzz qqq", "--json")
    assert (status, json.loads(out)["verdict"]) == (1, "nothing_fits")
    status, _, err = run("discover", " ")
    assert (status, "the request is empty" in err) == (2, True)
