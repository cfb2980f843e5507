"""``"clerk": {"a2a": "https://..."}`` in an ``mcp.json``: consent, secrets, pins and limits as of every server."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from a2a_server import answering
from callsheet import ToolRegistry, TrustError, load
from callsheet.agents import SessionPool
from callsheet.graphs import dump
from callsheet.graphs.catalog.formats.server_config import read_configuration
from callsheet.graphs.catalog.loading import servers_in
from callsheet.orchestrator.cli.main import main

SECRET = "CANARY-token-5e8d"
WAY = {"url": "{here}", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
CARD: dict[str, Any] = {"name": "The Clerk", "description": "Files forms.", "supportedInterfaces": [WAY]}


def said(text: str) -> dict[str, Any]:
    message = {"messageId": "1", "role": "ROLE_AGENT", "parts": [{"text": text}]}
    return {"jsonrpc": "2.0", "id": "1", "result": {"message": message}}


def entry(folder: Path, url: str, **more: Any) -> Path:
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"clerk": {"a2a": url, **more}}}))
    return file


async def called(loaded: Any) -> Any:
    bound = ToolRegistry.from_catalog(loaded).bind(["clerk/run"], "run")["clerk_run"]
    return await bound.ainvoke({"type": "tool_call", "name": "run", "args": {"request": "file a form"}, "id": "1"})


def requests(sent: list[Any]) -> list[Mapping[str, Any]]:
    return [what for what, _ in sent if what != "card"]


async def test_an_address_is_an_agent_by_the_name_of_its_entry(tmp_path: Path) -> None:
    with answering(CARD, lambda _: said("filed")) as (url, sent):
        loaded = load(entry(tmp_path, url))
        agent = loaded.catalog.agent("clerk")
        assert (agent.name, agent.description) == ("The Clerk", "Files forms.")
        assert (await called(loaded)).text == "filed"
        (request,) = requests(sent)
        assert request["params"]["message"]["parts"] == [{"text": "file a form"}]


def test_what_its_entry_says_comes_before_the_cards_words(tmp_path: Path) -> None:
    with answering(CARD, lambda _: said("filed")) as (url, _):
        loaded = load(entry(tmp_path, url, description="Files our tax forms."))
    assert loaded.catalog.agent("clerk").description == "Files our tax forms."


async def test_nothing_is_sent_with_a_variable_before_somebody_agreed(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("CLERK_TOKEN", SECRET)
    with answering(CARD, lambda _: said("filed")) as (url, sent):
        file = entry(tmp_path, url, headers={"Authorization": "Bearer ${CLERK_TOKEN}"})
        with pytest.raises(TrustError) as refused:
            load(file)
        assert f"clerk: {url}  with Authorization" in str(refused.value)
        assert sent == []
        await called(load(file, yes=True))
        assert [headers["authorization"] for _, headers in sent] == [f"Bearer {SECRET}"] * len(sent)
        assert len(requests(sent)) == 1


async def test_its_secrets_are_shown_nowhere(tmp_path: Path, monkeypatch: Any, caplog: Any) -> None:
    monkeypatch.setenv("CLERK_TOKEN", SECRET)
    echo = {**CARD, "description": f"Knows {SECRET}."}
    with answering(echo, lambda _: said(f"filed with {SECRET}")) as (url, _), caplog.at_level(logging.DEBUG):
        file = entry(tmp_path, f"{url}?token={SECRET}", headers={"X-Key": "${CLERK_TOKEN}"})
        loaded = load(file, yes=True)
        answer = await called(loaded)
        assert answer.text == "filed with ***"
        assert SECRET not in dump(loaded.catalog)
        assert SECRET not in caplog.text
        assert "HTTP Request" in caplog.text
    failed = await called(loaded)
    assert failed.status == "error"
    assert SECRET not in failed.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("token", [f"{SECRET}\n", f"{SECRET} für Büros", f"{SECRET}\x01"])
def test_a_header_that_cannot_be_sent_is_a_problem_without_its_value(
    tmp_path: Path, monkeypatch: Any, token: str
) -> None:
    monkeypatch.setenv("CLERK_TOKEN", token)
    with answering(CARD, lambda _: said("filed")) as (url, sent):
        loaded = load(entry(tmp_path, url, headers={"Authorization": "Bearer ${CLERK_TOKEN}"}), yes=True)
        assert loaded.catalog.agents == ()
        assert SECRET not in str(loaded.problems[0])
        assert sent == []


def test_a_variable_that_is_not_set_is_a_problem_that_names_it(tmp_path: Path) -> None:
    loaded = load(entry(tmp_path, "http://127.0.0.1:9", headers={"X-Key": "${NO_SUCH_KEY}"}), yes=True)
    assert "the variable NO_SUCH_KEY is not set" in loaded.problems[0].message


async def test_a_card_that_says_something_else_is_not_used_before_it_was_looked_at(tmp_path: Path) -> None:
    card = dict(CARD)
    with answering(card, lambda _: said("filed")) as (url, sent):
        file = entry(tmp_path, url)
        loaded = load(file)
        card["description"] = "Files forms, and reads your mail."
        answer = await called(loaded)
        assert (answer.artifact["kind"], answer.artifact["effect"]) == ("refused", "none")
        assert "its card has changed since the catalog was read" in answer.text
        assert requests(sent) == []
        again = load(file, anew=True)
        assert list(again.catalog.tools) == []
        assert [change.kind for change in again.changes if change.quarantines] == ["changed"]


async def test_limits_and_approval_of_its_own(tmp_path: Path) -> None:
    terms = {"limits": {"output": 100, "message": 10_000}, "approval": "never"}
    with answering(CARD, lambda _: said("x" * 20_000)) as (url, _):
        loaded = load(entry(tmp_path, url, callsheet=terms), yes=True)
        assert (await called(loaded)).artifact["kind"] == "too_large"
        assert ToolRegistry.from_catalog(loaded).assurance("clerk/run").why("risky") == ""


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"a2a": 3}, "clerk: url: "),
        ({"a2a": "http://h", "url": "http://h"}, "reached by its address alone: leave out 'url'"),
        ({"a2a": "http://h", "command": "uvx"}, "leave out 'command'"),
        ({"a2a": "http://h", "headers": {"a": 1}}, "headers.a: "),
        ({"a2a": "http://h", "callsheet": {"trusted": True}}, "to which 'trusted' of 'callsheet' does not apply"),
        ({"a2a": "http://h", "callsheet": {"rest": 1}}, "Extra inputs are not permitted"),
        ({"a2a": "http://h", "callsheet": 1}, "'callsheet' must be an object"),
    ],
)
def test_an_entry_that_cannot_work_is_named_with_the_reason(given: dict[str, Any], words: str) -> None:
    found = read_configuration({"mcpServers": {"clerk": given}}, Path("mcp.json"))
    assert found.servers == {}
    assert words in str(found.problems[0])
    assert "mcp.json" in str(found.problems[0])


def test_a_limit_that_cannot_work_is_the_callers_mistake(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="limit 'call'"):
        load(entry(tmp_path, "http://127.0.0.1:9", callsheet={"limits": {"call": 0}}))


async def test_an_agent_has_no_mcp_session(tmp_path: Path) -> None:
    server = servers_in(str(entry(tmp_path, "http://127.0.0.1:9")))["clerk"]
    outcome = await SessionPool().call("run", "clerk", server, "run", {})
    assert "it is an A2A agent, and has no MCP session" in outcome.error


def test_the_command_line_finds_it(tmp_path: Path, capsys: Any) -> None:
    with answering(CARD, lambda _: said("filed")) as (url, _), pytest.raises(SystemExit) as end:
        main(["retrieve", "file a form", "--catalog", str(entry(tmp_path, url)), "--json"])
    assert end.value.code in (None, 0)
    (agent,) = json.loads(capsys.readouterr().out)["agents"]
    assert [tool["id"] for tool in agent["tools"]] == ["clerk/run"]
