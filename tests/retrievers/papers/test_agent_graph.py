from __future__ import annotations

from hypothesis import given, strategies as st

from callsheet.graphs import Agent, Catalog, KnowledgeGraph, Tool, knowledge_graph
from callsheet.retrievers import RankedAgent, agent_as_a_graph, first_of_each_type, fusion_of_two_lists


def graph_of(**tools: str) -> KnowledgeGraph:
    agents = [Agent(id=a, tools=tuple(Tool(agent=a, name=n) for n in names.split())) for a, names in tools.items()]
    return knowledge_graph(Catalog(agents=tuple(agents)))


GRAPH = graph_of(a="x y", b="x y", c="x y")
NODES = [node for agent in "abc" for node in (agent, f"{agent}/x", f"{agent}/y")]


def scores(hits: list[RankedAgent]) -> dict[str, float]:
    return {hit.id: hit.score for hit in hits}


def terms(hits: list[RankedAgent]) -> dict[str, str]:
    return {hit.id: " + ".join(map(str, hit.contributions)) for hit in hits}


def test_a_tool_stands_for_its_owner_and_each_agent_counts_once() -> None:
    # k = 1: a/x 1/2, c 1.5/4, b/y 1/3, a 1.5/5
    hits = agent_as_a_graph(["a/x", "b/y", "c", "a"], GRAPH, agents=5, k=1)
    assert scores(hits) == {"a": 1 / 2, "c": 1.5 / 4, "b": 1 / 3}
    assert [hit.id for hit in hits] == ["a", "c", "b"]


def test_the_k_of_the_paper_computed_by_hand() -> None:
    hits = agent_as_a_graph(["a/x", "b/y", "c", "a"], GRAPH, agents=5)
    assert scores(hits) == {"c": 1.5 / (60 + 3), "a": 1.5 / (60 + 4), "b": 1 / (60 + 2)}
    assert terms(hits) == {"c": "1.5 / (60 + 3) by c", "a": "1.5 / (60 + 4) by a", "b": "1 / (60 + 2) by b/y"}


def test_in_a_short_list_every_agent_precedes_every_tool_and_no_tool_brings_its_owner() -> None:
    merged = ["a/x", "a/y", "b/x", "b/y", "c/x", "c/y", "c", "b", "a"]
    assert [hit.id for hit in agent_as_a_graph(merged, GRAPH, agents=3)] == ["c", "b", "a"]
    assert [hit.id for hit in agent_as_a_graph(merged, GRAPH, agents=3, k=1)] == ["a", "b", "c"]


def test_n_agents_and_n_tools_keep_their_order() -> None:
    merged = ["a/x", "a/y", "b", "b/x", "a", "c"]
    assert first_of_each_type(merged, GRAPH, n=2) == ["a/x", "a/y", "b", "a"]


def test_eq_2_adds_the_terms_of_both_lists() -> None:
    """b is 1st of the agents and, by b/x, 2nd of the owners of tools: 1.5 / 61 + 1 / 62; a is 2nd and 1st."""
    hits = fusion_of_two_lists(["b", "a"], ["a/x", "a/y", "b/x", "c/x"], GRAPH, agents=None)
    assert scores(hits) == {"b": 1.5 / 61 + 1 / 62, "a": 1.5 / 62 + 1 / 61, "c": 1 / 63}
    assert terms(hits) == {
        "b": "1.5 / (60 + 1) by b + 1 / (60 + 2) by b/x",
        "a": "1.5 / (60 + 2) by a + 1 / (60 + 1) by a/x",
        "c": "1 / (60 + 3) by c/x",
    }
    assert [hit.id for hit in fusion_of_two_lists(["b", "a"], ["a/x"], GRAPH, agents=1)] == ["a"]


@given(st.permutations(NODES), st.integers(1, 4), st.integers(1, 80))
def test_at_most_k_agents_and_none_twice(merged: list[str], agents: int, k: int) -> None:
    found = [hit.id for hit in agent_as_a_graph(merged, GRAPH, agents=agents, k=k)]
    assert len(found) == len(set(found)) == min(agents, 3)


@given(st.permutations(NODES))
def test_with_equal_weights_agents_come_by_their_best_node(merged: list[str]) -> None:
    by_best_node = list(dict.fromkeys(node[0] for node in merged))
    equal = agent_as_a_graph(merged, GRAPH, agents=3, weights={"agent": 1, "tool": 1})
    assert [hit.id for hit in equal] == by_best_node
