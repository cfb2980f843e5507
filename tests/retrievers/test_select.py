from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callsheet.graphs import Agent, Catalog, Dependency, DependencyKind, SettingsError, Tool, required
from callsheet.retrievers import Changes, Hit, LexicalIndex, Node, Selection, Selector, SelectSettings, explain_tool
from callsheet.retrievers.index import Progress

DIRECT, INDIRECT = DependencyKind.TOOL_DIRECTLY, DependencyKind.TOOL_INDIRECTLY


class Scripted:
    """A vector index that gives the scores that a test wrote down; what has none is never found."""

    def __init__(self, scores: Mapping[str, float]) -> None:
        self.hits = sorted((Hit(node, score) for node, score in scores.items()), key=lambda hit: -hit.score)

    def sync(self, nodes: Sequence[Node], progress: Progress | None = None) -> Changes:
        return Changes()

    def search(self, query: str, k: int) -> Sequence[Hit]:
        return self.hits[:k]


def catalog_of(**needs: str) -> Catalog:
    """``a_x="b_y c_z?"`` is tool x of agent a, which needs b/y, and may need c/z."""
    words = [*needs, *(word.rstrip("?") for text in needs.values() for word in text.split())]
    tools: dict[str, list[Tool]] = {}
    for word in dict.fromkeys(words):
        agent, name = word.split("_")
        edges = tuple(
            Dependency(tool=w.rstrip("?").replace("_", "/"), kind=INDIRECT if w.endswith("?") else DIRECT)
            for w in needs.get(word, "").split()
        )
        tools.setdefault(agent, []).append(Tool(agent=agent, name=name, depends_on=edges))
    return Catalog(agents=tuple(Agent(id=agent, tools=tuple(made)) for agent, made in tools.items()))


def selector(catalog: Catalog, scores: Mapping[str, float], words: Mapping[str, str] | None = None) -> Selector:
    lexical = LexicalIndex([Node(node, "tool", "", "", text) for node, text in (words or {}).items()])
    return Selector(catalog, Scripted(scores), lexical)


def picked(selection: Selection) -> dict[str, list[str]]:
    return {agent: list(tools) for agent, tools in selection.tools_of.items()}


def test_an_agent_gets_its_own_tools_that_the_search_found_best_first() -> None:
    made = selector(catalog_of(a_x="", a_y="", a_z=""), {"a/y": 0.9, "a/x": 0.8})
    assert picked(made.select("q")) == {"a": ["a/y", "a/x"]}


def test_an_agent_without_found_tools_gets_its_most_similar_one() -> None:
    made = selector(catalog_of(a_x="", b_x="", b_y=""), {"a/x": 0.9, "b": 0.8, "a": 0.7, "b/y": 0.2, "b/x": 0.1})
    selection = made.select("q", pool=3)
    assert picked(selection) == {"a": ["a/x"], "b": ["b/y"]}
    assert explain_tool("b/y", selection) == "the agent's most similar tool"


def test_a_dependency_comes_along_with_the_agent_that_needs_it_and_says_so() -> None:
    made = selector(catalog_of(a_x="b_y", b_y="c_z", c_z=""), {"a/x": 0.9, "a": 0.8})
    selection = made.select("q", agents=1)
    assert picked(selection) == {"a": ["a/x", "b/y", "c/z"]}
    x, y, z = selection.agents[0].tools
    assert (x.via, x.required, x.score) == (("a/x",), False, 0.9)
    assert (y.via, y.required, y.score) == (("a/x", "b/y"), True, 0.0)
    assert (z.via, z.required) == (("a/x", "b/y", "c/z"), True)
    assert explain_tool("c/z", selection) == "required by a/x > b/y"


def test_an_indirect_dependency_comes_along_unless_nothing_may_expand() -> None:
    made = selector(catalog_of(a_x="b_y?"), {"a/x": 0.9})
    selection = made.select("q", agents=1)
    assert picked(selection) == {"a": ["a/x", "b/y"]}
    assert explain_tool("b/y", selection) == "used by a/x"
    assert picked(made.select("q", agents=1, expand=0)) == {"a": ["a/x"]}


