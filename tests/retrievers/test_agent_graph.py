from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callsheet.graphs import Agent, Catalog, OwnershipGraph, Tool, ownership_graph
from callsheet.retrievers import Hit, agent_as_a_graph, agents_by_score


def graph_of(**tools: str) -> OwnershipGraph:
    agents = [Agent(id=a, tools=tuple(Tool(agent=a, name=n) for n in names.split())) for a, names in tools.items()]
    return ownership_graph(Catalog(agents=tuple(agents)))


GRAPH = graph_of(a="x y", b="x y", c="x y")
NODES = [node for agent in "abc" for node in (agent, f"{agent}/x", f"{agent}/y")]


def test_a_tool_stands_for_its_owner_and_each_agent_counts_once() -> None:
    # k = 1: a/x 1/2, c 1.5/4, b/y 1/3, a 1.5/5
    hits = agent_as_a_graph(["a/x", "b/y", "c", "a"], GRAPH, agents=5, k=1)
    assert hits == [Hit("a", 1 / 2), Hit("c", 1.5 / 4), Hit("b", 1 / 3)]


def test_the_papers_k_by_hand() -> None:
    hits = agent_as_a_graph(["a/x", "b/y", "c", "a"], GRAPH, agents=5)
    assert hits == [Hit("c", 1.5 / (60 + 3)), Hit("a", 1.5 / (60 + 4)), Hit("b", 1 / (60 + 2))]


def test_the_trap_in_a_short_list_every_agent_precedes_every_tool_and_no_tool_brings_its_owner() -> None:
    merged = ["a/x", "a/y", "b/x", "b/y", "c/x", "c/y", "c", "b", "a"]
    assert [hit.id for hit in agent_as_a_graph(merged, GRAPH, agents=3)] == ["c", "b", "a"]
    assert [hit.id for hit in agent_as_a_graph(merged, GRAPH, agents=3, k=1)] == ["a", "b", "c"]
    assert 31 < 30 + 1.5 * 1 < 32


def test_other_weights_are_no_cure_while_the_list_is_short() -> None:
    merged = ["a/x", "b/x", "c/x", "c", "b", "a"]
    ranked = [agent_as_a_graph(merged, GRAPH, agents=3, weights={"agent": w, "tool": 1}) for w in (1.5, 2, 3)]
    assert {tuple(hit.id for hit in hits) for hits in ranked} == {("c", "b", "a")}


@given(st.permutations(NODES), st.integers(1, 4), st.integers(1, 80))
def test_at_most_k_agents_and_none_twice(merged: list[str], agents: int, k: int) -> None:
    found = [hit.id for hit in agent_as_a_graph(merged, GRAPH, agents=agents, k=k)]
    assert len(found) == len(set(found)) == min(agents, 3)


@given(st.permutations(NODES))
def test_with_equal_weights_agents_come_by_their_best_node(merged: list[str]) -> None:
    by_best_node = list(dict.fromkeys(node[0] for node in merged))
    equal = agent_as_a_graph(merged, GRAPH, agents=3, weights={"agent": 1, "tool": 1})
    assert [hit.id for hit in equal] == by_best_node


@given(st.permutations(NODES))
def test_an_unrelated_agent_below_all_never_changes_the_order_of_the_others(merged: list[str]) -> None:
    wider = graph_of(a="x y", b="x y", c="x y", z="z")
    before = [hit.id for hit in agent_as_a_graph(merged, GRAPH, agents=9)]
    after = [hit.id for hit in agent_as_a_graph([*merged, "z/z", "z"], wider, agents=9)]
    assert [agent for agent in after if agent != "z"] == before


def test_nothing_found_is_no_agent() -> None:
    assert agent_as_a_graph([], GRAPH, agents=3) == []
    assert agents_by_score([], GRAPH, agents=3) == []


def test_an_agents_score_is_the_smooth_maximum_of_its_tools_and_half_its_own() -> None:
    nodes = [Hit("a/x", 0.8), Hit("b/x", 0.7), Hit("b/y", 0.7), Hit("b", 0.6), Hit("a", 0.2)]
    by_hand = {"a": 0.8 + 0.5 * 0.2, "b": 0.7 + math.log(2) / 20 + 0.5 * 0.6}
    hits = agents_by_score(nodes, GRAPH, agents=5)
    assert [hit.id for hit in hits] == ["b", "a"]
    assert {hit.id: hit.score for hit in hits} == pytest.approx(by_hand)


def test_what_the_search_did_not_give_counts_as_its_lowest_score() -> None:
    nodes = [Hit("a/x", 0.8), Hit("b", 0.6), Hit("c/x", 0.1)]
    scores = {hit.id: hit.score for hit in agents_by_score(nodes, GRAPH, agents=5)}
    assert scores == pytest.approx({"a": 0.8 + 0.5 * 0.1, "b": 0.1 + 0.5 * 0.6, "c": 0.1 + 0.5 * 0.1})


def test_equal_agents_stay_in_the_order_of_the_nodes() -> None:
    nodes = [Hit(f"{agent}/x", 0.5) for agent in "cab"]
    assert [hit.id for hit in agents_by_score(nodes, GRAPH, agents=2)] == ["c", "a"]


score = st.integers(-100, 100).map(lambda n: n / 100)


@given(st.lists(score, min_size=9, max_size=9), score)
def test_an_unrelated_agent_never_changes_the_ranking_of_the_others_by_score(scores: list[float], other: float) -> None:
    wider = graph_of(a="x y", b="x y", c="x y", z="z")
    nodes = [Hit(node, value) for node, value in zip(NODES, scores, strict=True)]
    before = agents_by_score(nodes, GRAPH, agents=9)
    after = agents_by_score([Hit("z/z", other), *nodes, Hit("z", other)], wider, agents=9)
    assert [hit for hit in after if hit.id != "z"] == before
