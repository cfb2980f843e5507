"""Requirement 11: a configuration starts nothing before its exact commands were shown and agreed to."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callsheet import AgentGraphRetriever, create_supervisor
from callsheet.graphs import Agreements, Policy, TrustError, load, starts_of
from callsheet.graphs.sources.loading import servers_in
from callsheet.graphs.trust.consent import check_agreed
from callsheet.graphs.trust.pins import server_identity
from callsheet.orchestrator import CallsheetTools
from commands import run
from fleet import Fleet, definition
from forked import run_forked

SECRET = "not-to-be-shown"
DOORS = [load, AgentGraphRetriever.from_catalog, create_supervisor, CallsheetTools]


@pytest.fixture
def config(fleet: Fleet) -> Path:
    path: Path = fleet.serve("a", definition("work"), entry={"env": {"TOKEN": SECRET, "PYTHONPATH": "/tmp/shown"}})
    return path


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Somebody at a terminal who gives this answer."""

    def answers(word: str) -> None:
        for stream in (sys.stdin, sys.stderr):
            monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
        monkeypatch.setattr("click.termui.visible_prompt_func", lambda *_: word)

    return answers


@pytest.mark.parametrize("door", DOORS, ids=lambda door: getattr(door, "__qualname__", str(door)))
def test_no_door_starts_anything_by_itself(fleet: Fleet, config: Path, door: Any) -> None:
    with pytest.raises(TrustError) as refused:
        door(config)
    assert f"a: {sys.executable} " in str(refused.value)
    assert f"(in {config.parent})" in str(refused.value)
    assert "with PYTHONPATH=/tmp/shown, TOKEN\n" in str(refused.value)
    assert "yes=True" in str(refused.value)
    assert SECRET not in str(refused.value)
    assert fleet.sent("a") == []


def test_the_command_line_refuses_with_one_clear_word(
    fleet: Fleet, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run(capsys, "index", "--catalog", str(config), "--json")
    assert (status, out) == (2, "")
    assert "To allow this, use --yes" in err
    assert SECRET not in err
    assert fleet.sent("a") == []


def test_a_yes_at_the_terminal_is_remembered_for_programs_too(
    fleet: Fleet, config: Path, terminal: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    terminal("n")
    assert run(capsys, "index", "--catalog", str(config))[0] == 2
    assert fleet.sent("a") == []
    terminal("y")
    status, _, err = run(capsys, "index", "--catalog", str(config))
    assert status == 0
    assert f"a: {sys.executable}" in err
    assert set(load(config).catalog.tools) == {"a/work"}
    assert "in future?" not in run(capsys, "index", "--catalog", str(config))[2]


@pytest.mark.parametrize("word", ["1", "true", "YES", "on"])
def test_automation_agrees_by_a_variable(config: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("CALLSHEET_YES", word)
    assert set(load(config).catalog.tools) == {"a/work"}


@pytest.mark.parametrize("word", ["", "0", "no", "off", "please"])
def test_other_words_do_not_agree(config: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    monkeypatch.setenv("CALLSHEET_YES", word)
    with pytest.raises(TrustError):
        load(config)


CHANGED: dict[str, Any] = {
    "command": "/bin/sh",
    "args": ["other.py"],
    "cwd": "/",
    "env": {"TOKEN": SECRET, "PYTHONPATH": "/tmp/other"},
    "callsheet": {"trusted": True},
}


@pytest.mark.parametrize("field", CHANGED)
def test_what_decides_is_agreed_to_anew_when_it_changes(config: Path, field: str) -> None:
    servers = json.loads(config.read_text())
    Agreements().add(starts_of(servers_in(str(config))))
    assert load(config).catalog.tools
    servers["mcpServers"]["a"][field] = CHANGED[field]
    config.write_text(json.dumps(servers))
    with pytest.raises(TrustError, match="would start"):
        load(config)


def test_an_agreement_holds_for_the_folder_of_the_file_from_wherever_it_is_read(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Agreements().add(starts_of(servers_in(str(config))))
    monkeypatch.chdir(tmp_path)
    assert load(config).catalog.tools
    copy = tmp_path / "elsewhere" / "mcp.json"
    copy.parent.mkdir()
    copy.write_text(config.read_text())
    with pytest.raises(TrustError, match="would start"):
        load(copy)


def test_a_person_sees_what_is_hidden_in_a_command(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "x", "args": ["\x1b[2K\rharmless", "\u202egnp"]}}}))
    with pytest.raises(TrustError) as refused:
        load(file)
    assert "\\x1b[2K" in str(refused.value)
    assert "\\u202e" in str(refused.value)
    assert "\x1b" not in str(refused.value)


def test_variables_are_not_sent_to_an_address_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KEY", SECRET)
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"a": {"url": "http://127.0.0.1:9/?k=${KEY}"}}}))
    with pytest.raises(TrustError, match=r"a: http://127.0.0.1:9/\?k=\$\{KEY\}"):
        load(file)