def test_what_an_indirect_dependency_requires_comes_with_it_or_neither_does() -> None:
    made = selector(catalog_of(a_x="b_y?", b_y="c_z"), {"a/x": 0.9})
    assert picked(made.select("q", agents=1, tools=3)) == {"a": ["a/x", "b/y", "c/z"]}
    assert picked(made.select("q", agents=1, tools=2)) == {"a": ["a/x"]}


def test_requirements_of_the_best_tool_go_before_a_weaker_tool() -> None:
    made = selector(catalog_of(a_x="b_y c_z", a_w=""), {"a/x": 0.9, "a/w": 0.8})
    assert picked(made.select("q", agents=1, tools=3)) == {"a": ["a/x", "b/y", "c/z"]}


def test_a_tool_that_does_not_fit_with_its_requirements_is_cut_and_gives_way_to_one_that_fits() -> None:
    made = selector(catalog_of(a_v="", a_x="b_y c_z", a_w=""), {"a/v": 0.95, "a/x": 0.9, "a/w": 0.8})
    selection = made.select("q", agents=1, tools=2)
    assert picked(selection) == {"a": ["a/v", "a/w"]}
    assert {cut.id: cut.reason for cut in selection.trace.cut} == dict.fromkeys(
        ("a/x", "b/y", "c/z"), "only 1 left, with its requirements 3"
    )


def test_what_a_cut_tool_may_use_does_not_come_without_it() -> None:
    made = selector(catalog_of(a_v="", a_x="b_y c_z d_u?", a_w=""), {"a/v": 0.95, "a/x": 0.9, "a/w": 0.8})
    assert picked(made.select("q", agents=1, tools=2)) == {"a": ["a/v", "a/w"]}


def test_the_cut_says_that_the_budget_is_spent() -> None:
    selection = selector(catalog_of(a_x="", a_y=""), {"a/x": 0.9, "a/y": 0.8}).select("q", tools=1)
    assert [(cut.id, cut.score, cut.reason) for cut in selection.trace.cut] == [("a/y", 0.8, "the budget is spent")]


def test_when_even_the_best_needs_too_much_it_is_taken_as_far_as_it_fits() -> None:
    made = selector(catalog_of(a_x="b_y b_z b_w"), {"a/x": 0.9})
    selection = made.select("q", agents=1, tools=2)
    assert picked(selection) == {"a": ["a/x", "b/y"]}
    assert [cut.id for cut in selection.trace.cut] == ["b/z", "b/w"]


def test_every_agent_gets_a_tool_before_any_gets_more() -> None:
    scores = {"a/v": 0.9, "a/w": 0.8, "a/x": 0.7, "a/y": 0.6, "b/x": 0.2}
    made = selector(catalog_of(a_v="", a_w="", a_x="", a_y="", b_x=""), scores)
    assert picked(made.select("q", tools=4)) == {"a": ["a/v", "a/w", "a/x"], "b": ["b/x"]}


def test_agents_left_out_are_not_picked_and_give_way_to_the_next() -> None:
    made = selector(catalog_of(a_x="", b_x="", c_x=""), {"a/x": 0.9, "b/x": 0.8, "c/x": 0.7})
    assert list(picked(made.select("q", agents=2))) == ["a", "b"]
    assert list(picked(made.select("q", agents=2, without=("a",)))) == ["b", "c"]


def test_leaving_all_out_finds_nothing() -> None:
    selection = selector(catalog_of(a_x=""), {"a/x": 0.9}).select("q", without=["a", "unknown"])
    assert (selection.agents, selection.verdict) == ((), "nothing_fits")


def test_a_node_that_the_index_holds_and_the_catalog_has_lost_is_passed_over() -> None:
    made = selector(catalog_of(a_x=""), {"gone/y": 0.95, "a/x": 0.9, "gone": 0.8})
    assert picked(made.select("q")) == {"a": ["a/x"]}


