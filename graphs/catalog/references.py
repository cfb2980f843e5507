"""Replaces the names of tools in dependencies and skills by ids."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from callsheet.graphs.catalog.formats.manifests import AMBIGUOUS, Problem
from callsheet.graphs.catalog.model import Agent, Dependency, Skill, Tool
from callsheet.graphs.errors import CatalogError, near_names

_CODE = re.compile(r"`(?=[^`\s]{0,199}(?:[_/-]|[a-z][A-Z]))([^`\s]{1,200})`")
"""A code span that may name a tool: a word without a separator or an inner capital (``fetch``) may be any function."""
_MOST_NAMED = 200
"""Code spans of a skill that are looked up."""
_MOST_CANDIDATES = 5
"""Tools of one name that a message lists."""


def separate_ids(agents: Sequence[Agent], skills: Sequence[Skill]) -> tuple[tuple[Agent, ...], tuple[Problem, ...]]:
    """Removes tools whose id falls under another agent's or a skill's id, and reports each.

    A tool ``b/ok`` of ``a`` has the id of the tool ``ok`` of an agent ``a/b``. Servers name tools, users name agents.
    """
    nodes = {agent.id for agent in agents} | {skill.id for skill in skills}
    problems = list[Problem]()
    result = list[Agent]()
    for agent in agents:
        tools = list[Tool]()
        for tool in agent.tools:
            other = _node_above(tool, nodes)
            if other is None:
                tools.append(tool)
            else:
                message = f"tool {tool.name!r} is left out: {tool.id!r} belongs to {other!r} by its name"
                problems.append(Problem(tool.agent, "malformed", message))
        changed = len(tools) < len(agent.tools)
        result.append(agent.model_copy(update={"tools": tuple(tools)}) if changed else agent)
    return tuple(result), tuple(problems)


def _node_above(tool: Tool, nodes: Collection[str]) -> str | None:
    """Returns the first node under whose id the tool's id falls: ``a/b`` for the tool ``b/ok`` of ``a``."""
    prefix = tool.agent
    for part in tool.name.split("/"):
        prefix = f"{prefix}/{part}"
        if prefix in nodes:
            return prefix
    return None


def resolve(
    agents: Sequence[Agent], *, lenient: Collection[str] = (), places: Mapping[str, int] | None = None
) -> tuple[tuple[Agent, ...], tuple[Problem, ...]]:
    """Replaces the names in ``depends_on`` by tool ids: an id, a tool of the same agent, or the name of any tool.

    If several tools have a name, it refers to the one whose server was pinned first (``places``), and a problem reports
    this; so a server that is added later changes nothing. A dependency on a missing tool is dropped and reported if
    there are ``lenient`` agents, because the server of that tool may be down.

    Raises:
        CatalogError: A name matches no tool, and no agent is lenient.
    """
    resolver = _Resolver(agents, places or {}, lenient)
    resolved = [agent.model_copy(update={"tools": tuple(map(resolver.resolved, agent.tools))}) for agent in agents]
    return tuple(resolved), tuple(resolver.problems)


