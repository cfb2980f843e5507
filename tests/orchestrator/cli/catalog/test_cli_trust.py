"""``callsheet trust``: what is allowed for good, and which servers are believed."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from api_server import shop_spec
from callsheet.agents import ToolRegistry
from callsheet.graphs import load
from callsheet.graphs.trust.consent import StandingApprovals
from commands import Cli
from fleet import Fleet, definition

NOTHING: dict[str, Any] = {"allowed": [], "servers": [], "open_calls": []}
READS = {"annotations": {"readOnlyHint": True}}


@pytest.fixture
def fleet(fleet: Fleet, own_home: Path) -> Fleet:
    """With two servers; the second says which of its tools only read."""
    fleet.serve("git", definition("push", "Pushes commits."))
    fleet.serve("notes", definition("read", "Reads a note.", **READS), definition("write", "Writes a note."))
    return fleet


@pytest.fixture
def trust(cli: Cli, fleet: Fleet) -> Callable[..., tuple[int, Any]]:
    def run(*arguments: str) -> tuple[int, Any]:
        status, out, err = cli("trust", *arguments, "--catalog", fleet.config, "--json", "--yes")
        return status, json.loads(out) if out else err

    cli("index", "--catalog", fleet.config, "--yes")
    return run


def reason(fleet: Fleet, tool: str, catalog: str = "") -> str:
    refusal = ToolRegistry.from_catalog(load(catalog or fleet.config, yes=True)).assurance(tool).refusal("ask")
    return refusal.reason if refusal else ""


def test_a_tool_is_allowed_listed_and_revoked(trust: Callable[..., tuple[int, Any]], fleet: Fleet) -> None:
    assert trust() == (0, NOTHING)
    status, told = trust("allow", "git/push")
    (one,) = told["allowed"]
    assert (status, one["agent"], one["tool"], one["user"], one["holds"]) == (0, "git", "push", "", True)
    assert (len(one["digest"]), one["since"][:2]) == (64, "20")
    assert trust()[1] == told
    assert trust("allow", "git/push", "--user", "anna")[1]["allowed"][1]["user"] == "anna"
    assert trust("revoke", "git/push", "--user", "bert")[0] == 1
    assert [one["user"] for one in trust("revoke", "git/push", "--user", "anna")[1]["allowed"]] == [""]
    assert trust("revoke", "git/push") == (0, NOTHING)
    assert trust("revoke", "git/push")[0] == 1


def test_a_tool_that_has_changed_is_listed_as_one_that_asks(
    trust: Callable[..., tuple[int, Any]], fleet: Fleet, cli: Cli
) -> None:
    trust("allow", "git/push")
    fleet.serve("git", definition("push", "Pushes commits, and deletes the others."))
    cli("approve", "--all", "--catalog", fleet.config, "--yes")
    loaded = load(fleet.config, yes=True)
    standing, tool = StandingApprovals.of(loaded.label), loaded.catalog.tool("git/push")
    assert standing is not None
    assert not standing.holds(tool.id, loaded.pin(tool))
    assert trust()[1]["allowed"][0]["holds"] is False


def test_a_server_is_trusted_and_its_trust_is_revoked(trust: Callable[..., tuple[int, Any]], fleet: Fleet) -> None:
    assert "the server is not trusted" in reason(fleet, "notes/read")
    assert trust("allow", "notes") == (0, {**NOTHING, "servers": ["notes"]})
    assert (reason(fleet, "notes/read"), bool(reason(fleet, "notes/write"))) == ("", True)
    assert trust("revoke", "notes") == (0, NOTHING)
    assert "the server is not trusted" in reason(fleet, "notes/read")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["allow", "git/pull"], "git/pull"),
        (["allow", "git"], "'git' marks no tool as read-only"),
        (["allow", "nosuch"], "nosuch"),
    ],
)
def test_a_tool_that_is_not_in_the_catalog_cannot_be_allowed(
    trust: Callable[..., tuple[int, Any]], words: list[str], why: str
) -> None:
    status, told = trust(*words)
    assert status == 2
    assert why in told


def test_trust_allow_needs_a_person_or_the_option_yes(
    trust: Callable[..., tuple[int, Any]], fleet: Fleet, cli: Cli
) -> None:
    status, out, err = cli("trust", "allow", "git/push", "--catalog", fleet.config)
    assert (status, out) == (2, "")
    assert "use --yes" in err or "--yes allows it" in err
    assert trust()[1]["allowed"] == []
    assert "put --json after 'allow'" in cli("trust", "--json", "allow", "git/push")[2]


@pytest.mark.parametrize("answer", ["y", "n"])
def test_all_tools_that_are_marked_are_one_question_which_names_them(
    fleet: Fleet, cli: Cli, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    wipes = definition("wipe_all", "Shows all.", **READS)
    fleet.serve("clock", definition("now", "Tells the time.", **READS), wipes)
    spec = fleet.folder / "shop.json"
    spec.write_text(json.dumps(shop_spec("https://shop.example")))
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    asked: list[str] = []
    answers = iter(["y", answer])
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda text: (asked.append(text), next(answers))[1])
    command = ["index", "--catalog", fleet.config, "--catalog", str(spec)]
    first = cli(*command)[2]
    lines = [line.strip() for line in first.splitlines() if "only read" in first]
    assert {"notes: read", "clock: now", "shop-orders: tellOrder", "shop: get_health"} <= {*lines}
    assert "wipe_all" not in first
    assert len(asked) == 2
    cli(*command)
    assert len(asked) == 2
    assert (reason(fleet, "notes/read") == "") is (answer == "y")
    assert (reason(fleet, "clock/now") == "") is (answer == "y")
    assert (reason(fleet, "shop-orders/tellOrder", str(spec)) == "") is (answer == "y")
    assert reason(fleet, "clock/wipe_all")


def test_ten_servers_at_the_first_run_are_two_questions_which_show_each(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = Fleet(tmp_path)
    for number in range(9):
        fleet.serve(f"desk{number}", definition(f"read{number}", **READS))
    document = json.loads(fleet.config.read_text())
    document["mcpServers"]["same"] = document["mcpServers"]["desk0"]
    fleet.config.write_text(json.dumps(document))
    for stream in (sys.stdin, sys.stderr):
        monkeypatch.setattr(stream, "isatty", lambda: True, raising=False)
    asked: list[str] = []
    monkeypatch.setattr("click.termui.visible_prompt_func", lambda text: (asked.append(text), "y")[1])
    told = cli("index", "--catalog", fleet.config)[2]
    assert len(asked) == 2
    names = [*(f"desk{number}" for number in range(9)), "same"]
    assert all(f"  {name}: {sys.executable}" in told for name in names)
    assert all(f"  {name}: read" in told for name in names)
    assert f"as in `callsheet trust allow desk0 --catalog {fleet.config}`" in told
