"""``callsheet call``: one call of one tool, with the questions and checks of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from callsheet.orchestrator.cli import call as command
from commands import Cli
from fleet import Fleet

NOTE: dict[str, Any] = {
    "name": "create_note",
    "description": "Create a note.",
    "inputSchema": {
        "type": "object",
        "properties": {"title": {"type": "string"}, "stars": {"type": "integer"}, "tags": {"type": "array"}},
        "required": ["title"],
    },
}
READ = {**NOTE, "name": "read_note"}
Call = Callable[..., tuple[int, Any]]


@pytest.fixture
def desk(tmp_path: Path) -> Fleet:
    """A server that creates notes and reads them; a person has said of one of its tools that it only reads."""
    fleet = Fleet(tmp_path)
    fleet.serve("desk", NOTE, READ, says="done", entry={"callsheet": {"reads": ["read_note"]}})
    return fleet


@pytest.fixture
def call(desk: Fleet, cli: Cli) -> Call:
    """``callsheet call`` with these words: exit status, and its JSON, or what it says of a mistake."""

    def run(*words: str) -> tuple[int, Any]:
        status, out, err = cli("call", *words, "--catalog", desk.config, "--yes", "--json")
        return status, json.loads(out) if out else err

    return run


def sent(desk: Fleet) -> list[dict[str, Any]]:
    return [one["params"]["arguments"] for one in desk.sent("desk") if one.get("method") == "tools/call"]


def test_a_harmless_tool_is_called_with_the_values_in_the_types_of_its_schema(desk: Fleet, call: Call) -> None:
    status, told = call("desk/read_note", "title=1001", "stars=5", 'tags=["new"]')
    assert (status, told["status"], told["output"], told["error"]) == (0, "done", "done", "")
    assert sent(desk) == [{"title": "1001", "stars": 5, "tags": ["new"]}]


def test_a_call_that_may_change_something_is_not_made_if_nobody_can_be_asked(desk: Fleet, call: Call) -> None:
    status, told = call("desk/create_note", "title=x")
    assert (status, told["status"], sent(desk)) == (1, "needs_approval", [])
    allow = f"callsheet trust allow desk/create_note --catalog {desk.config}"
    assert f"allow the tool for good with `{allow}`" in told["error"]


def test_the_command_that_a_refusal_prints_works_as_it_is(desk: Fleet, call: Call, cli: Cli) -> None:
    printed = call("desk/create_note", "title=x")[1]["error"].split("`")[1]
    assert cli(*printed.split()[1:], "--yes")[0] == 0
    assert call("desk/create_note", "title=x")[0] == 0
    assert sent(desk) == [{"title": "x"}]


def test_approval_never_and_a_person_who_agrees_send_the_call(
    desk: Fleet, call: Call, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("desk/create_note", "title=x", "--approval", "never")[0] == 0
    monkeypatch.setattr(command, "has_terminal", lambda: True)
    monkeypatch.setattr(click, "prompt", lambda *_, **__: "y")
    status, out, err = cli("call", "desk/create_note", "title=y", "--catalog", desk.config, "--yes")
    assert (status, out) == (0, "done\n")
    assert "The command wants to call desk/create_note" in err
    assert sent(desk) == [{"title": "x"}, {"title": "y"}]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("desk/create_not", "title=x"), "did you mean 'desk/create_note'"),
        (("desk/read_note", "titel=x"), "has no parameter 'titel' (did you mean 'title'?); it has: title, stars, tags"),
        (("desk/read_note", "title"), "'title' is not an argument: write name=value"),
        (("desk/read_note", "title=x", "title=y"), "'title' is given twice"),
        (("desk/read_note", "title=x", "stars=many"), "stars: 'many' is not of type 'integer'"),
    ],
)
def test_a_mistake_in_the_arguments_is_told_before_anything_is_sent(
    desk: Fleet, call: Call, words: tuple[str, ...], told: str
) -> None:
    status, err = call(*words)
    assert (status, sent(desk)) == (2, [])
    assert told in err


def test_a_call_without_a_required_argument_is_refused(desk: Fleet, call: Call) -> None:
    status, told = call("desk/read_note", "stars=5")
    assert (status, told["status"], sent(desk)) == (2, "refused", [])
    assert "'title' is a required property" in told["error"]


def test_what_a_run_prints_runs_with_the_catalog_that_was_used(desk: Fleet, cli: Cli) -> None:
    answer = json.loads(cli("ask", "Create note title: x", "--catalog", desk.config, "--yes", "--json")[1])["answer"]
    printed = answer.split("`")[1]
    assert printed == f"callsheet trust allow desk/create_note --catalog {desk.config}"
    assert cli(*printed.split()[1:], "--yes")[0] == 0
    assert cli("ask", "Create note title: x", "--catalog", desk.config, "--yes")[0] == 0
    assert sent(desk) == [{"title": "x"}]


def test_consent_and_review_are_asked_for_with_commands_that_run(
    desk: Fleet, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLSHEET_CATALOG", str(desk.config))
    status, _, err = cli("index")
    assert (status, f"run `callsheet index --catalog {desk.config}` once in a terminal" in err) == (2, True)
    assert cli("index", "--yes")[0] == 0
    desk.serve("desk", NOTE, {**READ, "description": "Reads a note, now otherwise."})
    status, out, _ = cli("sync", "--yes")
    assert f"desk/read_note (`callsheet approve --catalog {desk.config}`)" in out