def test_no_shell_reads_a_command(fleet: Fleet, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": sys.executable, "args": ["-c", f"; touch {mark}"]}}}))
    assert load(file, yes=True).problems[0].agent == "a"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": f"touch {mark}"}}}))
    assert "was not found" in str(load(file, yes=True).problems[0])
    assert not mark.exists()


def test_a_policy_bounds_what_automation_may_start(fleet: Fleet, config: Path) -> None:
    with pytest.raises(TrustError, match="the policy does not allow"):
        load(config, yes=True, policy=Policy(default="allow", commands=("uvx *",)))
    Agreements().add(starts_of(servers_in(str(config))))
    with pytest.raises(TrustError, match="the policy does not allow"):
        load(config, policy=Policy(default="allow", commands=()))
    assert fleet.sent("a") == []
    with pytest.raises(TrustError, match="must match the variables that are shown with their values, too"):
        load(config, policy=Policy(default="allow", commands=(f"{sys.executable} *",)))
    matching = Policy(default="allow", commands=(f"PYTHONPATH=/tmp/* {sys.executable} *",))
    assert load(config, policy=matching).catalog.tools


@pytest.mark.parametrize(
    "env",
    [
        {"PATH": "/tmp/other"},
        {"HOME": "/tmp/other"},
        {"LD_AUDIT": "/tmp/other.so"},
        {"UV_EXTRA_INDEX_URL": "http://other.example"},
        {"npm_config_registry": "http://other.example"},
        {"SOMETHING_NEW": "1"},
    ],
)
def test_a_policy_does_not_allow_a_command_with_variables_that_may_decide(tmp_path: Path, env: dict[str, str]) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "uvx", "args": ["mcp-server-time"], "env": env}}}))
    with pytest.raises(TrustError, match="the policy does not allow"):
        load(file, yes=True, policy=Policy(default="allow", commands=("uvx mcp-server-*",)))
    harmless = {"LANG": "de_DE.UTF-8", "TZ": "UTC", "NO_COLOR": "1", "GITHUB_TOKEN": SECRET}
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "uvx", "args": ["mcp-server-x"], "env": harmless}}}))
    check_agreed(servers_in(str(file)), str(file), yes=True, commands=("uvx mcp-server-*",))


AGREED: dict[str, Any] = {"env": {"TOKEN": "${TOKEN}", "LANG": "de", "DATA": "/srv/data"}}


