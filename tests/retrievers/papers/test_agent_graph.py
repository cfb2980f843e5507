from __future__ import annotations

from hypothesis import given, strategies as st

from callsheet.graphs import Agent, Catalog, KnowledgeGraph, Tool, knowledge_graph
from callsheet.retrievers import RankedNode, agent_as_a_graph


def graph_of(**tools: str) -> KnowledgeGraph:
    agents = [Agent(id=a, tools=tuple(Tool(agent=a, name=n) for n in names.split())) for a, names in tools.items()]
    return knowledge_graph(Catalog(agents=tuple(agents)))


GRAPH = graph_of(a="x y", b="x y", c="x y")
NODES = [node for agent in "abc" for node in (agent, f"{agent}/x", f"{agent}/y")]


def test_a_tool_stands_for_its_owner_and_each_agent_counts_once() -> None:
    # k = 1: a/x 1/2, c 1.5/4, b/y 1/3, a 1.5/5
    hits = agent_as_a_graph(["a/x", "b/y", "c", "a"], GRAPH, agents=5, k=1)
    assert hits == [RankedNode("a", 1 / 2), RankedNode("c", 1.5 / 4), RankedNode("b", 1 / 3)]


def test_the_k_of_the_paper_computed_by_hand() -> None:
    hits = agent_as_a_graph(["a/x", "b/y", "c", "a"], GRAPH, agents=5)
    assert hits == [RankedNode("c", 1.5 / (60 + 3)), RankedNode("a", 1.5 / (60 + 4)), RankedNode("b", 1 / (60 + 2))]


def test_in_a_short_list_every_agent_precedes_every_tool_and_no_tool_brings_its_owner() -> None:
    merged = ["a/x", "a/y", "b/x", "b/y", "c/x", "c/y", "c", "b", "a"]
    assert [hit.id for hit in agent_as_a_graph(merged, GRAPH, agents=3)] == ["c", "b", "a"]
    assert [hit.id for hit in agent_as_a_graph(merged, GRAPH, agents=3, k=1)] == ["a", "b", "c"]


@given(st.permutations(NODES), st.integers(1, 4), st.integers(1, 80))
def test_at_most_k_agents_and_none_twice(merged: list[str], agents: int, k: int) -> None:
    found = [hit.id for hit in agent_as_a_graph(merged, GRAPH, agents=agents, k=k)]
    assert len(found) == len(set(found)) == min(agents, 3)


@given(st.permutations(NODES))
def test_with_equal_weights_agents_come_by_their_best_node(merged: list[str]) -> None:
    by_best_node = list(dict.fromkeys(node[0] for node in merged))
    equal = agent_as_a_graph(merged, GRAPH, agents=3, weights={"agent": 1, "tool": 1})
    assert [hit.id for hit in equal] == by_best_node
