"""What holds for every selection, whatever the catalog and the scores, and what the settings change."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from callsheet.graphs import Catalog, SettingsError, knowledge_graph, required_paths
from callsheet.retrievers.selection.decision import Judgement
from callsheet.retrievers.selection.select_settings import IMPLIED
from fuzzing import fuzzed
from scripted import catalog_of, selector, tools_of_a


@pytest.mark.parametrize(
    ("tool", "agent", "verdict"),
    [(0.9, 0.3, "found"), (0.5, 0.2, "unsure"), (0.4, 0.5, "unsure"), (0.4, 0.3, "nothing_fits")],
)
def test_the_verdict_is_about_the_best_agent(tool: float, agent: float, verdict: str) -> None:
    selection = selector(catalog_of(a_x="", b_x=""), {"a/x": tool, "a": agent}).select("q", fits=0.38)
    assert selection.verdict == verdict
    assert selection.trace.strength == pytest.approx(tool + 0.5 * agent, abs=1e-5)


def test_a_clause_that_something_fits_is_enough_for_the_verdict_and_an_implied_step_is_not() -> None:
    parts = {"book hotel rooms": {"a/x": 0.9}, IMPLIED["time"]: {"a/x": 0.9}}
    made = selector(catalog_of(a_x=""), {"a/x": 0.1}, parts=parts)
    assert made.select("find cheap flights; book hotel rooms").verdict == "unsure"
    assert made.select("what is up today").verdict == "nothing_fits"


def test_a_setting_that_cannot_work_is_named() -> None:
    cases = [
        ({"tool": 3}, "unknown setting tool: there are agents, tools, schema_tokens"),
        *(({name: 0}, f"{name} must be a whole number of at least 1, not 0") for name in ("agents", "tools", "expand")),
        ({"schema_tokens": 0}, "schema_tokens must be a whole number of at least 1, not 0"),
        ({"pool": "9"}, "pool must be a whole number of at least 1, not '9'"),
        ({"temperature": 0}, "temperature must be above 0, not 0"),
        ({"tool_dependency": 1.5}, "tool_dependency must be between 0 and 1, not 1.5"),
        ({"expansion": "all"}, "expansion must be 'expected_use' or 'graph_rag_tool_fusion' or 'none', not 'all'"),
        ({"without": "weather"}, "without must be a sequence of ids, not 'weather'"),
        ({"texts": "plain"}, "texts cannot be 'plain' for one query, because the index was made with 'full'"),
    ]
    for change, said in cases:
        with pytest.raises(SettingsError) as caught:
            selector(catalog_of(a_x=""), {"a/x": 0.9}).select("q", **change)
        assert said in str(caught.value)


def test_a_requirement_comes_by_what_requires_it_and_not_by_what_is_only_optional() -> None:
    catalog = catalog_of(b_z="c_z a_x", c_z="c_y?", c_y="a_x")
    selection = selector(catalog, {"b/z": 0.9}).select("q", agents=1, tools=3)
    assert {tool.id: tool.via for tool in selection.tools} == {
        "b/z": ("b/z",),
        "c/z": ("b/z", "c/z"),
        "a/x": ("b/z", "a/x"),
    }


PRICE = {"a/price": 0.9, "a/hotel": 0.8, "a/mail": 0.4}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"tools": 3}, "price weather location"),
        ({}, "price weather location ticker wifi hotel user mail"),
        ({"direct_first": True, "tools": 3}, "price ticker wifi"),
        ({"d_limit": 1}, "price weather hotel user mail"),
        ({"d_limit": 0}, "price hotel mail"),
        ({"expand": 1}, "price weather location ticker wifi"),
        ({"expand": 2, "d_limit": 3}, "price weather location ticker hotel user"),
        ({"ranking": "agent_as_a_graph", "tools": 3}, "price weather location"),
        ({"search": "dense", "tools": 4}, "price weather location ticker"),
        ({"search": "bm25"}, "mail"),
    ],
)
def test_graph_rag_tool_fusion_matches_algorithm_1_of_the_paper(change: dict[str, Any], expected: str) -> None:
    catalog = tools_of_a(price="weather? ticker", weather="location", ticker="wifi", hotel="user", mail="")
    made = selector(catalog, PRICE, {"a/mail": "letter"})
    selection = made.select("a letter", expansion="graph_rag_tool_fusion", **change)
    assert [tool.id.removeprefix("a/") for tool in selection.tools] == expected.split()
    assert not any(tool.required for tool in selection.tools if "a/weather" in tool.via)


def test_graph_rag_tool_fusion_walks_from_the_tools_of_the_judge() -> None:
    judge: Any = SimpleNamespace(name="mail first", judge=lambda *_: Judgement(["a/mail"], {"a/mail": 0.9}, 0.8))
    made = selector(tools_of_a(price="ticker", hotel="user", mail="wifi"), PRICE, judge=judge)
    shown = made.select("q", expansion="graph_rag_tool_fusion", expand=2, judged=3)
    assert [tool.id for tool in shown.tools] == ["a/mail", "a/wifi", "a/price", "a/ticker"]
    assert [tool.probability for tool in shown.tools] == [0.9, None, None, None]
    assert (shown.decision.by, shown.decision.tools, shown.probability) == ("mail first", 3, 0.8)  # type: ignore[union-attr]
    unshown = made.select("q", expansion="graph_rag_tool_fusion", expand=2, judged=2)
    assert [tool.id for tool in unshown.tools] == ["a/price", "a/ticker", "a/hotel", "a/user"]


def test_agent_as_a_graph_matches_the_paper() -> None:
    scores = {"a": 0.1, "a/x": 0.9, "a/y": 0.2, "b": 0.6, "b/x": 0.3, "c/x": 0.8}
    made = selector(catalog_of(a_x="b_x", a_y="", b_x="", c_x=""), scores)
    published = {"search": "dense", "ranking": "agent_as_a_graph", "expansion": "none"}
    found = made.select("q", **published, agents=2, pool=3)  # a/x, c/x, b
    assert [(agent.id, agent.score) for agent in found.agents] == [("b", 1.5 / (60 + 3)), ("a", 1 / (60 + 1))]
    assert [tool.id for tool in found.tools] == ["a/x", "b/x", "a/y"]
    assert [tool.id for tool in made.select("q", **published, agents=2, pool=3, tools=2).tools] == ["a/x", "b/x"]


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("dense", "x y z"),
        ("bm25", "z y"),  # both words, one word
        ("hybrid", "z y x"),  # 1 / 63 + 1 / 61, 2 / 62, 1 / 61
        ("weighted_hybrid", "x y z"),  # .8 * 1, .8 * .5 / .8 + .2 * (less than 1), .2 * 1
    ],
)
def test_a_plain_method_returns_the_search_alone(search: str, expected: str) -> None:
    words = {"a/y": "invoice", "a/z": "invoice total"}
    made = selector(tools_of_a(x="z", y="x", z=""), {"a/x": 0.9, "a/y": 0.6, "a/z": 0.1}, words)
    found = made.select("invoice total", search=search)
    assert [tool.id.removeprefix("a/") for tool in found.tools] == expected.split()


NAMES = [f"{agent}_{name}" for agent in "abc" for name in "xyz"]
NODES = [*"abc", *(name.replace("_", "/") for name in NAMES)]
needs = st.lists(st.sampled_from([name + mark for name in NAMES for mark in ("", "?")]), max_size=2).map(" ".join)
catalogs = st.fixed_dictionaries(dict.fromkeys(NAMES, needs)).map(lambda named: catalog_of(**named))
values = st.integers(0, 100).map(lambda n: n / 100)
all_scores = st.fixed_dictionaries(dict.fromkeys(NODES, values))
changes = st.fixed_dictionaries(
    {
        "agents": st.integers(1, 4),
        "tools": st.integers(1, 8),
        "pool": st.integers(1, 15),
        "expand": st.integers(1, 4),
        "direct_first": st.booleans(),
        "expansion": st.sampled_from(["expected_use", "graph_rag_tool_fusion", "none"]),
        "search": st.sampled_from(["scores", "dense", "hybrid"]),
        "ranking": st.sampled_from(["scores", "agent_as_a_graph"]),
    }
)


@fuzzed(33)
@given(catalogs, all_scores, changes)
def test_every_selection_keeps_its_budget(catalog: Catalog, scores: dict[str, float], change: dict[str, Any]) -> None:
    selection = selector(catalog, scores).select("q", **change)
    tools = [tool.id for agent in selection.agents for tool in agent.tools]
    assert len(tools) <= change["tools"]
    assert len(set(tools)) == len(tools)
    assert len({agent.id for agent in selection.agents}) == len(selection.agents)
    if change["expansion"] != "graph_rag_tool_fusion":  # Algorithm 1 knows no maximum of agents
        assert len(selection.agents) <= change["agents"]
    assert not set(tools) & {cut.id for cut in selection.trace.cut}
    for agent in selection.agents:
        own = {tool.id for tool in agent.tools}
        for tool in agent.tools:
            assert tool.via[-1] == tool.id
            assert catalog.tool(tool.via[0]).agent == agent.id or (len(tool.via) > 1 and tool.via[0] in own)
            assert set(tool.via) <= set(tools)
            assert list(agent.tools) == sorted(agent.tools, key=lambda tool: -tool.use)


@fuzzed(33)
@given(catalogs, all_scores, changes)
def test_a_requirement_of_a_kept_tool_is_only_missing_where_the_best_tool_alone_spends_the_budget(
    catalog: Catalog, scores: dict[str, float], change: dict[str, Any]
) -> None:
    selection = selector(catalog, scores).select("q", **{**change, "expansion": "expected_use", "search": "scores"})
    kept = {tool.id for tool in selection.tools}
    graph = knowledge_graph(catalog)
    if any(required_paths(graph, tool).keys() - kept for tool in kept):
        (best,) = [tool.id for tool in selection.tools if len(tool.via) == 1]
        assert kept <= {best} | required_paths(graph, best).keys()
        assert len(kept) == change["tools"]


@fuzzed(16)
@given(all_scores, st.sampled_from(["scores", "agent_as_a_graph"]))
def test_an_unrelated_agent_never_changes_the_order_of_the_others(scores: dict[str, float], ranking: Any) -> None:
    named = dict.fromkeys(NAMES, "")
    before = selector(catalog_of(**named), scores).select("q", agents=9, ranking=ranking)
    wider = selector(catalog_of(**named, d_x=""), {**scores, "d": -1.0, "d/x": -1.0})
    after = wider.select("q", agents=9, ranking=ranking)
    assert [agent.id for agent in after.agents if agent.id != "d"] == [agent.id for agent in before.agents]
