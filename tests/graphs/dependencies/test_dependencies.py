from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from callsheet.graphs import (
    Agent,
    Catalog,
    CatalogError,
    Dependency,
    DependencyKind,
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
from scripted import tools_of_a

DIRECT, INDIRECT = DependencyKind.TOOL_DIRECTLY, DependencyKind.TOOL_INDIRECTLY


def walked(catalog: Catalog, start: str, *, direct_first: bool = True) -> str:
    return " ".join(
        r.tool.removeprefix("a/") for r in walk(knowledge_graph(catalog), f"a/{start}", direct_first=direct_first)
    )


def test_the_walk_goes_down_before_it_goes_on() -> None:
    assert walked(tools_of_a(x="b c", b="d", d="e"), "x") == "b d e c"


def test_the_walk_takes_direct_dependencies_first_on_every_level() -> None:
    catalog = tools_of_a(x="b? c", c="d? e")
    assert walked(catalog, "x") == "c e d b"
    assert walked(catalog, "x", direct_first=False) == "b c d e"


def test_siblings_of_one_kind_stay_as_listed() -> None:
    assert walked(tools_of_a(x="d? b c? a"), "x") == "b a d c"


def test_parameter_dependencies_are_direct_or_not_like_those_of_tools() -> None:
    kinds = [DependencyKind.PARAMETER_INDIRECTLY, DependencyKind.PARAMETER_DIRECTLY]
    edges = tuple(Dependency(tool=f"a/{kind.value}", kind=kind) for kind in kinds)
    tools = (Tool(agent="a", name="x", depends_on=edges), *(Tool(agent="a", name=kind.value) for kind in kinds))
    assert walked(Catalog(agents=(Agent(id="a", tools=tools),)), "x") == "parameter_directly parameter_indirectly"


@pytest.mark.parametrize(
    ("needs", "reached"), [({"x": "x"}, ""), ({"x": "b", "b": "x"}, "b"), ({"x": "b", "b": "c", "c": "b"}, "b c")]
)
def test_cycles_end_and_never_come_back_to_the_start(needs: dict[str, str], reached: str) -> None:
    assert walked(tools_of_a(**needs), "x") == reached


def test_a_tool_with_two_ways_is_reached_once_by_the_first() -> None:
    (b, d, c) = walk(knowledge_graph(tools_of_a(x="b c", b="d", c="d")), "a/x")
    assert (b.path, d.path, c.path) == (("a/x", "a/b"), ("a/x", "a/b", "a/d"), ("a/x", "a/c"))


def test_a_walk_of_2000_tools_in_a_row() -> None:
    chain = tools_of_a(**{f"t{i}": f"t{i + 1}" for i in range(2000)})
    assert len(walk(knowledge_graph(chain), "a/t0")) == 2000


def test_the_walk_from_an_unknown_tool_names_a_near_one() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'a/xyz'"):
        walk(knowledge_graph(tools_of_a(xyz="")), "a/xy")


def test_required_is_what_direct_dependencies_alone_lead_to() -> None:
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


def test_of_two_ways_the_one_of_the_largest_product_counts() -> None:
    catalog = tools_of_a(x="d? b c?", b="c", c="d")
    assert weighed(catalog) == {
        "d": ("xd", 0.25),  # by b and c it is .5 * .5 * .5 = .125
        "b": ("xb", 0.5),
        "c": ("xc", 0.25),  # as strong by b, but listed first
    }


def test_a_longer_way_can_be_the_stronger_and_what_lies_behind_it_follows() -> None:
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


def test_of_ways_of_equal_weight_the_first_listed_counts() -> None:
    assert weighed(tools_of_a(x="b c", b="d", c="d"))["d"] == ("xbd", 0.25)
    assert weighed(tools_of_a(x="c b", b="d", c="d"))["d"] == ("xcd", 0.25)


def test_the_strongest_come_in_the_order_of_the_walk_as_listed() -> None:
    assert list(weighed(tools_of_a(x="b? c", b="d", c="e"))) == ["b", "d", "c", "e"]
    reached = strongest(knowledge_graph(tools_of_a(x="b? c", b="c")), "a/x", WEIGHTS)
    assert [(r.tool, r.path, r.direct) for r, _ in reached] == [
        ("a/b", ("a/x", "a/b"), False),
        ("a/c", ("a/x", "a/c"), True),
    ]


@pytest.mark.parametrize(
    ("needs", "found"),
    [
        ({"x": "x"}, {}),
        ({"x": "b", "b": "x"}, {"b": ("xb", 0.5)}),
        ({"x": "b", "b": "c", "c": "b x"}, {"b": ("xb", 0.5), "c": ("xbc", 0.25)}),
    ],
)
def test_going_round_a_cycle_gains_nothing(needs: dict[str, str], found: dict[str, tuple[str, float]]) -> None:
    catalog = tools_of_a(**needs)
    assert weighed(catalog) == found
    assert len(strongest(knowledge_graph(catalog), "a/x", dict.fromkeys(WEIGHTS, 1.0))) == len(found)


def test_a_dependency_loses_for_each_that_is_listed_before_it() -> None:
    catalog = tools_of_a(x="b c d", b="d e")
    found = {r.tool: (r.path, weight) for r, weight in strongest(knowledge_graph(catalog), "a/x", WEIGHTS, listing=0.5)}
    assert found == {
        "a/b": (("a/x", "a/b"), 0.5),
        "a/d": (("a/x", "a/b", "a/d"), 0.5 * 0.5),  # listed third by x: .5 * .5 ** 2 = .125
        "a/e": (("a/x", "a/b", "a/e"), 0.5 * (0.5 * 0.5)),
        "a/c": (("a/x", "a/c"), 0.5 * 0.5),
    }


def test_what_has_no_weight_is_not_reached_and_an_unknown_tool_is_named() -> None:
    graph = knowledge_graph(tools_of_a(x="b c?", b="d"))
    assert [r.tool for r, _ in strongest(graph, "a/x", {DIRECT: 0.0, INDIRECT: 0.5})] == ["a/c"]
    with pytest.raises(UnknownNameError, match="did you mean 'a/xyz'"):
        strongest(knowledge_graph(tools_of_a(xyz="")), "a/xy", WEIGHTS)


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


@given(any_catalog())
def test_the_order_of_siblings_never_changes_which_tools_are_reached(catalog: Catalog) -> None:
    graph = knowledge_graph(catalog)
    ways = [{r.tool for r in walk(graph, "a/x", direct_first=way)} for way in (True, False)]
    assert ways[0] == ways[1]


def listed(agent: str, *names: str, needs: str = "", by: str = "") -> Agent:
    meta = {"callsheet/depends_on": [{"tool": needs, "kind": "tool_directly"}]}
    return agent_from_listing(agent, [{"name": n, "_meta": meta if n == by else {}} for n in names])[0]


def resolved(*agents: Agent) -> str:
    (edge,) = load(SourceCatalog(agents)).catalog.tool("a/x").depends_on
    return edge.tool


def test_an_id_goes_before_every_bare_name() -> None:
    assert resolved(listed("a", "x", "b/y", needs="b/y", by="x"), listed("b", "y")) == "b/y"


def test_a_bare_name_means_a_tool_of_the_same_agent_first() -> None:
    assert resolved(listed("a", "x", "y", needs="y", by="x"), listed("b", "y")) == "a/y"


def test_a_bare_name_means_another_agents_tool_where_it_is_unique() -> None:
    assert resolved(listed("a", "x", needs="y", by="x"), listed("b", "y"), listed("c", "z")) == "b/y"


def test_an_ambiguous_name_lists_what_it_could_be() -> None:
    with pytest.raises(CatalogError, match=r"'a/x' depends on 'y', which could be b/y or c/y: give the id"):
        resolved(listed("a", "x", needs="y", by="x"), listed("b", "y"), listed("c", "y"))


def test_a_dangling_name_gives_near_ones() -> None:
    with pytest.raises(CatalogError, match=r"'a/x' depends on 'b/yy'.*did you mean 'b/y'.*remove the dependency"):
        resolved(listed("a", "x", needs="b/yy", by="x"), listed("b", "y"))


def test_a_live_server_loses_a_dangling_dependency_and_says_so() -> None:
    loaded = load(SourceCatalog((listed("a", "x", needs="b/y", by="x"),), connections={"a": object()}))
    assert loaded.catalog.tool("a/x").depends_on == ()
    assert [(p.agent, p.kind) for p in loaded.problems] == [("a", "dependency")]
    assert "'b/y'" in loaded.problems[0].message
    assert loaded.problems[0].message.endswith("it is dropped")
