"""Requirement 1: a tool's identity is (server, name); equal names never merge, and each call reaches its own server."""

from __future__ import annotations

from callsheet.agents import ToolRegistry
from callsheet.graphs import load
from fleet import Fleet, definition


async def test_equal_names_reach_their_own_servers(fleet: Fleet) -> None:
    fleet.serve("a", definition("work"))
    registry = ToolRegistry.from_catalog(load(fleet.serve("b", definition("work")), yes=True))
    bound = registry.bind(["a/work", "b/work"], "run")
    assert {name: found.id for name, found in bound.items()} == {"a_work": "a/work", "b_work": "b/work"}
    said = [await found.ainvoke({"x": "1"}) for found in bound.values()]
    await registry.close_run("run")
    assert said == ["a did work", "b did work"]
    assert (fleet.calls("a"), fleet.calls("b")) == (["work"], ["work"])


async def test_names_that_are_equal_when_they_are_joined_reach_their_own_servers(fleet: Fleet) -> None:
    fleet.serve("a", definition("b__c"), definition("c"))
    fleet.serve("a__b", definition("c"))
    registry = ToolRegistry.from_catalog(load(fleet.serve("z", definition("c")), yes=True))
    ids = ["a/b__c", "a__b/c", "a/c", "z/c"]
    bound = registry.bind(ids, "run")
    assert [found.id for found in bound.values()] == ids
    assert len(set(bound)) == 4
    said = [await found.ainvoke({}) for found in bound.values()]
    await registry.close_run("run")
    assert said == ["a did b__c", "a__b did c", "a did c", "z did c"]


def test_pins_of_equal_names_are_apart(fleet: Fleet) -> None:
    fleet.serve("a", definition("work", "One thing."))
    first = load(fleet.serve("b", definition("work", "Another thing.")), yes=True)
    assert first.digests["a"] != first.digests["b"]
    fleet.serve("a", definition("work", "Another thing."))
    assert set(load(fleet.config, yes=True).catalog.tools) == {"b/work"}
