from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from callsheet.graphs import Catalog, SettingsError, knowledge_graph
from callsheet.retrievers import METHODS, expected_accuracy, first_within_tokens, graph_rag_tool_fusion
from scripted import catalog_of, selector, tools_of_a


def fused(found: str, catalog: Catalog, **limits: Any) -> str:
    ids = [f"a/{name}" for name in found.split()]
    result = graph_rag_tool_fusion(ids, knowledge_graph(catalog), **{"limit": 99, **limits})
    return " ".join(r.tool.removeprefix("a/") for r in result)


def test_each_found_tool_is_followed_by_what_it_depends_on() -> None:
    assert fused("x y", tools_of_a(x="b", b="c", y="d")) == "x b c y d"


def test_d_limit_is_how_many_dependencies_one_tool_may_bring() -> None:
    catalog = tools_of_a(x="b c d", y="e f")
    assert fused("x y", catalog, d_limit=2) == "x b c y e f"
    assert fused("x y", catalog, d_limit=0) == "x y"


def test_a_small_d_limit_drops_a_required_tool_behind_an_optional_one() -> None:
    catalog = tools_of_a(book="weather? user", weather="place")
    for d_limit in (1, 2):
        assert "user" not in fused("book", catalog, d_limit=d_limit).split()
    assert fused("book", catalog, d_limit=1, direct_first=True) == "book user"
    assert fused("book", catalog, d_limit=2, direct_first=True) == "book user weather"


def test_the_path_says_what_brought_a_tool_and_a_found_one_is_its_own() -> None:
    found = graph_rag_tool_fusion(["a/x"], knowledge_graph(tools_of_a(x="b?", b="c")), limit=9)
    assert [(r.path, r.direct) for r in found] == [
        (("a/x",), True),
        (("a/x", "a/b"), False),
        (("a/x", "a/b", "a/c"), False),
    ]


def test_a_cycle_of_dependencies_ends() -> None:
    assert fused("x", tools_of_a(x="y", y="x")) == "x y"
    assert fused("x", tools_of_a(x="x")) == "x"


@pytest.mark.parametrize("agents", [1, 2, None])
def test_the_list_of_a_selection_is_that_of_the_algorithm_whatever_the_maximum_of_agents(agents: int | None) -> None:
    catalog = catalog_of(a_x="c_n", b_y="c_n c_m", a_z="")
    method = replace(METHODS["graph-rag-tool-fusion"], texts="full")
    made = selector(catalog, {"a/x": 0.9, "b/y": 0.8, "a/z": 0.7}, made=method)
    algorithm = graph_rag_tool_fusion(["a/x", "b/y", "a/z"], knowledge_graph(catalog), limit=10)
    found = made.select("q", agents=agents)
    assert [tool.id for tool in found.tools] == [reached.tool for reached in algorithm]
    assert [tool.id for tool in found.tools] == ["a/x", "c/n", "b/y", "c/m", "a/z"]
    assert [agent.id for agent in found.agents] == ["a", "b"]


def test_eq_1_adds_what_fits_of_the_dependencies() -> None:
    """.4 of the search and .5 of dependencies; 10 of 25 tools fit: .4 + .5 * 10 / 25 = .6; all 8 fit: .9."""
    assert expected_accuracy(0.4, 0.5, limit=10, found=25) == pytest.approx(0.6)
    assert expected_accuracy(0.4, 0.5, limit=10, found=8) == pytest.approx(0.9)
    with pytest.raises(SettingsError, match="K and N must be at least 1, not 10 and 0"):
        expected_accuracy(0.4, 0.5, limit=10, found=0)


def test_a_list_is_cut_at_the_first_tool_that_does_not_fit() -> None:
    """30, 30 + 50 = 80, 80 + 10 = 90: of 85 tokens, two fit, although the third alone would."""
    costs = {"x": 30, "y": 50, "z": 10}

    def cost(tools: Sequence[str]) -> int:
        return sum(costs[tool] for tool in tools)

    fitting = [first_within_tokens(["x", "y", "z"], cost, tokens=tokens) for tokens in (20, 30, 85, 90, None)]
    assert fitting == [0, 1, 2, 3, 3]


def test_a_selection_by_a_published_method_is_cut_at_its_tokens() -> None:
    catalog = catalog_of(a_x="", b_y="", c_z="")
    method = replace(METHODS["graph-rag-tool-fusion"], texts="full")
    made = selector(catalog, {"a/x": 0.9, "b/y": 0.8, "c/z": 0.7}, made=method)
    found = made.select("q", schema_tokens=made.tokens.count(["a/x", "b/y"]))
    assert [tool.id for tool in found.tools] == ["a/x", "b/y"]
    assert [(cut.id, "tokens of schemas" in cut.reason) for cut in found.trace.cut] == [("c/z", True)]


NAMES = "bcdefx"
needs = st.lists(st.sampled_from([name + mark for name in NAMES for mark in ("", "?")]), max_size=4).map(" ".join)
catalogs = st.fixed_dictionaries(dict.fromkeys(NAMES, needs)).map(lambda named: tools_of_a(**named))
founds = st.lists(st.sampled_from(NAMES), max_size=4).map(" ".join)


@given(catalogs, founds, st.integers(0, 8), st.none() | st.integers(0, 4), st.booleans())
def test_the_result_is_within_k_and_holds_nothing_twice(
    catalog: Catalog, found: str, limit: int, d_limit: int | None, direct_first: bool
) -> None:
    result = fused(found, catalog, limit=limit, d_limit=d_limit, direct_first=direct_first).split()
    assert len(result) <= limit
    assert len(set(result)) == len(result)


@given(catalogs, founds)
def test_without_limits_every_found_tool_is_there_and_all_it_depends_on(catalog: Catalog, found: str) -> None:
    result = {f"a/{name}" for name in fused(found, catalog).split()}
    assert {f"a/{name}" for name in found.split()} <= result
    for tool in result:
        assert {edge.tool for edge in catalog.tool(tool).depends_on} <= result
