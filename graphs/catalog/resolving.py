"""Resolves the tool names in dependencies to ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from callsheet.graphs.catalog.errors import CatalogError, near_names
from callsheet.graphs.catalog.formats.mcp_format import Problem
from callsheet.graphs.catalog.model import Agent, Dependency, Tool


def resolve(agents: Sequence[Agent], *, lenient: Collection[str] = ()) -> tuple[tuple[Agent, ...], tuple[Problem, ...]]:
    """Replaces the names in ``depends_on`` by tool ids.

    A name can be an id, the name of a tool of the same agent, or a bare name that is unique in the catalog.

    Args:
        agents: All agents of the catalog.
        lenient: Ids of agents whose dangling dependencies are dropped and reported, because the server of
            the other tool may be down.

    Returns:
        The agents in their order, and a problem for each dependency that was dropped.

    Raises:
        CatalogError: A name used by any other agent matches no tool, or several.
    """
    ids = {tool.id for agent in agents for tool in agent.tools}
    by_name: dict[str, list[str]] = defaultdict(list)
    for agent in agents:
        for tool in agent.tools:
            by_name[tool.name].append(tool.id)
    problems: list[Problem] = []

    def resolved(tool: Tool) -> Tool:
        edges: list[Dependency] = []
        for edge in tool.depends_on:
            # A server may list many unknown names, and a search for similar names is slow.
            hints = () if tool.agent in lenient else ids
            try:
                edges.append(edge.model_copy(update={"tool": _id(edge.tool, tool, ids, by_name, hints)}))
            except CatalogError as error:
                if tool.agent not in lenient:
                    raise
                problems.append(Problem(tool.agent, "dependency", f"{error}; it is dropped"))
        return tool.model_copy(update={"depends_on": tuple(edges)})

    def with_resolved(agent: Agent) -> Agent:
        if not any(tool.depends_on for tool in agent.tools):
            return agent
        return agent.model_copy(update={"tools": tuple(map(resolved, agent.tools))})

    return tuple(map(with_resolved, agents)), tuple(problems)


def _id(
    name: str, tool: Tool, ids: Collection[str], by_name: Mapping[str, Sequence[str]], hints: Collection[str]
) -> str:
    if name in ids:
        return name
    if (own := f"{tool.agent}/{name}") in ids:
        return own
    candidates = by_name.get(name, ())
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise CatalogError(
            f"tool {tool.id!r} depends on {name!r}, which could be {' or '.join(candidates)}: give the id"
        )
    raise CatalogError(
        f"tool {tool.id!r} depends on {name!r}, which is not in the catalog{near_names(name, hints)}: "
        "correct the name or remove the dependency"
    )
