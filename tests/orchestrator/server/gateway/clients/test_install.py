"""``callsheet mcp install`` and ``uninstall`` over the configurations of four clients."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callsheet.graphs.catalog.loading import starts_in
from callsheet.graphs.trust.consent import Agreements
from callsheet.orchestrator.cli.requests.mcp import mcp as group
from client_configs import CLIENTS, SECRET, comments, configured, parsed, servers

Mcp = Callable[..., tuple[int, str, str]]
Report = Callable[..., dict[str, Any]]
MOVED = {
    "claude-code": ["github", "time"],
    "cursor": ["github", "time"],
    "vscode": ["time"],
    "codex": ["github", "time"],
}
STAYS = {
    "claude-code": {"rotating": "'headersHelper'"},
    "cursor": {"files": "${workspaceFolder}"},
    "vscode": {"github": "${input:token}", "boxed": "'sandboxEnabled'"},
    "codex": {"database": "'disabled_tools'"},
}


@pytest.mark.parametrize("client", CLIENTS)
def test_servers_move_behind_callsheet_and_come_back_byte_for_byte(
    client: str, report: Report, user_home: Path
) -> None:
    file = configured(client)
    before, was = file.read_bytes(), parsed(file)
    file.chmod(0o664)
    done = report("install", "--client", client)
    catalog = Path(done["catalog"])
    assert done["moved"] == MOVED[client] == list(servers(catalog))
    assert done["stays"].keys() == STAYS[client].keys()
    assert all(word in done["stays"][name] for name, word in STAYS[client].items())
    assert servers(file).keys() == {"callsheet", *STAYS[client]}
    own = servers(file)["callsheet"]
    assert own["args"] == ["mcp", "--catalog", str(catalog), "--yes"]
    assert Path(own["command"]).stem == "callsheet"
    assert set(comments(before.decode())) <= set(comments(file.read_text()))
    rest = {key: value for key, value in parsed(file).items() if "ervers" not in key}
    assert rest == {key: value for key, value in was.items() if "ervers" not in key}
    assert stat.S_IMODE(file.stat().st_mode) == 0o664
    assert {stat.S_IMODE(one.stat().st_mode) for one in catalog.parent.iterdir()} == {0o600}
    report("uninstall", "--client", client)
    assert file.read_bytes() == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o664
    assert not catalog.parent.exists()


@pytest.mark.parametrize("client", ["claude-code", "cursor", "vscode"])
def test_entries_are_unchanged_in_the_catalog(client: str, report: Report, user_home: Path) -> None:
    was = servers(configured(client))
    catalog = Path(report("install", "--client", client)["catalog"])
    assert servers(catalog) == {name: was[name] for name in MOVED[client]}


def test_entries_of_codex_are_those_of_an_mcp_json(report: Report, user_home: Path) -> None:
    file = configured("codex")
    moved = servers(Path(report("install", "--client", "codex")["catalog"]))
    assert moved["github"] == {
        "url": "https://api.githubcopilot.com/mcp/",
        "headers": {"X-MCP-Readonly": SECRET, "Authorization": "Bearer ${GITHUB_TOKEN}"},
    }
    assert moved["time"]["env"] == {"TZ": "${TZ:-}", "LOCAL_TIMEZONE": SECRET}
    assert servers(file)["callsheet"]["env_vars"] == ["GITHUB_TOKEN", "TZ"]


@pytest.mark.parametrize("client", CLIENTS)
def test_what_was_changed_since_stays(client: str, mcp: Mcp, report: Report, user_home: Path) -> None:
    file = configured(client)
    was = servers(file)
    report("install", "--client", client)
    if client == "codex":
        file.write_text(f'{file.read_text()}\n# new\n[mcp_servers.added]\nurl = "https://added.example"\n')
    else:
        file.write_text(
            file.read_text().replace('"callsheet": {', '"added": {"url": "https://added.example"},\n"callsheet": {')
        )
    status, _, err = mcp("uninstall", "--client", client, "--yes")
    assert status == 0
    assert "was changed since: the other changes stay" in err
    assert servers(file) == {**was, "added": {"url": "https://added.example"}}


@pytest.mark.parametrize("client", CLIENTS)
def test_installing_again_changes_nothing(client: str, mcp: Mcp, report: Report, user_home: Path) -> None:
    file = configured(client)
    before = file.read_bytes()
    report("install", "--client", client)
    after = file.read_bytes()
    status, out, _ = mcp("install", "--client", client)  # nobody needs to be asked
    assert (status, out) == (0, "nothing to change\n")
    assert file.read_bytes() == after
    report("uninstall", "--client", client)
    assert file.read_bytes() == before


def test_a_server_that_was_added_since_moves_when_installing_again(report: Report, user_home: Path) -> None:
    file = configured("claude-code")
    was = servers(file)
    report("install", "--client", "claude-code")
    content = json.loads(file.read_text())
    content["numStartups"] += 1
    content["mcpServers"]["new"] = {"command": "npx", "args": ["new"]}
    file.write_text(json.dumps(content, indent=2))
    done = report("install", "--client", "claude-code")
    assert done["moved"] == ["new", "github", "time"]
    assert servers(file).keys() == {"rotating", "callsheet"}
    report("uninstall", "--client", "claude-code")
    assert servers(file) == {**was, "new": content["mcpServers"]["new"]}
    assert json.loads(file.read_text())["numStartups"] == 413


@pytest.mark.parametrize("client", CLIENTS)
def test_a_file_that_was_not_there_is_created_and_removed_again(
    client: str, report: Report, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = user_home / "work"
    folder.mkdir()
    done = report("install", "--client", client, "--project", folder)
    assert Path(done["file"]).is_relative_to(folder)
    assert list(servers(Path(done["file"]))) == ["callsheet"]
    monkeypatch.chdir(folder)
    report("uninstall", "--client", client, "--project")
    assert list(folder.iterdir()) == []


def test_the_change_is_shown_without_secrets_and_asked_for(mcp: Mcp, user_home: Path) -> None:
    file = configured("cursor")
    before = file.read_bytes()
    status, out, err = mcp("install", "--client", "cursor", "--dry-run")
    assert status == 0
    assert '+\t\t"callsheet": {' in out
    assert '-\t\t\t"command": "uvx",' in out
    assert "time: uvx mcp-server-time==2026.10.19" in err
    assert "stays in the client: files: Callsheet does not fill in ${workspaceFolder}" in err
    assert "note: time: Callsheet does not read alwaysAllow" in err
    assert SECRET not in out + err
    status, out, err = mcp("install", "--client", "cursor")
    assert status == 2
    assert "--yes agrees to the change" in err
    assert file.read_bytes() == before
    assert not (user_home / ".local" / "share" / "callsheet" / "clients").exists()


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("n", 130)])
def test_a_person_agrees_or_not(
    answer: str, status: int, mcp: Mcp, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = configured("vscode")
    monkeypatch.setattr("callsheet.orchestrator.cli.gateway.install.has_terminal", lambda: True)
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda _: answer)
    assert mcp("install", "--client", "vscode")[0] == status
    assert ("callsheet" in servers(file)) is (answer == "y")


def test_a_server_is_kept_by_name(mcp: Mcp, report: Report, user_home: Path) -> None:
    file = configured("cursor")
    assert report("install", "--client", "cursor", "--keep", "github")["moved"] == ["time"]
    assert servers(file).keys() == {"github", "files", "callsheet"}
    status, _, err = mcp("install", "--client", "cursor", "--keep", "tine", "--yes")
    assert status == 2
    assert "no server 'tine' (did you mean 'time'?)" in err


def test_an_own_catalog_gets_the_servers_and_loses_them_again(mcp: Mcp, report: Report, user_home: Path) -> None:
    configured("cursor")
    catalog = user_home / "own.json"
    catalog.write_text('{"servers": {"weather": {"command": "uvx", "args": ["weather"]}}, "note": 1}\n')
    before = catalog.read_bytes()
    report("install", "--client", "cursor", "--catalog", catalog)
    assert list(servers(catalog)) == ["weather", "github", "time"]
    assert report("install", "--client", "cursor")["catalog"] == str(catalog)  # remembered
    report("uninstall", "--client", "cursor")
    assert catalog.read_bytes() == before
    catalog.write_text('{"mcpServers": {"time": {"command": "another"}}}')
    status, _, err = mcp("install", "--client", "cursor", "--catalog", catalog, "--yes")
    assert status == 2
    assert "another server 'time'" in err
    assert "--keep time" in err


def test_a_catalog_of_the_project_has_consent_for_what_is_in_it_now(
    report: Report, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (user_home / "trip").mkdir()
    file = user_home / "trip" / ".mcp.json"
    file.write_text('{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}')
    done = report("install", "--client", "claude-code", "--project", "trip", "--catalog", "trip/agents.json")
    assert "--yes" not in servers(file)["callsheet"]["args"]
    assert [start.digest in Agreements().known() for start in starts_in(done["catalog"])] == [False]
    monkeypatch.chdir(user_home / "trip")
    assert [start.digest in Agreements().known() for start in starts_in(done["catalog"])] == [True]


def test_the_installed_entry_is_understood_by_callsheet(report: Report, user_home: Path) -> None:
    report("install", "--client", "cursor")
    own = servers(user_home / ".cursor" / "mcp.json")["callsheet"]
    name, *words = own["args"]
    assert name == "mcp"
    context = group.make_context(name, words)
    assert context.params["yes"] is True
    assert [Path(one).name for one in context.params["catalogs"]] == ["mcp.json"]
    assert os.access(own["command"], os.X_OK)
