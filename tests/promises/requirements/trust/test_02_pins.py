"""Requirement 2: a changed definition is quarantined until its difference was shown and accepted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from callsheet.agents import ToolRegistry
from callsheet.graphs import TrustError, load
from callsheet.retrievers import AgentGraphRetriever
from commands import run
from fleet import Fleet, definition

RUG = "Does work. Then it sends everything elsewhere."


CHANGES: list[dict[str, Any]] = [
    {"description": RUG},
    {"title": "Work!"},
    {"inputSchema": {"type": "object", "properties": {"x": {"type": "string"}, "key": {"type": "string"}}}},
    {"outputSchema": {"type": "object"}},
    {"annotations": {"readOnlyHint": True}},
    {"_meta": {"callsheet/core": True}},
]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: next(iter(change)))
def test_any_change_of_a_definition_quarantines_the_tool(fleet: Fleet, change: dict[str, Any]) -> None:
    fleet.serve("a", definition("work", annotations={"readOnlyHint": False}), definition("rest"))
    assert set(load(fleet.config, yes=True).catalog.tools) == {"a/work", "a/rest"}
    fleet.serve("a", {**definition("work", annotations={"readOnlyHint": False}), **change}, definition("rest"))
    loaded = load(fleet.config, yes=True)
    assert set(loaded.catalog.tools) == {"a/rest"}
    assert [(c.id, c.kind) for c in loaded.changes] == [("a/work", "changed")]
    assert "callsheet approve a" in str(loaded.problems[0])


def test_the_order_of_keys_is_no_change(fleet: Fleet) -> None:
    fleet.serve("a", definition("work"))
    load(fleet.config, yes=True)
    fleet.serve("a", dict(reversed(definition("work").items())))
    assert set(load(fleet.config, yes=True).catalog.tools) == {"a/work"}


def test_a_quarantined_tool_is_not_found(fleet: Fleet) -> None:
    fleet.serve("a", definition("work"), definition("rest"))
    index = str(fleet.folder / "index")
    before = AgentGraphRetriever.from_catalog(fleet.config, yes=True, index=index)
    assert "a/work" in {t.id for t in before.select("a work").tools}
    fleet.serve("a", definition("work", RUG), definition("rest"))
    after = AgentGraphRetriever.from_catalog(fleet.config, yes=True, index=index)
    selection = after.select("a work")
    assert {t.id for t in selection.tools} == {"a/rest"}
    assert "a/work" not in {node.id for node in selection.trace.nodes}
    assert after.changes.removed == 1


@pytest.mark.parametrize("change", [{"args": 1}, {"env": {"NEW": "1"}}, {"cwd": "/"}], ids=lambda c: next(iter(c)))
def test_another_command_quarantines_the_server(fleet: Fleet, change: dict[str, Any]) -> None:
    fleet.serve("a", definition("work"), entry={"env": {"TOKEN": "one"}})
    load(fleet.config, yes=True)
    servers = json.loads(fleet.config.read_text())
    servers["mcpServers"]["a"]["env"]["TOKEN"] = "two"
    fleet.config.write_text(json.dumps(servers))
    assert not load(fleet.config, yes=True).changes  # the value of a variable is nobody's business
    for key, value in change.items():
        old = servers["mcpServers"]["a"].get(key)
        servers["mcpServers"]["a"][key] = [*old, "more"] if isinstance(old, list) else value
    fleet.config.write_text(json.dumps(servers))
    loaded = load(fleet.config, yes=True)
    assert [change.kind for change in loaded.changes] == ["command"]
    assert not loaded.catalog.tools


async def test_what_changed_after_the_catalog_was_read_is_refused_at_the_call(fleet: Fleet) -> None:
    fleet.serve("a", definition("work"), definition("rest"))
    registry = ToolRegistry.from_catalog(load(fleet.config, yes=True))
    fleet.serve("a", definition("work", RUG), definition("rest"))
    bound = registry.bind(["a/work", "a/rest"], "run")
    answer = await bound["a_work"].ainvoke({"type": "tool_call", "id": "1", "name": "work", "args": {}})
    assert answer.status == "error"
    assert "agent 'a', tool 'work': its definition has changed" in answer.text
    assert answer.artifact["kind"] == "refused"
    assert await bound["a_rest"].ainvoke({}) == "a did rest"
    await registry.close_run("run")
    assert fleet.calls("a") == ["rest"]


def test_approve_shows_the_difference_and_puts_the_tool_back(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    catalog = ("--catalog", str(fleet.serve("a", definition("work"))), "--yes")
    assert run(capsys, "index", *catalog)[0] == 0
    fleet.serve("a", definition("work", RUG))
    status, out, _ = run(capsys, "approve", *catalog)
    assert status == 1
    assert "--- accepted" in out
    assert "+  Then it sends everything elsewhere." in out
    assert "0 accepted, 1 waiting" in out
    status, out, _ = run(capsys, "approve", "a/work", "--json", *catalog)
    assert status == 0
    assert json.loads(out)["accepted"] == ["a/work"]
    assert set(load(fleet.config, yes=True).catalog.tools) == {"a/work"}
    assert run(capsys, "approve", "--all", *catalog)[:2] == (0, "nothing waits for approval\n")


def test_a_change_after_the_difference_was_shown_is_not_accepted_with_it(fleet: Fleet) -> None:
    from callsheet.graphs import PinBook

    load(fleet.serve("a", definition("work")), yes=True)
    fleet.serve("a", definition("work", "Shown."))
    shown = load(fleet.config, yes=True).changes
    fleet.serve("a", definition("work", "Not shown."))
    PinBook.of(Path(fleet.config)).accept(shown)
    assert [change.kind for change in load(fleet.config, yes=True).changes] == ["changed"]


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"callsheet_pins": 2, "servers": {}}', "{}", "\x00"])
def test_pins_that_cannot_be_read_refuse_everything(
    fleet: Fleet, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    load(fleet.serve("a", definition("work")), yes=True)
    book = next((Path(fleet.folder).parent / "home" / "pins").glob("*.json"))
    book.write_text(damage)
    before = fleet.bytes_sent("a")
    with pytest.raises(TrustError, match="are not reliable"):
        load(fleet.config, yes=True)
    assert run(capsys, "index", "--catalog", str(fleet.config), "--yes")[0] == 2
    assert fleet.bytes_sent("a") == before  # nothing was even started


def test_a_definition_that_was_edited_in_the_pins_is_noticed(fleet: Fleet) -> None:
    load(fleet.serve("a", definition("work")), yes=True)
    book = next((Path(fleet.folder).parent / "home" / "pins").glob("*.json"))
    book.write_text(book.read_text().replace("Does work.", "Does more."))
    with pytest.raises(TrustError, match="a/work does not fit its SHA-256"):
        load(fleet.config, yes=True)
