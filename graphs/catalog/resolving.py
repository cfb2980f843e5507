"""Resolves the tool names in dependencies and skills to ids."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from callsheet.graphs.catalog.errors import CatalogError, near_names
from callsheet.graphs.catalog.formats.mcp_format import Problem
from callsheet.graphs.catalog.model import Agent, Dependency, Skill, Tool

_CODE = re.compile(r"`(?=[^`\s]{0,199}(?:[_/-]|[a-z][A-Z]))([^`\s]{1,200})`")  # `fetch` may be any function
_MOST_NAMED = 200


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
    ids, by_name = _names(agents)
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


def resolve_skills(
    skills: Sequence[Skill], agents: Sequence[Agent], unresolved: Mapping[str, Sequence[str]]
) -> tuple[tuple[Skill, ...], tuple[Problem, ...], dict[str, tuple[str, ...]]]:
    """Replaces the tool names of skills by ids, and adds the tools that their texts name in code spans.

    A name can be an id, a bare name that is unique in the catalog, or ``mcp__agent__tool``, as coding agents write it.
    In the text, a bare name must not be an ordinary word.

    Skills are often written for other programs, so a tool that is not in the catalog is no problem.

    Args:
        skills: All skills of the catalog.
        agents: All agents of the catalog.
        unresolved: Id of a skill -> further names that it allows, which no agent had so far.

    Returns:
        The skills in their order, a problem for each skill that allows a tool by a name that several tools have, and
        the names that are still of no tool.
    """
    ids, by_name = _names(agents)

    def tool_of(name: str) -> str:
        _, _, joined = name.partition("mcp__")
        candidates = [name, *by_name.get(name, ()), joined.replace("__", "/", 1)]
        known = dict.fromkeys(candidate for candidate in candidates if candidate in ids)
        return next(iter(known)) if len(known) == 1 else ""

    problems: list[Problem] = []
    unknown: dict[str, tuple[str, ...]] = {}

    def resolved(skill: Skill) -> Skill:
        allowed = (*skill.tools, *unresolved.get(skill.id, ()))
        missing = [name for name in allowed if not tool_of(name)]
        unknown[skill.id] = tuple(name for name in missing if name not in by_name)
        if unclear := [name for name in missing if name in by_name]:
            could = " or ".join(by_name[unclear[0]][:5])
            message = f"allows {unclear[0]!r}, which could be {could}: give the id; it is used without"
            problems.append(Problem(skill.id, "dependency", message))
        named = (*allowed, *_CODE.findall(skill.text)[:_MOST_NAMED])
        tools = tuple(dict.fromkeys(filter(None, map(tool_of, named))))
        return skill if tools == skill.tools else skill.model_copy(update={"tools": tools})

    return tuple(map(resolved, skills)), tuple(problems), unknown


def _names(agents: Sequence[Agent]) -> tuple[set[str], Mapping[str, Sequence[str]]]:
    """The ids of all tools, and bare name -> ids."""
    by_name: dict[str, list[str]] = defaultdict(list)
    for agent in agents:
        for tool in agent.tools:
            by_name[tool.name].append(tool.id)
    return {tool for tools in by_name.values() for tool in tools}, by_name


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
