"""``callsheet sign-in`` and ``sign-out``, with a real authorization server and a browser that agrees."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from commands import run
from signed_in_server import SignedInServer, signed_in_server

pytestmark = pytest.mark.server


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SignedInServer]:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALLSHEET_KEY", "k" * 32)
    monkeypatch.setattr("webbrowser.open", lambda page: httpx2.get(page, follow_redirects=True).is_success)
    with signed_in_server() as started:
        servers = {"tickets": {"url": started.url}, "local": {"command": "true"}}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        yield started


def test_signing_in_makes_the_tools_callable_and_signing_out_revokes(
    server: SignedInServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog = ("--catalog", tmp_path / "mcp.json")
    before = run(capsys, "check", *catalog, "--yes", "--json")
    status, out, err = run(capsys, "sign-in", "tickets", *catalog, "--json")
    assert status == 0
    assert json.loads(out)["issuer"].rstrip("/") == server.origin
    assert "sign in here: " in err
    after = run(capsys, "sync", *catalog, "--yes")
    assert f"run `callsheet sign-in {server.url}`" in before[1] + before[2]
    assert "whoami" in after[1] + after[2]
    status, out, _ = run(capsys, "sign-out", "tickets", *catalog, "--json")
    assert status == 0
    assert json.loads(out)["revoked"]
    assert server.authorization.access == {}
    assert run(capsys, "sign-out", "tickets", *catalog)[0] == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tikets"], "no server 'tikets'; those with an address are: tickets"),
        (["local"], "asks for no sign-in"),
        (["http://127.0.0.1:9/mcp"], "signing in to http://127.0.0.1:9/mcp failed"),
        (["https://u:hidden-word@example.com/mcp"], "write the address of example.com without user and password"),
        (["https://[::1"], "is malformed"),
    ],
)
def test_mistakes_say_what_to_do(
    server: SignedInServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    status, _, err = run(capsys, "sign-in", *arguments, "--catalog", tmp_path / "mcp.json")
    assert status == 2
    assert told in err
    assert "hidden-word" not in err


def test_without_a_key_nobody_is_sent_to_a_page(
    server: SignedInServer, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CALLSHEET_KEY")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    status, _, err = run(capsys, "sign-in", "tickets", "--catalog", tmp_path / "mcp.json")
    assert status == 2
    assert "set CALLSHEET_KEY" in err
    assert "sign in here" not in err
