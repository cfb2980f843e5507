"""A domain as the catalog of a command: what is asked at a terminal, and a call with a user's own key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from card_server import Domain, domain
from commands import Cli
from keyed_server import HEADER, keyed_server

KEY = "key-of-anna-4711"


@pytest.fixture
def host(own_home: Path) -> Iterator[Domain]:
    with domain() as served:
        elsewhere = [{"type": "streamable-http", "url": served.url.replace("127.0.0.1", "localhost")}]
        served.publish(served.card(), served.card("com.example/elsewhere", remotes=elsewhere))
        yield served


def answering(monkeypatch: pytest.MonkeyPatch, **answers: bool) -> list[str]:
    """Answers the questions of a terminal by their beginning; gives those that were asked."""
    asked: list[str] = []

    def confirm(question: str, **_: Any) -> bool:
        asked.append(question)
        return answers[question.partition(" ")[0].strip(",")]

    monkeypatch.setattr("callsheet.orchestrator.cli.approval_prompt.has_terminal", lambda: True)
    monkeypatch.setattr("click.confirm", confirm)
    return asked


def test_a_person_agrees_to_the_address_and_then_to_servers_elsewhere(
    cli: Cli, host: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = answering(monkeypatch, Allow=True, Trust=False)
    status, out, err = cli("index", "--catalog", host.origin, "--json")
    assert (status, json.loads(out)["agents"]) == (0, 2)
    assert err.index("read these specifications") < err.index(
        "connect to these servers:\n  elsewhere: http://localhost"
    )
    assert [question.partition(" ")[0] for question in asked] == ["Allow", "Allow", "Trust"]
    asked.clear()
    assert json.loads(cli("index", "--catalog", host.origin, "--json")[1])["agents"] == 2
    assert asked == []


def test_a_person_who_does_not_agree_to_servers_elsewhere_has_the_others(
    cli: Cli, host: Domain, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli("index", "--catalog", host.origin)[0] == 2
    assert host.asked == []
    asked = answering(monkeypatch, Allow=True, Trust=False)
    monkeypatch.setattr("click.confirm", lambda question, **_: asked.append(question) or len(asked) == 1)
    status, out, err = cli("index", "--catalog", host.origin, "--json")
    assert (status, json.loads(out)["agents"]) == (0, 1)
    assert "elsewhere: " in err
    assert "to which nothing was sent" in err


def test_one_call_has_the_key_of_the_environment(
    cli: Cli, own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with keyed_server() as server:
        server.owners = {KEY: "anna"}
        entry = {"url": server.url, "headers": {HEADER: "${user:crm_key}"}, "callsheet": {"trusted": True}}
        file = tmp_path / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"crm": entry}}), encoding="utf-8")
        monkeypatch.setenv("crm_key", KEY)
        status, out, err = cli("call", "crm/contacts", "--catalog", file, "--yes", "--json")
        assert (status, json.loads(out)["output"]) == (0, "contacts of anna")
        assert KEY not in out + err
        monkeypatch.delenv("crm_key")
        status, out, _ = cli("call", "crm/contacts", "--catalog", file, "--yes", "--json")
        assert (status, "or the environment variable crm_key" in json.loads(out)["error"]) == (2, True)