class _Resolver:
    """Finds the tools that dependencies name, and collects the problems."""

    def __init__(self, agents: Sequence[Agent], places: Mapping[str, int], lenient: Collection[str]) -> None:
        self._ids, self._by_name = _names(agents, places)
        self._lenient = lenient
        self.problems: list[Problem] = []

    def resolved(self, tool: Tool) -> Tool:
        """Returns the tool with ids in its dependencies."""
        edges = list[Dependency]()
        for edge in tool.depends_on:
            target = self._target(edge, tool)
            if target is not None:
                edges.append(edge.model_copy(update={"tool": target}))
        unchanged = tuple(edges) == tool.depends_on
        return tool if unchanged else tool.model_copy(update={"depends_on": tuple(edges)})

    def _target(self, edge: Dependency, tool: Tool) -> str | None:
        """Returns the id of the tool that a dependency names; None if it names none and is dropped."""
        for name in (edge.tool, f"{tool.agent}/{edge.tool}"):
            if name in self._ids:
                return name
        candidates = self._by_name.get(edge.tool, [])
        if len(candidates) > 1:
            message = f"tool {tool.id!r} depends on {edge.tool!r}, which {_several(candidates)}"
            self.problems.append(Problem(tool.agent, AMBIGUOUS, message))
        if candidates:
            return candidates[0]
        # A server may list many unknown names, and a search for similar names is slow.
        hint = "" if tool.agent in self._lenient else near_names(edge.tool, self._ids)
        message = (
            f"tool {tool.id!r} depends on {edge.tool!r}, which is not in the catalog{hint}: "
            "correct the name or remove the dependency"
        )
        if not self._lenient:
            raise CatalogError(message)
        self.problems.append(Problem(tool.agent, "dependency", f"{message}; it is dropped"))
        return None


def _several(candidates: Sequence[str]) -> str:
    """Returns what a report says of a name that several tools have; the first tool is meant."""
    more = ", ..." if len(candidates) > _MOST_CANDIDATES else ""
    named = " or ".join(candidates[:_MOST_CANDIDATES])
    return f"could be {named}{more}: {candidates[0]} is meant, whose server came first; to be sure, give the id"


def resolve_skills(
    skills: Sequence[Skill],
    agents: Sequence[Agent],
    unresolved: Mapping[str, Sequence[str]],
    places: Mapping[str, int] | None = None,
) -> tuple[tuple[Skill, ...], tuple[Problem, ...], dict[str, tuple[str, ...]]]:
    """Replaces the tool names of skills by ids, and adds the tools that their texts name in code spans.

    A name is an id, a bare name, or ``mcp__agent__tool`` as coding agents write it; a bare name that several tools have
    is resolved as in ``resolve``. In the text, a bare name that is an ordinary word is ignored. Skills are often
    written for other programs, so a tool that is missing from the catalog is no problem: its name is returned under the
    id of the skill, together with the ``unresolved`` ones.
    """
    ids, by_name = _names(agents, places or {})
    problems: list[Problem] = []
    unknown: dict[str, tuple[str, ...]] = {}

    def candidates_of(name: str) -> list[str]:
        _, _, combined = name.partition("mcp__")
        for exact in (name, combined.replace("__", "/", 1)):
            if exact in ids:
                return [exact]
        return by_name.get(name, [])

    resolved = list[Skill]()
    for skill in skills:
        allowed = (*skill.tools, *unresolved.get(skill.id, ()))
        unknown[skill.id] = tuple(name for name in allowed if not candidates_of(name))
        in_text = _CODE.findall(skill.text)[:_MOST_NAMED]
        tools: dict[str, None] = {}  # in the order of the names, without duplicates
        for name in dict.fromkeys((*allowed, *in_text)):
            candidates = candidates_of(name)
            if candidates:
                tools[candidates[0]] = None
            if len(candidates) > 1:
                problems.append(Problem(skill.id, AMBIGUOUS, f"names {name!r}, which {_several(candidates)}"))
        unchanged = tuple(tools) == skill.tools
        resolved.append(skill if unchanged else skill.model_copy(update={"tools": tuple(tools)}))
    return tuple(resolved), tuple(problems), unknown


def _names(agents: Sequence[Agent], places: Mapping[str, int]) -> tuple[set[str], Mapping[str, list[str]]]:
    """Returns the ids of all tools, and bare name -> ids, those first whose server was pinned first."""
    ids = set[str]()
    by_name: dict[str, list[str]] = defaultdict(list)
    for agent in sorted(agents, key=lambda agent: places.get(agent.id, 0)):
        for tool in agent.tools:
            ids.add(tool.id)
            by_name[tool.name].append(tool.id)
    return ids, by_name
