"""The bipartite graph of agents and their tools (Agent-as-a-Graph)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from callsheet.graphs.catalog.model import Catalog

if TYPE_CHECKING:
    import networkx as nx

NodeKind = Literal["agent", "tool"]
OwnershipGraph: TypeAlias = "nx.DiGraph[str]"


def ownership_graph(catalog: Catalog) -> OwnershipGraph:
    """Agents and tools as nodes, with an edge from each tool to its owner.

    Source: Agent-as-a-Graph, section 3.1.

    Returns:
        A graph whose nodes are ids with the attribute ``kind`` (``agent`` or ``tool``).
    """
    import networkx as nx

    graph: OwnershipGraph = nx.DiGraph()
    for agent in catalog.agents:
        graph.add_node(agent.id, kind="agent")
        for tool in agent.tools:
            graph.add_node(tool.id, kind="tool")
            graph.add_edge(tool.id, agent.id, kind="owned_by")
    return graph


def owner(graph: OwnershipGraph, node: str) -> str:
    """Id of the agent that owns a node; an agent owns itself."""
    return node if kind_of(graph, node) == "agent" else next(iter(graph.successors(node)))


def kind_of(graph: OwnershipGraph, node: str) -> NodeKind:
    """Whether a node is an agent or a tool."""
    return cast("NodeKind", graph.nodes[node]["kind"])