def test_words_raise_a_tool_over_a_closer_one() -> None:
    scores, words = {"a/x": 0.6, "b/x": 0.5}, {"a/x": "unlike", "b/x": "invoice total"}
    made = selector(catalog_of(a_x="", b_x=""), scores, words)
    selection = made.select("invoice total")
    assert next(iter(picked(selection))) == "b"
    assert next(iter(picked(made.select("invoice total", lexical_weight=0.0)))) == "a"
    (first, second) = selection.trace.nodes
    assert (first.id, first.kind, first.cosine, first.cosine_rank, first.words_rank) == ("b/x", "tool", 0.5, 2, 1)
    assert first.score == pytest.approx(0.5 + 0.4)
    assert (second.words, second.words_rank) == (None, None)
    assert selection.trace.coverage == pytest.approx(1.0)


def test_the_papers_ranking_can_be_chosen() -> None:
    made = selector(catalog_of(a_x="", b_x=""), {"a/x": 0.9, "b/x": 0.5, "b": 0.4})
    assert list(picked(made.select("q"))) == ["a", "b"]
    by_rank = made.select("q", ranking="agent_as_a_graph")
    assert [(agent.id, agent.score) for agent in by_rank.agents] == [("b", 1.5 / (60 + 3)), ("a", 1 / (60 + 1))]


@pytest.mark.parametrize("query", ["", "   ", "\n"])
def test_an_empty_query_fits_nothing(query: str) -> None:
    selection = selector(catalog_of(a_x=""), {"a/x": 0.9}).select(query)
    assert (selection.query, selection.agents, selection.verdict) == (query, (), "nothing_fits")


def test_an_empty_catalog_fits_nothing() -> None:
    assert selector(Catalog(), {}).select("anything").verdict == "nothing_fits"


def test_an_agent_without_tools_is_picked_with_none() -> None:
    made = selector(Catalog(agents=(Agent(id="a"),)), {"a": 0.9})
    assert picked(made.select("q")) == {"a": []}
    assert made.select("q").verdict == "nothing_fits"


@pytest.mark.parametrize(("score", "verdict"), [(0.36, "found"), (0.35, "found"), (0.34, "nothing_fits")])
def test_the_verdict_is_about_the_best_tool(score: float, verdict: str) -> None:
    assert selector(catalog_of(a_x=""), {"a/x": score, "a": 0.99}).select("q").verdict == verdict


def test_a_lone_surrogate_in_the_query_does_no_harm() -> None:
    selection = selector(catalog_of(a_x=""), {"a/x": 0.9}).select("find \ud800 it")
    assert selection.query == "find ? it"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"tool": 3}, "unknown setting tool: there are agents, tools, pool"),
        ({"agents": 0}, "agents must be a whole number of at least 1, not 0"),
        ({"tools": -1}, "tools must be"),
        ({"pool": "9"}, "pool must be a whole number of at least 1, not '9'"),
        ({"rrf_k": 0.5}, "rrf_k must be"),
        ({"expand": -1}, "expand must be a whole number of at least 0, not -1"),
        ({"ranking": "best"}, "ranking must be 'scores' or 'agent_as_a_graph', not 'best'"),
        ({"without": "weather"}, "without must be a sequence of agent ids, not the text 'weather'"),
    ],
)
def test_a_setting_that_cannot_work_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        selector(catalog_of(a_x=""), {"a/x": 0.9}).select("q", **change)
    assert said in str(caught.value)


def test_the_trace_says_every_setting_and_every_tool_that_was_taken() -> None:
    scores = {f"a/t{i}": 0.9 - i / 1000 for i in range(80)}
    made = selector(catalog_of(**{f"a_t{i}": "" for i in range(80)}), scores)
    selection = made.select("q", tools=70)
    assert selection.trace.settings["tools"] == 70
    assert {tool.id for tool in selection.tools} <= {node.id for node in selection.trace.nodes}
    assert explain_tool("a/t69", selection) == "score 0.83, meaning 0.83 (#70)"


