"""Walks along dependencies, their weights, also of those that nobody stands for yet, and the names that tools give."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from callsheet.graphs import (
    Agent,
    Catalog,
    CatalogError,
    Dependency,
    DependencyKind,
    KnowledgeGraph,
    Provenance,
    SourceCatalog,
    Tool,
    UnknownNameError,
    agent_from_listing,
    knowledge_graph,
    load,
    required_paths,
    strongest,
    walk,
)
from callsheet.graphs.lint import lint
from scripted import tools_of_a

DIRECT, INDIRECT = DependencyKind.TOOL_DIRECTLY, DependencyKind.TOOL_INDIRECTLY


def test_a_walk_visits_direct_dependencies_first_or_in_the_listed_order() -> None:
    cases = [
        ({"x": "b c", "b": "d", "d": "e"}, "b d e c", "b d e c"),  # down before it goes on
        ({"x": "b? c", "c": "d? e"}, "c e d b", "b c d e"),  # direct ones first, on every level
        ({"x": "d? b c? a"}, "b a d c", "d b c a"),  # siblings of one kind as listed
        ({"x": "x"}, "", ""),
        ({"x": "b", "b": "x"}, "b", "b"),
        ({"x": "b", "b": "c", "c": "b"}, "b c", "b c"),
    ]
    for needs, as_walked, as_listed in cases:
        graph = knowledge_graph(tools_of_a(**needs))
        for direct_first, order in ((True, as_walked), (False, as_listed)):
            reached = walk(graph, "a/x", direct_first=direct_first)
            assert " ".join(one.tool.removeprefix("a/") for one in reached) == order


def test_a_tool_with_two_paths_is_reached_once_by_the_first() -> None:
    (b, d, c) = walk(knowledge_graph(tools_of_a(x="b c", b="d", c="d")), "a/x")
    assert (b.path, d.path, c.path) == (("a/x", "a/b"), ("a/x", "a/b", "a/d"), ("a/x", "a/c"))


def test_a_walk_of_2000_tools_in_a_row() -> None:
    chain = tools_of_a(**{f"t{i}": f"t{i + 1}" for i in range(2000)})
    assert len(walk(knowledge_graph(chain), "a/t0")) == 2000


def test_required_tools_are_reached_by_direct_dependencies_alone() -> None:
    catalog = tools_of_a(x="b c?", b="d", c="e", d="x")
    graph = knowledge_graph(catalog)
    assert required_paths(graph, "a/x") == {"a/b": ("a/x", "a/b"), "a/d": ("a/x", "a/b", "a/d")}
    assert {r.tool for r in walk(graph, "a/x") if r.direct} == {"a/b", "a/d"}


def test_a_required_tool_that_is_reached_over_an_optional_one_counts_as_required() -> None:
    reached = walk(knowledge_graph(tools_of_a(x="b? c", b="c")), "a/x", direct_first=False)
    assert [(r.tool, r.path, r.direct) for r in reached] == [
        ("a/b", ("a/x", "a/b"), False),
        ("a/c", ("a/x", "a/b", "a/c"), True),
    ]


WEIGHTS = {
    DIRECT: 0.5,
    INDIRECT: 0.25,
    DependencyKind.PARAMETER_DIRECTLY: 0.9,
    DependencyKind.PARAMETER_INDIRECTLY: 0.8,
}


def weighed(catalog: Catalog, start: str = "a/x") -> dict[str, tuple[str, float]]:
    """Tool -> its path and its weight, in the order of the answer."""
    found = strongest(knowledge_graph(catalog), start, WEIGHTS)
    return {r.tool[2:]: ("".join(tool[2:] for tool in r.path), weight) for r, weight in found}


def test_the_path_with_the_largest_product_of_weights_counts() -> None:
    cases = [
        # By b and c, d is .5 * .5 * .5 = .125; c is as strong by b, but listed first.
        ({"x": "d? b c?", "b": "c", "c": "d"}, {"d": ("xd", 0.25), "b": ("xb", 0.5), "c": ("xc", 0.25)}),
        ({"x": "b c", "b": "d", "c": "d"}, {"b": ("xb", 0.5), "d": ("xbd", 0.25), "c": ("xc", 0.5)}),
        ({"x": "c b", "b": "d", "c": "d"}, {"c": ("xc", 0.5), "d": ("xcd", 0.25), "b": ("xb", 0.5)}),
        ({"x": "b? c", "b": "d"}, {"b": ("xb", 0.25), "d": ("xbd", 0.125), "c": ("xc", 0.5)}),
        ({"x": "x"}, {}),
        ({"x": "b", "b": "x"}, {"b": ("xb", 0.5)}),
        ({"x": "b", "b": "c", "c": "b x"}, {"b": ("xb", 0.5), "c": ("xbc", 0.25)}),
    ]
    for needs, found in cases:
        assert weighed(tools_of_a(**needs)) == found
        assert list(weighed(tools_of_a(**needs))) == list(found)


def test_a_longer_path_can_be_stronger_and_later_tools_follow_it() -> None:
    parameter = DependencyKind.PARAMETER_DIRECTLY
    edges = {"x": [("b", INDIRECT), ("c", parameter)], "c": [("b", parameter)], "b": [("d", DIRECT)]}
    tools = tuple(
        Tool(agent="a", name=n, depends_on=tuple(Dependency(tool=f"a/{t}", kind=k) for t, k in edges.get(n, ())))
        for n in "xbcd"
    )
    found = weighed(Catalog(agents=(Agent(id="a", tools=tools),)))
    assert found == {
        "b": ("xcb", pytest.approx(0.9 * 0.9)),
        "d": ("xcbd", pytest.approx(0.9 * 0.9 * 0.5)),
        "c": ("xc", pytest.approx(0.9)),
    }
    assert list(found) == ["b", "d", "c"]


def test_a_dependency_loses_for_each_that_is_listed_before_it() -> None:
    catalog = tools_of_a(x="b c d", b="d e")
    found = {r.tool: (r.path, weight) for r, weight in strongest(knowledge_graph(catalog), "a/x", WEIGHTS, listing=0.5)}
    assert found == {
        "a/b": (("a/x", "a/b"), 0.5),
        "a/d": (("a/x", "a/b", "a/d"), 0.5 * 0.5),  # listed third by x: .5 * .5 ** 2 = .125
        "a/e": (("a/x", "a/b", "a/e"), 0.5 * (0.5 * 0.5)),
        "a/c": (("a/x", "a/c"), 0.5 * 0.5),
    }


def test_a_kind_of_weight_zero_is_not_followed_and_an_unknown_tool_is_named() -> None:
    graph = knowledge_graph(tools_of_a(x="b c?", b="d"))
    assert [r.tool for r, _ in strongest(graph, "a/x", {DIRECT: 0.0, INDIRECT: 0.5})] == ["a/c"]
    graph = knowledge_graph(tools_of_a(xyz=""))
    for look in (lambda: strongest(graph, "a/xy", WEIGHTS), lambda: walk(graph, "a/xy")):
        with pytest.raises(UnknownNameError, match="did you mean 'a/xyz'"):
            look()


@st.composite
def any_catalog(draw: st.DrawFn) -> Catalog:
    names = "bcdefx"
    words = st.lists(st.sampled_from([n + q for n in names for q in ("", "?")]), max_size=4)
    return tools_of_a(**{name: " ".join(draw(words)) for name in names})


@given(any_catalog(), st.booleans())
def test_every_walk_ends_reaches_each_tool_once_and_all_that_is_required(catalog: Catalog, direct_first: bool) -> None:
    graph = knowledge_graph(catalog)
    reached = walk(graph, "a/x", direct_first=direct_first)
    tools = [r.tool for r in reached]
    assert len(set(tools)) == len(tools)
    assert set(tools) == {r.tool for r in walk(graph, "a/x", direct_first=not direct_first)}
    assert "a/x" not in tools
    assert {r.tool for r in reached if r.direct} == set(required_paths(graph, "a/x"))
    for r in reached:
        assert (r.path[0], r.path[-1]) == ("a/x", r.tool)
        for needing, needed in zip(r.path, r.path[1:], strict=False):
            assert needed in [edge.tool for edge in catalog.tool(needing).depends_on]


@given(any_catalog())
def test_every_strongest_weight_is_the_product_along_its_path_and_no_edge_makes_it_better(catalog: Catalog) -> None:
    found = {r.tool: (r, weight) for r, weight in strongest(knowledge_graph(catalog), "a/x", WEIGHTS)}
    assert list(found) == [r.tool for r in walk(knowledge_graph(catalog), "a/x", direct_first=False)]
    weights = {"a/x": 1.0, **{tool: weight for tool, (_, weight) in found.items()}}
    for r, weight in found.values():
        product = 1.0
        for needing, needed in zip(r.path, r.path[1:], strict=False):
            product *= max(WEIGHTS[e.kind] for e in catalog.tool(needing).depends_on if e.tool == needed)
        assert (r.path[0], r.path[-1], weight) == ("a/x", r.tool, pytest.approx(product))
    for tool, weight in weights.items():
        for edge in catalog.tool(tool).depends_on:
            assert weights[edge.tool] >= weight * WEIGHTS[edge.kind] - 1e-12


def listed(agent: str, *names: str, needs: str = "", by: str = "") -> Agent:
    meta = {"callsheet/depends_on": [{"tool": needs, "kind": "tool_directly"}]}
    return agent_from_listing(agent, [{"name": n, "_meta": meta if n == by else {}} for n in names])[0]


def resolved(*agents: Agent) -> str:
    (edge,) = load(SourceCatalog(agents)).catalog.tool("a/x").depends_on
    return edge.tool


def test_a_dependency_name_is_an_id_or_a_tool_of_the_same_agent_or_of_any() -> None:
    assert resolved(listed("a", "x", "b/y", needs="b/y", by="x"), listed("b", "y")) == "b/y"
    assert resolved(listed("a", "x", "y", needs="y", by="x"), listed("b", "y")) == "a/y"
    assert resolved(listed("a", "x", needs="y", by="x"), listed("b", "y"), listed("c", "z")) == "b/y"
    with pytest.raises(CatalogError, match=r"'a/x' depends on 'b/yy'.*did you mean 'b/y'.*remove the dependency"):
        resolved(listed("a", "x", needs="b/yy", by="x"), listed("b", "y"))


@pytest.mark.parametrize("live", [(), ("a", "b", "c"), ("c",)])
def test_an_ambiguous_dependency_name_means_the_tool_of_the_server_pinned_first(live: tuple[str, ...]) -> None:
    """Whoever adds a server with a tool of the same name stops nobody, and takes nothing over."""
    agents = (listed("a", "x", needs="y", by="x"), listed("c", "y"), listed("b", "y"))
    connections: Any = {agent: object() for agent in live}
    for places, meant in (({"a": 1, "b": 2, "c": 3}, "b/y"), ({"c": 1, "b": 2}, "c/y"), ({}, "c/y"), ({"c": 1}, "b/y")):
        loaded = load(SourceCatalog(agents, connections=connections, places=places))
        (edge,) = loaded.catalog.tool("a/x").depends_on
        assert edge.tool == meant
        (problem,) = loaded.problems
        other = "c/y" if meant == "b/y" else "b/y"
        assert problem.message == (
            f"tool 'a/x' depends on 'y', which could be {meant} or {other}: {meant} is meant, whose server came first; "
            "to be sure, give the id"
        )
        assert problem.word == "ambiguous"
        assert ("ambiguous-name", "warning") in [(one.rule, one.severity.value) for one in lint(loaded)]


def test_a_dependency_on_a_server_that_is_gone_stops_no_other_agent() -> None:
    """The agent that needs it comes from a manifest, the other tools from servers."""
    agents = (listed("a", "x", needs="gone/y", by="x"), listed("b", "z"))
    loaded = load(SourceCatalog(agents, connections={"b": object()}))
    assert list(loaded.catalog.tools) == ["a/x", "b/z"]
    assert loaded.problems[0].message.endswith("it is dropped")


def test_a_live_server_loses_a_dangling_dependency_and_says_so() -> None:
    loaded = load(SourceCatalog((listed("a", "x", needs="b/y", by="x"),), connections={"a": object()}))
    assert loaded.catalog.tool("a/x").depends_on == ()
    assert [(p.agent, p.kind) for p in loaded.problems] == [("a", "dependency")]
    assert "'b/y'" in loaded.problems[0].message
    assert loaded.problems[0].message.endswith("it is dropped")


EQUAL = dict.fromkeys(DependencyKind, 0.8)


def edge(tool: str, provenance: Provenance, confidence: float = 1.0) -> Dependency:
    return Dependency(
        tool=tool, kind=DependencyKind.TOOL_DIRECTLY, provenance=provenance, confidence=confidence, count=1
    )


@pytest.fixture
def graph() -> KnowledgeGraph:
    needs = (
        edge("a/declared", Provenance.DECLARED, 0.1),
        edge("a/proposed", Provenance.PROPOSED, 0.5),
        edge("a/reviewed", Provenance.REVIEWED, 0.2),
        edge("a/observed", Provenance.OBSERVED, 0.9),
    )
    names = ("declared", "proposed", "reviewed", "observed")
    tools = (Tool(agent="a", name="start", depends_on=needs), *(Tool(agent="a", name=name) for name in names))
    return knowledge_graph(Catalog(agents=(Agent(id="a", tools=tools),)))


def test_only_declared_or_reviewed_dependencies_are_required_or_walked(graph: KnowledgeGraph) -> None:
    assert set(required_paths(graph, "a/start")) == {"a/declared", "a/reviewed"}
    assert [reached.tool for reached in walk(graph, "a/start")] == ["a/declared", "a/reviewed"]
    assert len(walk(graph, "a/start", proposed=True)) == 4


def test_confidence_and_a_setting_scale_the_weight_of_unreviewed_dependencies(graph: KnowledgeGraph) -> None:
    found = {reached.tool: weight for reached, weight in strongest(graph, "a/start", EQUAL, listing=0.5)}
    assert found == {"a/declared": 0.8, "a/reviewed": 0.8 * 0.5}, "the others do not even count as listed before"
    weighed = strongest(graph, "a/start", EQUAL, listing=1.0, proposed=0.5)
    with_them = {reached.tool: (weight, reached.direct) for reached, weight in weighed}
    assert with_them["a/proposed"] == (pytest.approx(0.8 * 0.5 * 0.5**2), False)
    assert with_them["a/observed"] == (pytest.approx(0.8 * 0.5 * 0.9**2), False)
    assert with_them["a/declared"] == (0.8, True), "confidence is no matter where a person stands for it"


def test_two_edges_to_one_tool_count_as_one_place_in_the_list() -> None:
    first = edge("a/x", Provenance.DECLARED)
    again = first.model_copy(update={"kind": DependencyKind.PARAMETER_DIRECTLY, "parameter": "p"})
    tools = (
        Tool(agent="a", name="start", depends_on=(first, again, edge("a/y", Provenance.DECLARED))),
        Tool(agent="a", name="x"),
        Tool(agent="a", name="y"),
    )
    found = strongest(knowledge_graph(Catalog(agents=(Agent(id="a", tools=tools),))), "a/start", EQUAL, listing=0.5)
    assert {reached.tool: weight for reached, weight in found} == {"a/x": 0.8, "a/y": 0.4}


def test_one_source_of_an_argument_is_enough_and_an_optional_argument_counts_half() -> None:
    kinds = (DependencyKind.PARAMETER_DIRECTLY, DependencyKind.PARAMETER_INDIRECTLY)
    required_arg, other, optional = (
        edge(f"a/{name}", Provenance.PROPOSED, 0.9).model_copy(update={"kind": kind, "parameter": parameter})
        for name, kind, parameter in (("x", kinds[0], "p"), ("y", kinds[1], "p"), ("z", kinds[1], "q"))
    )
    tools = (
        Tool(agent="a", name="start", depends_on=(required_arg, other, optional)),
        *(Tool(agent="a", name=name) for name in "xyz"),
    )
    found = strongest(knowledge_graph(Catalog(agents=(Agent(id="a", tools=tools),))), "a/start", EQUAL, proposed=1.0)
    assert {reached.tool: weight for reached, weight in found} == pytest.approx(
        {
            "a/x": 0.8 * 0.9**2,
            "a/y": 0.8 * 0.9**2 * 0.5 * (1 - 0.9),  # used only if x is not
            "a/z": 0.8 * 0.9**2 * 0.5,
        }
    )
