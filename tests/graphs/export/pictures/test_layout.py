"""Where everything stands: nothing lies on anything else, and all of it can be read."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, strategies as st

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Tool
from callsheet.graphs.export.pictures.layout import HEADER, LINE, Frame, Layout, cut, groups_of, lay_out
from fuzzing import fuzzed


def catalog(*sizes: int, name: str = "tool") -> Catalog:
    return Catalog(
        agents=tuple(
            Agent(id=f"a{i}", tools=tuple(Tool(agent=f"a{i}", name=f"{name}_{j}") for j in range(size)))
            for i, size in enumerate(sizes)
        )
    )


def apart(a: Frame, b: Frame) -> bool:
    beside = a.x + a.width <= b.x or b.x + b.width <= a.x
    return beside or a.y + a.height <= b.y or b.y + b.height <= a.y


def check(layout: Layout, made: Catalog) -> None:
    """Each tool has one line inside its agent's frame; frames lie apart, lines too, and all inside the picture."""
    assert [frame.agent for frame in layout.frames] == [agent.id for agent in made.agents]
    assert all(apart(a, b) for a, b in combinations(layout.frames, 2))
    for frame in layout.frames:
        assert frame.x >= 0
        assert frame.x + frame.width <= layout.width
        assert frame.y + frame.height <= layout.height
        drawn = [line.tool for line in frame.lines if line.tool]
        assert sorted(drawn) == sorted(tool.id for tool in made.by_id[frame.agent].tools)
        assert len({(line.x, line.y) for line in frame.lines}) == len(frame.lines)
        for line in frame.lines:
            assert frame.x < line.x
            assert line.x + layout.line <= frame.x + frame.width
            assert frame.y + HEADER <= line.y - LINE / 2 + 1e-6
            assert line.y + LINE / 2 <= frame.y + frame.height


@fuzzed(10)
@given(st.lists(st.integers(0, 120), max_size=40))
def test_nothing_lies_on_anything_else(sizes: list[int]) -> None:
    made = catalog(*sizes)
    check(lay_out(made), made)


def test_500_tools_fit_on_about_a_screen_and_a_half(large: Catalog) -> None:
    layout = lay_out(large)
    check(layout, large)
    assert 0.6 < layout.width / layout.height < 1.8
    assert layout.width < 1700


@pytest.mark.parametrize("sizes", [(), (0,), (1,), (1000,)])
def test_catalogs_of_any_size_are_laid_out(sizes: tuple[int, ...]) -> None:
    made = catalog(*sizes)
    layout = lay_out(made)
    check(layout, made)
    assert layout.width > 0


def test_a_name_is_cut_to_its_line_whatever_its_writing() -> None:
    assert cut("forecast", 8) == "forecast"
    assert cut("forecasts", 8) == "forecas…"
    assert cut("天气预报查询", 12) == "天气预报查询"
    assert cut("天气预报查询", 8) == "天气预…"
    assert cut("e\u0301" * 8, 8) == "e\u0301" * 8
    assert cut("two\nlines\u200b", 20) == "two lines"
    layout = lay_out(catalog(3, name="x" * 500))
    assert {len(line.text) for frame in layout.frames for line in frame.lines} == {34}


def test_tools_that_belong_together_stand_together_under_what_their_names_share(large: Catalog) -> None:
    core, *shops, rest = groups_of(large.by_id["big"])
    assert (core.heading, len(core.tools)) == ("core tools", 3)
    assert shops[0].heading == "shop1"
    assert [tool.name for tool in shops[0].tools][:3] == ["shop1_10", "shop1_11", "shop1_12"]
    assert rest.heading == "other tools"
    assert sum(len(group.tools) for group in (core, *shops, rest)) == 300


def test_a_small_agent_and_one_without_dependencies_keep_their_authors_order(large: Catalog) -> None:
    (group,) = groups_of(large.by_id["middle"])
    assert (group.heading, group.tools) == ("", large.by_id["middle"].tools)
    needs = (Dependency(tool="a/y", kind=DependencyKind.TOOL_DIRECTLY),)
    tools = (Tool(agent="a", name="x", depends_on=needs), Tool(agent="a", name="y"))
    assert [group.tools for group in groups_of(Agent(id="a", tools=tools))] == [tools]


def test_no_heading_is_left_alone_at_the_foot_of_a_column(large: Catalog) -> None:
    frame = lay_out(large).frames[0]
    for x in {line.x for line in frame.lines}:
        assert max((line for line in frame.lines if line.x == x), key=lambda line: line.y).tool
