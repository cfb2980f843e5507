"""Which tools of an agent stand together in a picture."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from callsheet.graphs.catalog.model import Agent, Tool
from callsheet.graphs.text.sanitizing import shown, split_name

_FEWEST, _MOST_OF_GROUP, _FEW_OF_AGENT, _WORDS = 12, 0.7, 0.25, 2


@dataclass(frozen=True, slots=True)
class Group:
    """Tools of one agent that stand together, under a heading where they have one."""

    heading: str
    tools: tuple[Tool, ...]


def groups_of(agent: Agent) -> tuple[Group, ...]:
    """The tools of an agent: core tools first, then what hangs together by dependencies, then the rest.

    What many tools lean on would join all in one, so dependencies on core tools do not count. A small agent is one
    group, in its author's order.

    Source: Blondel et al., Fast unfolding of communities in large networks (2008), as networkx has it.
    """
    if len(agent.tools) <= _FEWEST:
        return (Group("", agent.tools),) if agent.tools else ()
    core = tuple(tool for tool in agent.tools if tool.core)
    others = [tool for tool in agent.tools if not tool.core]
    together = _communities(others)
    joined = {tool.id for group in together for tool in group}
    rest = tuple(tool for tool in others if tool.id not in joined)
    common = Counter(word for tool in agent.tools for word in set(split_name(tool.name).split()))
    seldom = {word for word, n in common.items() if n <= _FEW_OF_AGENT * len(agent.tools)}
    groups = [
        Group("core tools", core),
        *(Group(_heading(group, seldom), tuple(group)) for group in together),
        Group("other tools" if core or together else "", rest),
    ]
    return tuple(group for group in groups if group.tools)


def _communities(tools: list[Tool]) -> list[list[Tool]]:
    """By dependencies among these tools; in a group the most needed first, groups in the order of the catalog."""
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
    found = nx.community.louvain_communities(graph, seed=0)
    groups = [sorted(group, key=lambda tool: (-needed[tool], place[tool])) for group in found]
    return [[by_id[tool] for tool in group] for group in sorted(groups, key=lambda g: min(map(place.__getitem__, g)))]


def _heading(tools: Iterable[Tool], seldom: set[str]) -> str:
    """The words that most names of a group share, and few others of the agent."""
    names = [split_name(tool.name).split() for tool in tools]
    holders: defaultdict[str, int] = defaultdict(int)
    for name in names:
        for word in dict.fromkeys(name):
            holders[word] += 1
    shared = [word for word, n in holders.items() if n >= _MOST_OF_GROUP * len(names) and word in seldom]
    return shown(" ".join(shared[:_WORDS]))
