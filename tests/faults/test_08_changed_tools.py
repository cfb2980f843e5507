"""Fault 8: a server has a bad tool among good ones; or changes them (that is in ``tests/requirements``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from callsheet.agents.sources import load_servers
from servers import Servers


def test_a_good_tool_stays_beside_bad_ones(tmp_path: Path) -> None:
    part = load_servers({"a": Servers(tmp_path).stdio("missing_schema")})
    assert [tool.name for tool in part.agents[0].tools] == ["work", "bare"]
    assert {problem.kind for problem in part.problems} == {"malformed"}


async def test_a_tool_that_changes_between_listing_and_call_is_not_called(scenario: Any) -> None:
    made = scenario()
    made.be("faulty", "vanishing")
    state = await made.run()
    assert state["results"]["2"]["status"] == "done"
    made.be("faulty", "hints")
    state = await made.run()
    assert state["results"]["2"]["status"] == "failed"
    assert "its definition has changed" in state["results"]["2"]["error"]
    assert state["results"]["3"]["status"] == "done"
    assert made.count("faulty", "call") == 1
