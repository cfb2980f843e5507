"""``--policy`` and ``--pins`` on the command line."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from callsheet.orchestrator.cli.shared_options import common, kept_options, run_options

SERVER = Path(__file__).parents[3] / "fixtures" / "changing_server.py"


@pytest.fixture
def catalog(tmp_path: Path, own_home: Path) -> Path:
    folder = tmp_path / "manifests"
    folder.mkdir()
    for agent in ("files", "shell"):
        tool = {"name": f"use_{agent}", "description": f"Uses the {agent}.", "inputSchema": {"type": "object"}}
        (folder / f"{agent}.json").write_text(json.dumps({"name": agent, "tools": [tool]}))
    return folder


def policy_file(tmp_path: Path, **policy: Any) -> str:
    file = tmp_path / "policy.json"
    file.write_text(json.dumps(policy))
    return str(file)


def test_a_policy_hides_what_it_does_not_allow(catalog: Path, tmp_path: Path, cli: Any) -> None:
    policy = policy_file(tmp_path, default="allow", deny=["shell"])
    words = ("retrieve", "use the shell", "--catalog", str(catalog), "--json", "--explain")
    assert "shell/use_shell" in cli(*words)[1]
    _, out, _ = cli(*words, "--policy", policy)
    assert "shell/use_shell" not in out
    assert json.loads(out)["trace"]["policy"] == "the policy allows 1 of 2 tools"
    words = ("retrieve", "use files", "--catalog", str(catalog), "--explain", "--policy", policy)
    assert "the policy allows 1 of 2 tools" in cli(*words)[1]


def test_a_policy_that_cannot_be_read_ends_with_2_and_one_line(catalog: Path, tmp_path: Path, cli: Any) -> None:
    policy = policy_file(tmp_path, default="deny", alow=["files"])
    status, out, err = cli("retrieve", "use files", "--catalog", str(catalog), "--policy", policy)
    assert (status, out) == (2, "")
    assert "policy.json: Policy: alow" in err
    assert err.count("\n") == 1


def test_check_finds_rules_without_effect(catalog: Path, tmp_path: Path, cli: Any) -> None:
    policy = policy_file(tmp_path, default="allow", deny=["shel/*"])
    _, out, _ = cli("check", "--catalog", str(catalog), "--policy", policy, "--json")
    found = [finding for finding in json.loads(out)["findings"] if finding["rule"] == "policy-rule-without-effect"]
    assert "'shel/*'" in found[0]["message"]


@pytest.mark.server
def test_rules_for_resources_and_prompts_have_an_effect(catalog: Path, tmp_path: Path, cli: Any) -> None:
    server = {"command": sys.executable, "args": [str(SERVER.with_name("working_server.py")), str(tmp_path / "log")]}
    (config := tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"works": server}}))
    policy = policy_file(tmp_path, default="allow", deny=["works/resource:*", "works/prompt:report", "works/prompt:x"])
    _, out, _ = cli("check", "--catalog", str(config), "--yes", "--policy", policy, "--json")
    found = [finding for finding in json.loads(out)["findings"] if finding["rule"] == "policy-rule-without-effect"]
    assert ["'works/prompt:x'" in finding["message"] for finding in found] == [True]


def test_check_finds_what_servers_changed_once(catalog: Path, tmp_path: Path, cli: Any) -> None:
    script, pins = tmp_path / "a.json", tmp_path / "team" / "pins.json"
    script.write_text(json.dumps({"tools": [{"name": "work", "description": "Works."}]}))
    server = {"command": sys.executable, "args": [str(SERVER), str(script), str(tmp_path / "log")]}
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"a": server}}))
    words = ("--catalog", str(config), "--yes", "--pins", str(pins))
    assert cli("index", *words)[0] == 0
    assert pins.exists()
    script.write_text(json.dumps({"tools": [{"name": "work", "description": "Works more."}]}))
    assert "1 of the servers were not asked again" in cli("check", *words)[2]
    assert cli("sync", *words)[0] == 0
    status, out, _ = cli("check", *words, "--json")
    assert status == 1
    rules = [finding["rule"] for finding in json.loads(out)["findings"] if finding["severity"] == "error"]
    assert rules == ["pin-changed"]


def test_a_command_that_goes_on_keeps_what_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    @click.argument("query", required=False)
    @run_options
    @common
    def command(**_: Any) -> None:
        click.echo(" ".join(kept_options("as_json")))

    monkeypatch.setenv("CALLSHEET_APPROVAL", "always")
    given = "--model a:b --catalog a --catalog b --policy policy.json --pins pins.json --yes"
    assert CliRunner().invoke(command, ["do it", *given.split(), "--json"]).output == f"{given}\n"
    assert CliRunner().invoke(command, []).output == "\n"
    secret = CliRunner().invoke(command, ["--index", "postgresql://ann:hunter2@host/base", "--approve", "never"])
    assert secret.output == "--approve never --index postgresql://ann:***@host/base\n"
