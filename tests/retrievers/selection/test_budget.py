from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest

from callsheet.graphs import Agent, Catalog, Dependency, Tool
from callsheet.graphs.catalog.model import Provenance
from callsheet.retrievers import PickedTool, Selection
from callsheet.retrievers.selection.budget import Budget, SchemaTokens
from scripted import DIRECT, catalog_of, selector

NAMES = "uvwxyz"
CATALOG = Catalog(
    agents=(Agent(id="a", tools=tuple(Tool(agent="a", name=n, description="word " * 20) for n in NAMES)),)
)
COUNT = SchemaTokens(CATALOG)
ONE = COUNT.count(["a/u"])


def budget_of(tools: int = 9, schema_tokens: int | None = None) -> Budget:
    return Budget(tools, schema_tokens, COUNT)


def group(names: str, score: float = 0.5) -> Sequence[PickedTool]:
    return [PickedTool(f"a/{name}", score, (f"a/{name}",)) for name in names]


def told(budget: Budget) -> dict[str, str]:
    return {cut.id.removeprefix("a/"): cut.reason for cut in budget.cut.values()}


ROOM, ROOM_FOR = "only 2 left, with its requirements 3", "{} tokens of schemas, {} are allowed"


def test_a_group_comes_whole_or_not_at_all_but_the_first_as_far_as_it_fits() -> None:
    cases = [
        ({"tools": 3}, "u vw x", "uvw", {"x": "the budget is spent"}),
        ({"tools": 3}, "u vwx", "u", dict.fromkeys("vwx", ROOM)),
        ({"tools": 3}, "u vwx yz vw", "uyz", dict.fromkeys("vwx", ROOM)),
        ({"tools": 2}, "u vwx v", "uv", dict.fromkeys("wx", "only 1 left, with its requirements 3")),
        ({"tools": 2}, "uvwx", "uv", {"x": "only 2 left, with its requirements 4", "w": ROOM}),
        ({"schema_tokens": 2 * ONE}, "u v w", "uv", {"w": ROOM_FOR.format(3 * ONE, 2 * ONE)}),
        ({"schema_tokens": 3 * ONE}, "u vwx", "u", dict.fromkeys("vwx", ROOM_FOR.format(4 * ONE, 3 * ONE))),
        (
            {"schema_tokens": 2 * ONE},
            "uvwx",
            "uv",
            {"x": ROOM_FOR.format(4 * ONE, 2 * ONE), "w": ROOM_FOR.format(3 * ONE, 2 * ONE)},
        ),
        ({"schema_tokens": ONE - 1}, "u", "", {"u": ROOM_FOR.format(ONE, ONE - 1)}),
    ]
    for limits, offers, kept, left in cases:
        budget = budget_of(**limits)
        for names in offers.split():
            budget.offer("a", group(names))
        assert ("".join(tool.removeprefix("a/") for tool in budget.taken), told(budget)) == (kept, left)
        assert budget.full is (len(kept) == limits.get("tools"))


def test_a_group_needs_room_only_for_what_is_not_taken_yet() -> None:
    budget = budget_of(2)
    budget.offer("a", group("u"))
    budget.offer("b", group("vuv"))
    assert [*budget.taken] == ["a/u", "a/v"]
    assert [agent for agent, _ in budget.taken.values()] == ["a", "b"]
    budget.offer("c", group("uv"))
    assert [agent for agent, _ in budget.taken.values()] == ["a", "b"]


SHORT: dict[str, Any] = {"shortlist": True, "floor": 0.05}


def ids(selection: Selection) -> list[str]:
    return [tool.id for tool in selection.tools]


def test_the_shortlist_ends_where_the_expected_use_falls_below_the_floor() -> None:
    """exp(-.1 / .04) is .08, exp(-.14 / .04) is .03: only the latter is below .05."""
    made = selector(catalog_of(a_v="", b_w="", c_x=""), {"a/v": 0.9, "b/w": 0.8, "c/x": 0.76})
    assert ids(made.select("q")) == ["a/v", "b/w", "c/x"]
    selection = made.select("q", floor=0.05, context=0.0)
    assert ids(selection) == ["a/v", "b/w"]
    best, second = (tool.use for tool in selection.tools)
    assert second / best == pytest.approx(math.exp(-0.1 / 0.04), rel=1e-3)
    assert {cut.id: cut.reason for cut in selection.trace.cut} == {
        "c/x": f"expected use {best * math.exp(-0.14 / 0.04):.2g}, the minimum is {0.05 * best:.2g}"
    }


def test_the_best_tool_and_what_a_kept_tool_requires_are_never_below_the_floor() -> None:
    made = selector(catalog_of(a_v="b_w", b_w="c_x", c_x=""), {"a/v": 0.9})
    assert ids(made.select("q", floor=1.0, tool_dependency=0.1)) == ["a/v", "b/w", "c/x"]


