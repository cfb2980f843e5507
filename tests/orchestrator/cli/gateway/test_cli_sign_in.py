"""``callsheet sign-in`` and ``sign-out``, with a real authorization server and a browser that agrees."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from callsheet.agents.servers.oauth.stored_tokens import StoredTokens
from callsheet.orchestrator.run.process import process_state
from commands import run
from signed_in_server import SignedInServer, signed_in_server

pytestmark = pytest.mark.server
WHO = "who is signed in"


def visited(file: str) -> bool:
    """What a browser does with the file that it is given: it goes on to the page."""
    place = Path(file.removeprefix("file://"))
    assert place.stat().st_mode & 0o777 == 0o600
    page = html.unescape(place.read_text().partition("url=")[2].partition('"')[0])
    assert page.startswith("http")
    return httpx2.get(page, follow_redirects=True).is_success


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SignedInServer]:
    monkeypatch.setenv("CALLSHEET_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CALLSHEET_KEY", "k" * 32)
    monkeypatch.setattr("callsheet.agents.servers.oauth.addresses._OWN", [])  # of a gateway that another test served
    monkeypatch.setattr("webbrowser.open", visited)
    with signed_in_server() as started:
        servers = {"tickets": {"url": started.url}, "local": {"command": "true"}}
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
        yield started


def test_signing_in_makes_the_tools_callable_and_signing_out_deletes_the_tokens(
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
    assert json.loads(out)["signed_out"]
    assert StoredTokens(server.url).read() is None
    assert run(capsys, "sign-out", "tickets", *catalog)[0] == 1


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["tikets"], "no server 'tikets' in the catalog (did you mean 'tickets'?)"),
        (["local"], "needs no sign-in"),
        (["http://127.0.0.1:9/mcp"], "signing in to http://127.0.0.1:9/mcp failed"),
        (["https://u:hidden-word@example.com/mcp"], "write the address of example.com without user and password"),
        (["https://[::1"], "is malformed"),
    ],
)
def test_usage_errors_of_sign_in_say_what_to_do(
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


@pytest.fixture
def listed(server: SignedInServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """The options of a catalog that was listed with a sign-in, which is lost since."""
    entry = {"url": server.url, "callsheet": {"trusted": True}}
    (tmp_path / "trusted.json").write_text(json.dumps({"mcpServers": {"tickets": entry}}))
    options = ["--catalog", str(tmp_path / "trusted.json"), "--yes"]
    assert run(capsys, "sign-in", server.url)[0] == 0
    assert run(capsys, "sync", *options)[0] == 0
    server.authorization.access.clear()
    server.authorization.refresh.clear()
    return options


def test_a_run_that_lacks_a_sign_in_names_the_command_and_goes_on_after_it(
    server: SignedInServer, listed: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    resume = ("ask", "--resume", *listed, "--json")
    for request in (("ask", "Whoami", *listed, "--json"), resume):
        status, out, _ = run(capsys, *request)
        (step,) = json.loads(out)["steps"]
        assert (status, step["status"]) == (1, "failed")
        assert f"run `callsheet sign-in {server.url}`" in step["error"]
        assert "/callsheet/sign-in" not in step["error"]  # this program has no page
    assert run(capsys, "sign-in", server.url)[0] == 0
    status, out, _ = run(capsys, *resume)
    assert (status, json.loads(out)["steps"][0]["result"]) == (0, "anna")


@pytest.fixture
def environment(server: SignedInServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The catalog in the environment, without its command."""
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"tickets": {"url": server.url}}}))
    monkeypatch.setenv("CALLSHEET_CATALOG", str(tmp_path / "mcp.json"))
    monkeypatch.setenv("CALLSHEET_YES", "1")


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("words", [("index",), ("retrieve", WHO), ("ask", WHO), ("check",)], ids=lambda w: w[0])
def test_each_command_says_once_how_to_sign_in(
    server: SignedInServer, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    status, out, err = run(capsys, *words)
    assert status == 1
    (line,) = (line for line in f"{out}\n{err}".splitlines() if "sign-in http" in line)
    assert f"run `callsheet sign-in {server.url}`" in line


@pytest.mark.usefixtures("environment")
def test_the_log_of_a_langgraph_server_names_the_command_to_sign_in(
    server: SignedInServer, caplog: pytest.LogCaptureFixture
) -> None:
    process_state._opened.cache_clear()
    try:
        assert not process_state.served_catalog().registry.catalog.tools
    finally:
        process_state._opened.cache_clear()
    (line,) = (record.getMessage() for record in caplog.records if record.name == "callsheet")
    assert line == f"left out: tickets: it asks for sign-in: run `callsheet sign-in {server.url}`"
