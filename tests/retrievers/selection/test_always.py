"""Tools that come with every other tool of their agent, as the user's entry says."""

from __future__ import annotations

import pytest

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, Tool, knowledge_graph, required_paths
from callsheet.graphs.trust.policy import view_of
from callsheet.retrievers import Selection, StepNeed, explain_tool
from callsheet.retrievers.selection.selector import Selector
from callsheet.retrievers.selection.step_selection import select_steps
from scripted import selector

SCORES = {"a/x": 0.9, "b/x": 0.8, "b/y": 0.7}


def with_always(*always: str, needs: str = "") -> Catalog:
    """Two agents with three tools each; the tools in ``always`` come with every other of their agent."""
    edges = (Dependency(tool=needs, kind=DependencyKind.TOOL_DIRECTLY),) if needs else ()
    agents = []
    for agent in "ab":
        tools = []
        for name in "xyz":
            one = f"{agent}/{name}"
            tools.append(Tool(agent=agent, name=name, always=one in always, depends_on=edges if one == "a/y" else ()))
        agents.append(Agent(id=agent, tools=tuple(tools)))
    return Catalog(agents=tuple(agents))


def ids(selection: Selection) -> list[str]:
    return [tool.id for tool in selection.tools]


def narrow(catalog: Catalog) -> Selector:
    return selector(catalog, SCORES)


def test_a_tool_that_always_comes_is_selected_with_any_tool_of_its_agent_and_retrieve_says_why() -> None:
    selection = narrow(with_always("a/z")).select("q", tools=3)
    assert set(ids(selection)) >= {"a/x", "a/z"}
    (always,) = [tool for tool in selection.tools if tool.id == "a/z"]
    assert (always.always, always.via, always.required) == (True, ("a/x", "a/z"), True)
    assert explain_tool("a/z", selection) == "always, with a/x"
    assert [tool["always"] for tool in selection.to_dict()["agents"][0]["tools"] if tool["id"] == "a/z"] == [True]


def test_a_tool_that_always_comes_takes_one_of_the_places_and_is_not_cut_before_a_weaker_one() -> None:
    without = narrow(with_always()).select("q", tools=2)
    assert ids(without) == ["a/x", "b/x"]
    assert ids(narrow(with_always("a/z")).select("q", tools=2)) == ["a/x", "a/z"]


def test_an_agent_that_is_not_selected_brings_none_of_its_tools() -> None:
    selection = narrow(with_always("a/z", "b/z")).select("q", tools=2)
    assert ids(selection) == ["a/x", "a/z"]


def test_several_come_together_also_with_one_of_themselves_and_with_what_they_need() -> None:
    graph = knowledge_graph(with_always("a/y", "a/z", needs="b/x"))
    assert list(required_paths(graph, "a/x")) == ["a/y", "b/x", "a/z"]
    assert list(required_paths(graph, "a/y")) == ["b/x", "a/z"]
    assert required_paths(graph, "b/z") == {}


def test_a_user_who_may_not_see_it_gets_the_others() -> None:
    catalog = with_always("a/z")
    view = view_of(catalog, lambda tool: tool.id != "a/z")
    assert ids(narrow(catalog).within(view).select("q", tools=2)) == ["a/x", "b/x"]


@pytest.mark.parametrize("named", [("a/y",), ()])
def test_a_worker_gets_it_with_the_tools_of_its_steps(named: tuple[str, ...]) -> None:
    (picked,) = select_steps(narrow(with_always("a/z")), [StepNeed("First thing", named)], tools=3, fill=2)
    assert {"a/z", *(named or ("a/x",))} <= set(ids(picked))
    assert explain_tool("a/z", picked).startswith("always, with a/")


def test_a_worker_without_room_gets_what_the_plan_names_and_is_told_of_the_rest() -> None:
    (picked,) = select_steps(narrow(with_always("a/z")), [StepNeed("First thing", ("a/x", "b/x"))], tools=2)
    assert ids(picked) == ["a/x", "b/x"]
    assert {one.id: one.reason for one in picked.trace.cut}["a/z"] == "the budget is spent"