def test_a_selection_becomes_plain_values() -> None:
    selection = selector(catalog_of(a_x="b_y"), {"a/x": 0.9}).select("q", agents=1)
    plain = selection.to_dict()
    assert "trace" not in plain
    assert [tool["id"] for tool in plain["agents"][0]["tools"]] == ["a/x", "b/y"]
    assert selection.to_dict(trace=True)["trace"]["settings"]["agents"] == 1


def test_all_tools_are_listed_once_those_of_dependencies_last() -> None:
    made = selector(catalog_of(a_x="b_y", c_z=""), {"a/x": 0.9, "c/z": 0.5})
    assert [tool.id for tool in made.select("q").tools] == ["a/x", "c/z", "b/y"]


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
        "expand": st.integers(0, 4),
        "direct_first": st.booleans(),
        "ranking": st.sampled_from(["scores", "agent_as_a_graph"]),
    }
)


@settings(max_examples=200, deadline=None)
@given(catalogs, all_scores, changes)
def test_no_selection_breaks_its_bounds(catalog: Catalog, scores: dict[str, float], change: dict[str, Any]) -> None:
    selection = selector(catalog, scores).select("q", **change)
    tools = [tool.id for agent in selection.agents for tool in agent.tools]
    assert len(tools) <= change["tools"]
    assert len(set(tools)) == len(tools)
    assert len({agent.id for agent in selection.agents}) == len(selection.agents) <= change["agents"]
    assert not set(tools) & {cut.id for cut in selection.trace.cut}
    for agent in selection.agents:
        assert all(catalog.tool(tool.via[0]).agent == agent.id for tool in agent.tools)


@settings(max_examples=200, deadline=None)
@given(catalogs, all_scores, changes)
def test_a_requirement_of_a_kept_tool_is_only_missing_where_the_best_tool_alone_spends_the_budget(
    catalog: Catalog, scores: dict[str, float], change: dict[str, Any]
) -> None:
    selection = selector(catalog, scores).select("q", **change)
    kept = {tool.id for tool in selection.tools}
    if any(required(catalog, tool) - kept for tool in kept):
        (best,) = [tool.id for tool in selection.tools if len(tool.via) == 1]
        assert kept <= {best} | required(catalog, best)
        assert len(kept) == change["tools"]


@settings(max_examples=50, deadline=None)
@given(catalogs, all_scores, changes)
def test_the_same_question_gets_the_same_answer(
    catalog: Catalog, scores: dict[str, float], change: dict[str, Any]
) -> None:
    made = selector(catalog, scores)
    first = made.select("q", **change)
    assert made.select("q", **change) == first
    assert selector(catalog, scores).select("q", **change) == first


@settings(max_examples=100, deadline=None)
@given(all_scores, st.sampled_from(["scores", "agent_as_a_graph"]))
def test_an_unrelated_agent_never_changes_the_order_of_the_others(scores: dict[str, float], ranking: Any) -> None:
    named = dict.fromkeys(NAMES, "")
    before = selector(catalog_of(**named), scores).select("q", agents=9, ranking=ranking)
    wider = selector(catalog_of(**named, d_x=""), {**scores, "d": -1.0, "d/x": -1.0})
    after = wider.select("q", agents=9, ranking=ranking)
    assert [agent.id for agent in after.agents if agent.id != "d"] == [agent.id for agent in before.agents]


def test_settings_of_the_selector_hold_unless_a_call_says_otherwise() -> None:
    catalog = catalog_of(a_x="", b_x="")
    made = Selector(catalog, Scripted({"a/x": 0.9, "b/x": 0.8}), LexicalIndex(()), SelectSettings(agents=1))
    assert len(made.select("q").agents) == 1
    assert len(made.select("q", agents=2).agents) == 2
    assert len(made.select("q").agents) == 1
