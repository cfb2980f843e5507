"""Nothing is lost: writes that fail or end in between, links, other programs, conflicts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callsheet.orchestrator.server.gateway.clients import FileChange
from callsheet.orchestrator.server.gateway.clients.receipt import ReceiptFolder
from client_configs import CLIENTS, configured, servers

Mcp = Callable[..., tuple[int, str, str]]
Report = Callable[..., dict[str, Any]]


class Killed(BaseException):
    """The end of the process."""


def killed_at(nth: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends the process at its nth rename, as a kill would: nothing is cleaned up afterwards."""
    count = 0
    rename = Path.replace

    def counted(self: Path, target: Path) -> Path:
        nonlocal count
        count += 1
        if count == nth:
            raise Killed
        return rename(self, target)

    monkeypatch.setattr(Path, "replace", counted)


@pytest.mark.parametrize("nth", [1, 2, 3, 4])
@pytest.mark.parametrize("client", CLIENTS)
def test_killed_while_installing_leaves_what_works_and_can_be_undone(
    client: str, nth: int, mcp: Mcp, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = configured(client)
    before = file.read_bytes()
    with monkeypatch.context() as patch:
        killed_at(nth, patch)
        with pytest.raises(Killed):
            mcp("install", "--client", client, "--yes")
    assert file.read_bytes() == before
    assert mcp("uninstall", "--client", client, "--yes")[0] in (0, 1)
    assert file.read_bytes() == before
    assert mcp("install", "--client", client, "--yes")[0] == 0
    assert "callsheet" in servers(file)


def test_killed_while_uninstalling_is_mended_by_doing_it_again(
    mcp: Mcp, report: Report, user_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = configured("cursor")
    before = file.read_bytes()
    catalog = Path(report("install", "--client", "cursor")["catalog"])
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", lambda *_, **__: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            mcp("uninstall", "--client", "cursor", "--yes")
    assert file.read_bytes() == before
    assert catalog.exists()
    assert mcp("uninstall", "--client", "cursor", "--yes")[0] == 0
    assert file.read_bytes() == before
    assert not catalog.parent.exists()


def test_a_full_disk_changes_nothing(mcp: Mcp, user_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = configured("cursor")
    before, write = file.read_bytes(), FileChange.write

    def full(self: FileChange) -> None:
        if self.file == file:
            raise OSError(28, "No space left on device", str(file))
        write(self)

    monkeypatch.setattr(FileChange, "write", full)
    status, _, err = mcp("install", "--client", "cursor", "--yes")
    assert status == 2
    assert f"{file}: cannot be written: No space left on device: nothing was changed" in err
    assert file.read_bytes() == before
    assert not ReceiptFolder("cursor", file).folder.exists()


def test_links_of_dotfiles_stay_links(report: Report, user_home: Path) -> None:
    link = configured("cursor")
    true = user_home / "dotfiles" / "cursor.json"
    true.parent.mkdir()
    link.rename(true)
    link.symlink_to(true)
    before = true.read_bytes()
    report("install", "--client", "cursor")
    assert link.is_symlink()
    assert "callsheet" in servers(true)
    report("uninstall", "--client", "cursor", "--file", true)  # the same file by another name
    assert link.is_symlink()
    assert true.read_bytes() == before


def test_a_byte_order_mark_and_line_ends_stay(report: Report, user_home: Path) -> None:
    file = configured("vscode")
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n"))
    before = file.read_bytes()
    report("install", "--client", "vscode")
    after = file.read_bytes()
    assert after.startswith(b"\xef\xbb\xbf")
    assert after.count(b"\n") == after.count(b"\r\n")
    file.write_bytes(after + b"\r\n")
    report("uninstall", "--client", "vscode")
    assert file.read_bytes().count(b"\n") == file.read_bytes().count(b"\r\n")
    file.write_bytes(before)


def test_a_client_that_writes_meanwhile_is_noticed(mcp: Mcp, user_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = configured("claude-code")
    monkeypatch.setattr("callsheet.orchestrator.cli.gateway.install.has_terminal", lambda: True)
    monkeypatch.setattr("click.confirm", lambda *_, **__: file.write_text("{}"))
    status, _, err = mcp("install", "--client", "claude-code")
    assert status == 2
    assert "another program has just changed it" in err
    assert file.read_text() == "{}"


def test_a_server_of_the_same_name_stays_and_so_does_the_catalog(mcp: Mcp, report: Report, user_home: Path) -> None:
    file = configured("claude-code")
    catalog = Path(report("install", "--client", "claude-code")["catalog"])
    content = json.loads(file.read_text())
    content["mcpServers"]["time"] = {"command": "another"}
    file.write_text(json.dumps(content))
    status, _, err = mcp("uninstall", "--client", "claude-code", "--yes")
    assert status == 0
    assert "time: the client has another server of this name now, which stays" in err
    assert servers(file)["time"] == {"command": "another"}
    assert "github" in servers(file)
    assert "time" in servers(catalog)


def test_a_catalog_that_was_edited_stays(mcp: Mcp, report: Report, user_home: Path) -> None:
    file = configured("claude-code")
    before = file.read_bytes()
    catalog = Path(report("install", "--client", "claude-code")["catalog"])
    content = json.loads(catalog.read_text())
    content["mcpServers"]["time"]["env"] = {"TZ": "UTC"}
    catalog.write_text(json.dumps(content))
    assert mcp("install", "--client", "claude-code", "--yes")[0] == 0
    assert servers(catalog)["time"]["env"] == {"TZ": "UTC"}
    status, _, err = mcp("uninstall", "--client", "claude-code", "--yes")
    assert status == 0
    assert f"{catalog} was changed since, so it stays" in err
    assert file.read_bytes() == before
    assert servers(catalog)["time"]["env"] == {"TZ": "UTC"}


def test_a_file_that_was_deleted_since_comes_back(report: Report, user_home: Path) -> None:
    file = configured("codex")
    before = file.read_bytes()
    report("install", "--client", "codex")
    file.unlink()
    assert report("uninstall", "--client", "codex")["notes"] == [f"{file} was deleted since"]
    assert file.read_bytes() == before


def test_a_backup_that_was_damaged_is_not_used(mcp: Mcp, report: Report, user_home: Path) -> None:
    file = configured("cursor")
    catalog = Path(report("install", "--client", "cursor")["catalog"])
    after = file.read_bytes()
    (backup,) = catalog.parent.glob("backup-*")
    backup.write_text("{}")
    status, _, err = mcp("uninstall", "--client", "cursor", "--yes")
    assert status == 2
    assert f"{backup}: the backup was changed" in err
    assert file.read_bytes() == after


def test_other_homes_of_clients(report: Report, user_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEX_HOME", str(user_home / "codex"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(user_home / "claude"))
    monkeypatch.setenv("CALLSHEET_HOME", str(user_home / "own"))
    for client, name in (("codex", "codex/config.toml"), ("claude-code", "claude/.claude.json")):
        configured(client)
        done = report("install", "--client", client)
        assert done["file"] == str(user_home / name)
        assert Path(done["catalog"]).is_relative_to(user_home / "own" / "clients")
        assert servers(user_home / name)["callsheet"]["env"] == {"CALLSHEET_HOME": os.environ["CALLSHEET_HOME"]}
