"""A policy is applied before ranking: what may not be seen takes part in nothing, by whatever way a tool is found."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from langchain_core.embeddings import DeterministicFakeEmbedding

from callsheet.graphs import Catalog, Grants, Policy
from callsheet.retrievers import AgentGraphRetriever, LexicalIndex, Selector, nodes_of
from callsheet.retrievers.index.indexes import PartOfIndex
from fuzzing import fuzzed
from scripted import catalog_of, selector

WAYS: list[dict[str, Any]] = [
    {},
    {"ranking": "agent_as_a_graph"},
    {"expansion": "graph_rag_tool_fusion", "expand": 5},
    {"implied": False, "context": 0.0},
    {"tools": 1},
    {"agents": 1},
]


def within(made: Selector, policy: Policy) -> Selector:
    return made.within(policy.view(made.catalog))


def ids_in(plain: Any) -> set[str]:
    """Every text of a selection that could be an id."""
    if isinstance(plain, str):
        return {plain}
    parts = plain.values() if isinstance(plain, dict) else plain if isinstance(plain, list | tuple) else ()
    return {found for part in parts for found in ids_in(part)}


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_forbidden_tool_is_not_found_although_it_fits_best(way: dict[str, Any]) -> None:
    catalog = catalog_of(a_x="b_y? c_z", b_y="", c_z="", d_w="")
    made = selector(catalog, {"a": 0.9, "a/x": 0.9, "b/y": 0.8, "d/w": 0.4, "d": 0.4})
    assert made.select("do it", **way).agents[0].id == "a"
    for policy in (Policy(default="allow", deny=("a",)), Policy(default="deny", allow=("b", "c", "d"))):
        selection = within(made, policy).select("do it", **way)
        assert selection.tools
        assert not {"a", "a/x"} & ids_in(selection.to_dict(trace=True))


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_forbidden_tool_does_not_come_by_a_dependency(way: dict[str, Any]) -> None:
    made = selector(catalog_of(a_x="b_y?", b_y="c_z?", c_z=""), {"a": 0.9, "a/x": 0.9, "b": 0.5, "b/y": 0.5})
    selection = within(made, Policy(default="allow", deny=("b/y",))).select("do it", **way)
    assert "b/y" not in ids_in(selection.to_dict(trace=True))
    assert all("b/y" not in tool.via for tool in selection.tools)


def test_a_forbidden_tool_is_not_found_by_its_exact_name() -> None:
    made = selector(catalog_of(a_x="", b_y=""), {"a/x": 0.3, "b/y": 0.4})
    assert {tool.id for tool in made.select("call b/y now").tools} >= {"b/y"}
    selection = within(made, Policy(default="allow", deny=("b",))).select("call b/y now")
    assert {tool.id for tool in selection.tools} == {"a/x"}


def test_allowed_tools_are_ranked_as_if_the_forbidden_did_not_exist() -> None:
    catalog = catalog_of(a_x="", b_y="", c_z="")
    scores, words = {"a/x": 0.6, "b/y": 0.5, "c/z": 0.2}, {"a/x": "boil egg", "b/y": "boil water", "c/z": "paint wall"}
    whole = selector(catalog, scores, words)
    part = within(whole, Policy(default="allow", deny=("a",))).select("boil an egg")
    alone = selector(catalog_of(b_y="", c_z=""), scores, words).select("boil an egg")
    assert [tool.id for tool in part.tools] == [tool.id for tool in alone.tools]
    assert [(node.id, node.cosine, node.cosine_rank, node.words_rank) for node in part.trace.nodes] == [
        (node.id, node.cosine, node.cosine_rank, node.words_rank) for node in alone.trace.nodes
    ]
    assert part.trace.coverage < whole.select("boil an egg").trace.coverage


def test_a_policy_says_what_it_hides_and_parts_are_made_once() -> None:
    made = selector(catalog_of(a_x="", b_y="", c_z=""), {"b/y": 0.9})
    selection = within(made, Policy(default="deny")).select("do it")
    assert (selection.agents, selection.verdict) == ((), "nothing_fits")
    assert selection.trace.policy == "the policy allows 0 of 3 tools"
    assert within(made, Policy(default="allow", trust=("a",))) is made
    assert made.select("do it").trace.policy == ""
    policy = Policy(default="allow", deny=("a",), users={"ann": Grants(deny=("b",))})
    view = policy.view(made.catalog)
    assert made.within(view) is made.within(policy.view(made.catalog, "bob"))
    assert made.within(view) is not made.within(policy.view(made.catalog, "ann"))


def test_part_of_an_index_keeps_its_rows_in_order() -> None:
    catalog = catalog_of(a_x="", b_y="")
    nodes = nodes_of(catalog)

    class Numbers:
        def sync(self, nodes: Any, progress: Any = None) -> Any:
            raise AssertionError("a part is not synced")

        def scores(self, query: str, spans: Any = ()) -> Any:
            return np.array([[float(i) for i in range(len(nodes))]], np.float32)

    part = PartOfIndex(Numbers(), [3, 1])
    assert part.scores("q").tolist() == [[3.0, 1.0]]
    assert part.sync([]).added == 0
    words = LexicalIndex(nodes).part([1]).part([0])
    assert len(words.scores("x y").scores) == 1


def retriever(catalog: Catalog, policy: Policy) -> AgentGraphRetriever:
    embeddings = DeterministicFakeEmbedding(size=16)
    return AgentGraphRetriever.from_catalog(catalog, embeddings=embeddings, index=":memory:", policy=policy)


def test_one_retriever_serves_users_side_by_side() -> None:
    catalog = catalog_of(a_x="", b_y="", c_z="")
    made = retriever(catalog, Policy(default="deny", allow=("a",), users={"ann": Grants(allow=("b",))}))
    ann, bob = made.within("ann"), made.within("bob")
    assert set(ann.catalog.tools) == {"a/x", "b/y"}
    assert set(bob.catalog.tools) == set(made.catalog.tools) == {"a/x"}
    assert {tool.id for tool in ann.select("b y").tools} <= {"a/x", "b/y"}
    assert "b/y" not in {tool.id for tool in bob.select("b y").tools}
    assert "b/y" not in json.dumps([document.metadata for document in bob.invoke("b y")])


NAMES = st.sampled_from("abcd")
EDGES = st.dictionaries(
    st.tuples(NAMES, NAMES).map("_".join), st.lists(st.tuples(NAMES, NAMES, st.sampled_from(["", "?"])), max_size=3)
)


@fuzzed(10)
@given(EDGES, st.lists(st.tuples(NAMES, NAMES).map("/".join), max_size=5), st.sampled_from(WAYS))
def test_no_query_or_dependency_leads_to_a_forbidden_tool(
    edges: dict[str, Any], denied: list[str], way: dict[str, Any]
) -> None:
    needs = {tool: " ".join(f"{a}_{n}{loose}" for a, n, loose in targets) for tool, targets in edges.items()}
    catalog = catalog_of(**(needs or {"a_a": ""}))
    made = selector(catalog, {tool: 0.9 - i / 40 for i, tool in enumerate(catalog.tools)})
    policy = Policy(default="allow", deny=tuple(denied))
    selection = within(made, policy).select("do a/a and b/b", **{"agents": 4, "tools": 20, **way})
    forbidden = {tool.id for tool in catalog.tools.values() if not policy.allows(tool)}
    plain = selection.to_dict(trace=True)
    del plain["query"], plain["trace"]["units"]
    assert not forbidden & ids_in(plain)
    for tool in selection.tools:
        assert not policy.view(catalog).blocked & {tool.id, *tool.via}
