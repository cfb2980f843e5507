"""Fault 8: a server has a bad tool among good ones; or changes them (that is in ``tests/promises/requirements``)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from callsheet.agents.servers.catalogs.catalog_sources import load_servers
from scenario import Scenario
from servers import Servers


def test_a_good_tool_stays_beside_bad_ones(tmp_path: Path) -> None:
    part = load_servers({"a": Servers(tmp_path).stdio("missing_schema")})
    assert [tool.name for tool in part.agents[0].tools] == ["work", "bare"]
    assert {problem.kind for problem in part.problems} == {"malformed"}


async def test_a_tool_that_changes_between_listing_and_call_is_not_called(scenario: Callable[..., Scenario]) -> None:
    made = scenario(pinned=True)
    result = await made.survives("refused", mode="hints")
    assert "its definition has changed since it was accepted" in result["error"]
    assert result["calls"][-1]["effect"] == "none"
    assert made.count("faulty", "call") == 1


async def test_where_nothing_is_pinned_the_catalog_follows(scenario: Callable[..., Scenario]) -> None:
    made = scenario()
    made.be("faulty", "list_changed")
    assert (await made.run())["results"]["2"]["status"] == "done"
