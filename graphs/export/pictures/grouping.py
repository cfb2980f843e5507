"""Groups the tools of an agent for a picture."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from callsheet.graphs.catalog.model import Agent, Tool
from callsheet.graphs.text.sanitizing import shown, split_name

_FEWEST, _MOST_OF_GROUP, _FEW_OF_AGENT, _WORDS = 12, 0.7, 0.25, 2


@dataclass(frozen=True, slots=True)
class Group:
    """Tools of one agent that are drawn together; the heading may be empty."""

    heading: str
    tools: tuple[Tool, ...]


def groups_of(agent: Agent) -> tuple[Group, ...]:
    """The tools of an agent: core tools first, then communities by dependencies, then the others.

    Dependencies on core tools do not count, because they would join all tools. A small agent is one group, in its
    original order.

    Source: Blondel et al., Fast unfolding of communities in large networks (2008), as networkx has it.
    """
    if len(agent.tools) <= _FEWEST:
        return (Group("", agent.tools),) if agent.tools else ()
    core = tuple(tool for tool in agent.tools if tool.core)
    others = [tool for tool in agent.tools if not tool.core]
    communities = _communities(others)
    members = {tool.id for group in communities for tool in group}
    rest = tuple(tool for tool in others if tool.id not in members)
    common = Counter(word for tool in agent.tools for word in set(split_name(tool.name).split()))
    rare = {word for word, n in common.items() if n <= _FEW_OF_AGENT * len(agent.tools)}
    groups = [
        Group("core tools", core),
        *(Group(_heading(group, rare), tuple(group)) for group in communities),
        Group("other tools" if core or communities else "", rest),
    ]
    return tuple(group for group in groups if group.tools)


def _communities(tools: list[Tool]) -> list[list[Tool]]:
    """Communities by dependencies, in the order of the catalog; in each, the most needed tools first."""
    import networkx as nx

    by_id = {tool.id: tool for tool in tools}
    edges = [(tool.id, edge.tool) for tool in tools for edge in tool.depends_on if edge.tool in by_id]
    if not edges:
        return []
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from(tool.id for tool in tools if any(tool.id in pair for pair in edges))
    graph.add_edges_from(edges)
    place = {tool.id: i for i, tool in enumerate(tools)}
    needed = Counter(target for _, target in edges)
    communities = nx.community.louvain_communities(graph, seed=0)
    groups = [sorted(group, key=lambda tool: (-needed[tool], place[tool])) for group in communities]
    return [[by_id[tool] for tool in group] for group in sorted(groups, key=lambda g: min(map(place.__getitem__, g)))]


def _heading(tools: Iterable[Tool], rare: set[str]) -> str:
    """The words that most names of a group share, but few other names of the agent."""
    names = [split_name(tool.name).split() for tool in tools]
    holders: defaultdict[str, int] = defaultdict(int)
    for name in names:
        for word in dict.fromkeys(name):
            holders[word] += 1
    shared = [word for word, n in holders.items() if n >= _MOST_OF_GROUP * len(names) and word in rare]
    return shown(" ".join(shared[:_WORDS]))