@pytest.mark.parametrize(
    "change",
    [
        {"TOKEN": "${AWS_SECRET_ACCESS_KEY}"},
        {"TOKEN": "${TOKEN}${AWS_SECRET_ACCESS_KEY}"},
        {"LANG": "${AWS_SECRET_ACCESS_KEY}"},
        {"DATA": "/srv/other"},
        {"PYTHONUSERBASE": "/tmp/x"},
        {"LD_AUDIT": "/tmp/x.so"},
        {"JAVA_OPTS": "-javaagent:/tmp/x.jar"},
        {"DOCKER_HOST": "tcp://other.example"},
        {"ANOTHER_TOKEN": "x"},
    ],
)
def test_what_a_variable_reads_or_decides_is_agreed_to_anew(tmp_path: Path, change: dict[str, str]) -> None:
    file = tmp_path / "mcp.json"
    before = {"command": "x", "env": AGREED["env"]}
    file.write_text(json.dumps({"mcpServers": {"a": before}}))
    servers = servers_in(str(file))
    Agreements().add(starts_of(servers))
    assert check_agreed(servers, "mcp.json") == {"a"}
    identity = server_identity(servers["a"])
    file.write_text(json.dumps({"mcpServers": {"a": {**before, "env": {**AGREED["env"], **change}}}}))
    servers = servers_in(str(file))
    with pytest.raises(TrustError, match="would start"):
        check_agreed(servers, "mcp.json")
    assert server_identity(servers["a"]) != identity


@pytest.mark.parametrize(
    "change", [{"LANG": "en"}, {"GITHUB_TOKEN": "other"}, {"LC_ALL": "C"}, {"SERVICE_API_KEY": "b"}]
)
def test_a_harmless_variable_may_have_another_value(tmp_path: Path, change: dict[str, str]) -> None:
    env = {"LANG": "de", "GITHUB_TOKEN": "one", "LC_ALL": "de", "SERVICE_API_KEY": "a"}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "x", "env": env}}}))
    Agreements().add(starts_of(servers_in(str(file))))
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "x", "env": {**env, **change}}}}))
    assert check_agreed(servers_in(str(file)), "mcp.json") == {"a"}


@pytest.mark.parametrize("kind", ["url", "openapi", "a2a"])
def test_which_variable_a_header_sends_is_agreed_to(tmp_path: Path, kind: str) -> None:
    address = "http://127.0.0.1:9/x"
    reached = {"openapi": "spec.json", "url": address} if kind == "openapi" else {kind: address}

    def servers(header: str) -> Any:
        file = tmp_path / "mcp.json"
        entry = {**reached, "headers": {"Authorization": header}}
        file.write_text(json.dumps({"mcpServers": {"a": entry}}))
        return servers_in(str(file))

    Agreements().add(starts_of(servers("Bearer ${TOKEN}")))
    assert check_agreed(servers("Bearer ${TOKEN}"), "mcp.json") == {"a"}
    assert check_agreed(servers("${TOKEN}"), "mcp.json") == {"a"}
    for other in ("Bearer ${AWS_SECRET_ACCESS_KEY}", "${TOKEN} ${HOME}"):
        with pytest.raises(TrustError, match="Authorization from"):
            check_agreed(servers(other), "mcp.json")


def test_what_decides_is_shown_and_secrets_are_not(tmp_path: Path) -> None:
    env = {
        "PYTHONUSERBASE": "/tmp/x",
        "DATABASE_URL": f"postgres://me:{SECRET}@db/x",
        "MY_API_SECRET_VALUE": SECRET,
        "GH": "ghp_x8Kd02mNq7Rt4Vw9Zb3Yc6",
    }
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"a": {"command": "x", "env": env}}}))
    with pytest.raises(TrustError) as refused:
        load(file)
    assert "PYTHONUSERBASE=/tmp/x" in str(refused.value)
    assert "DATABASE_URL=postgres://me:***@db/x" in str(refused.value)
    assert SECRET not in str(refused.value)
    assert "ghp_" not in str(refused.value)
    assert SECRET not in repr(starts_of(servers_in(str(file))))


@pytest.mark.server
def test_the_graphs_of_the_server_do_not_load_without_consent(fleet: Fleet, config: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "CALLSHEET_CATALOG": str(config), "CALLSHEET_HOME": str(tmp_path / "home")}
    done = run_forked(["-c", "import callsheet.orchestrator.app"], env=environment)
    assert done.returncode == 1
    assert "CALLSHEET_YES=1" in done.stderr
    assert fleet.sent("a") == []
