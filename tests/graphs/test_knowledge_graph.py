"""The knowledge graph: its nodes and edges, and that a user's view leads nowhere else."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest

from callsheet.graphs import (
    Agent,
    Catalog,
    Dependency,
    DependencyKind,
    Policy,
    Relation,
    Tool,
    UnknownNameError,
    kind_of,
    knowledge_graph,
    needed_by,
    needs,
    owner,
    walk,
)

DIRECT = DependencyKind.TOOL_DIRECTLY


def test_agents_and_tools_are_nodes_of_one_graph_built_once_per_catalog(catalog: Catalog) -> None:
    graph = knowledge_graph(catalog)
    kinds = {node: kind_of(graph, node) for node in graph}
    assert [node for node, kind in kinds.items() if kind == "agent"] == ["weather", "units", "maps", "travel"]
    assert [node for node, kind in kinds.items() if kind == "tool"] == list(catalog.tools)
    assert knowledge_graph(catalog) is graph
    with pytest.raises(nx.NetworkXError, match="Frozen"):
        graph.add_node("another")


def test_every_tool_has_one_owner_and_an_agent_owns_itself(catalog: Catalog) -> None:
    graph = knowledge_graph(catalog)
    owned = [(tool, agent) for tool, agent, kind in graph.edges(data="kind") if kind == Relation.OWNED_BY]
    assert sorted(owned) == sorted((tool.id, tool.agent) for tool in catalog.tools.values())
    assert owner(graph, "units/convert_mass") == owner(graph, "units") == "units"
    assert owner(graph, "travel/plan_trip") == "travel"  # it also depends on tools


def test_the_graph_keeps_every_dependency_with_its_fields_and_order() -> None:
    edges = (
        Dependency(tool="a/y", kind=DIRECT, reason="why"),
        Dependency(tool="a/z", kind=DIRECT),
        Dependency(tool="a/y", kind=DependencyKind.PARAMETER_DIRECTLY, parameter="p"),
    )
    needed = (Tool(agent="a", name="y", core=True), Tool(agent="a", name="z"))
    tools = (Tool(agent="a", name="x", depends_on=edges), *needed)
    graph = knowledge_graph(Catalog(agents=(Agent(id="a", tools=tools),)))
    assert [node for node, core in graph.nodes(data="core") if core] == ["a/y"]
    assert tuple(needs(graph, "a/x")) == edges
    assert needed_by(graph, "a/y") == [("a/x", edges[0]), ("a/x", edges[2])]
    kinds = [kind for *_, kind in graph.edges("a/x", data="kind")]
    assert kinds == ["owned_by", "tool_directly", "parameter_directly", "tool_directly"]


def test_no_path_in_a_users_view_leads_to_a_tool_hidden_by_policy() -> None:
    indirect = DependencyKind.TOOL_INDIRECTLY
    needs_of: dict[str, Any] = {"x": ("secret", "y"), "y": (), "secret": ("z",), "z": ()}
    tools = tuple(
        Tool(agent="a", name=n, depends_on=tuple(Dependency(tool=f"a/{t}", kind=indirect) for t in others))
        for n, others in needs_of.items()
    )
    whole = Catalog(agents=(Agent(id="a", tools=tools),))
    view = Policy(default="allow", deny=("a/secret",)).view(whole)
    graph = knowledge_graph(view.catalog)
    assert [one.tool for one in walk(knowledge_graph(whole), "a/x")] == ["a/secret", "a/z", "a/y"]
    assert [one.tool for one in walk(graph, "a/x")] == ["a/y"]
    assert nx.descendants(graph, "a/x") == {"a", "a/y"}
    assert "a/secret" not in graph
    assert not needed_by(graph, "a/z")
    with pytest.raises(UnknownNameError):
        walk(graph, "a/secret")
