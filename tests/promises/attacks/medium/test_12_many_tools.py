"""A server that lists more tools than anybody can use holds up nobody."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callsheet.agents import ToolRegistry
from callsheet.graphs import load
from fleet import Fleet, definition


def tools(count: int) -> list[dict[str, Any]]:
    return [definition(f"t{number}") for number in range(count)]


def test_a_server_with_too_many_tools_is_left_out_by_name(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_LIMIT_TOOLS", "50")
    fleet.serve("many", *tools(51))
    fleet.serve("few", *tools(50))
    loaded = load(fleet.config, yes=True)
    assert {tool.agent for tool in loaded.catalog.tools.values()} == {"few"}
    (problem,) = loaded.problems
    assert problem.agent == "many"
    assert "more than 50 tools: raise its limit 'tools'" in problem.message


def test_a_server_may_have_a_limit_of_its_own(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALLSHEET_LIMIT_TOOLS", "50")
    fleet.serve("many", *tools(51), entry={"callsheet": {"limits": {"tools": 60}}})
    assert len(load(fleet.config, yes=True).catalog.tools) == 51


async def test_a_server_that_lists_too_many_tools_in_a_session_is_not_called(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CALLSHEET_LIMIT_TOOLS", "50")
    fleet.serve("many", *tools(1))
    registry = ToolRegistry.from_catalog(load(fleet.config, yes=True))
    bound = registry.bind(["many/t0"], "run")
    script = fleet.folder / "many.json"
    script.write_text(json.dumps({"tools": tools(51)}))
    answer = await bound["many_t0"].ainvoke({"type": "tool_call", "id": "1", "name": "t0", "args": {}})
    await registry.close_run("run")
    assert answer.status == "error"
    assert fleet.calls("many") == []
