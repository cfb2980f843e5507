from __future__ import annotations

from callsheet.graphs import Catalog, kind_of, owner, ownership_graph


def test_agents_and_tools_are_nodes_of_one_graph(catalog: Catalog) -> None:
    graph = ownership_graph(catalog)
    kinds = {node: kind_of(graph, node) for node in graph}
    assert [node for node, kind in kinds.items() if kind == "agent"] == ["weather", "units", "maps", "travel"]
    assert [node for node, kind in kinds.items() if kind == "tool"] == list(catalog.tools)


def test_every_tool_has_one_edge_to_its_owner(catalog: Catalog) -> None:
    graph = ownership_graph(catalog)
    assert sorted(graph.edges) == sorted((tool.id, tool.agent) for tool in catalog.tools.values())


def test_the_owner_of_a_tool_is_its_agent_and_an_agent_owns_itself(catalog: Catalog) -> None:
    graph = ownership_graph(catalog)
    assert owner(graph, "units/convert_mass") == "units"
    assert owner(graph, "units") == "units"


def test_dependencies_are_not_ownership(catalog: Catalog) -> None:
    assert list(ownership_graph(catalog).successors("travel/plan_trip")) == ["travel"]


def test_an_empty_catalog_is_an_empty_graph() -> None:
    assert len(ownership_graph(Catalog())) == 0