def test_tools_of_the_best_tools_agent_come_before_strangers_of_about_equal_use() -> None:
    scores = {"a/v": 0.9, "b/w": 0.82, "a/x": 0.8, "b/y": 0.7, "a/z": 0.6}
    made = selector(catalog_of(a_v="", b_w="", a_x="", b_y="", a_z=""), scores)
    assert ids(made.select("q", context=0.0)) == ["a/v", "b/w", "a/x", "b/y", "a/z"]
    assert ids(made.select("q", context=0.0, shortlist=True)) == ["a/v", "a/x", "b/w", "b/y", "a/z"]


def test_a_dependency_that_nobody_has_reviewed_displaces_no_tool_that_the_search_finds() -> None:
    edge = Dependency(tool="d/z", kind=DIRECT, provenance=Provenance.PROPOSED, reason="its description names it")
    first = Agent(id="a", tools=(Tool(agent="a", name="v", depends_on=(edge,)),))
    made = selector(
        Catalog(agents=(first, *catalog_of(b_w="", c_x="", d_z="").agents)), {"a/v": 0.9, "b/w": 0.85, "c/x": 0.82}
    )
    assert ids(made.select("q", tools=3)) == ["a/v", "b/w", "c/x"]
    assert ids(made.select("q", tools=3, **SHORT)) == ["a/v", "b/w", "c/x"]
    selection = made.select("q", tools=4, **SHORT)
    assert set(ids(selection)) == {"a/v", "b/w", "c/x", "d/z"}
    assert next(tool.via for tool in selection.tools if tool.id == "d/z") == ("a/v", "d/z")
    assert "d/z" not in ids(made.select("q", tools=4, shortlist=True, floor=0.9))


def test_an_inferred_dependency_comes_before_what_the_search_hardly_finds() -> None:
    """exp(-.4 / .04) is .00005, less than .0005 of the best."""
    edge = Dependency(tool="d/z", kind=DIRECT, provenance=Provenance.PROPOSED)
    first = Agent(id="a", tools=(Tool(agent="a", name="v", depends_on=(edge,)),))
    made = selector(
        Catalog(agents=(first, *catalog_of(b_w="", c_x="", d_z="").agents)), {"a/v": 0.9, "b/w": 0.85, "c/x": 0.5}
    )
    selection = made.select("q", tools=3, context=0.0)
    assert ids(selection) == ["a/v", "b/w", "d/z"]
    assert selection.tools[-1].use < selection.tools[1].use


def test_an_observed_dependency_counts_in_the_search() -> None:
    edge = Dependency(tool="d/z", kind=DIRECT, provenance=Provenance.OBSERVED, count=9, confidence=0.9)
    first = Agent(id="a", tools=(Tool(agent="a", name="v", depends_on=(edge,)),))
    made = selector(Catalog(agents=(first, *catalog_of(b_w="", d_z="").agents)), {"a/v": 0.9, "b/w": 0.85})
    assert ids(made.select("q", tools=2)) == ["a/v", "d/z"]


@pytest.mark.parametrize(
    ("change", "copies"),
    [
        ({}, True),
        ({"title": "V", "input_schema": {"type": "object", "properties": {}, "title": "vArguments"}}, True),
        ({"annotations": {"title": "V"}}, True),
        ({"description": "Another thing."}, False),
        ({"input_schema": {"type": "object", "properties": {"n": {}}}}, False),
        ({"output_schema": {"type": "object", "properties": {"n": {}}}}, False),
        ({"annotations": {"readOnlyHint": True}}, False),
    ],
)
def test_a_tool_that_its_agent_has_under_several_names_takes_one_place(change: dict[str, Any], copies: bool) -> None:
    scores = {"a/v": 0.9, "a/w": 0.8, "a/x": 0.7, "b/v": 0.6}
    plain = catalog_of(a_v="", a_w="", a_x="w_v", b_v="", w_v="")
    assert ids(selector(plain, scores).select("q", tools=4))[:4] == ["a/v", "a/w", "a/x", "w/v"]

    def described(tool: Tool) -> Tool:
        more = {"description": f"A thing of {tool.agent}."} | (change if tool.name == "v" and tool.agent == "a" else {})
        return tool.model_copy(update=more)

    agents = (one.model_copy(update={"tools": tuple(map(described, one.tools))}) for one in plain.agents)
    selection = selector(Catalog(agents=tuple(agents)), scores).select("q", tools=5)
    assert ids(selection)[0] == "a/v"
    assert "b/v" in ids(selection)
    cut = {one.id: one.reason for one in selection.trace.cut}
    assert (cut.get("a/w") == "it is the same tool as a/v") is copies
    assert ("a/w" in ids(selection)) is not copies
