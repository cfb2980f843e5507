"""The part of a catalog that a user may see, as a catalog."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from callsheet.graphs.catalog.model import SKILLS, Catalog, Tool
from callsheet.graphs.dependencies.traversal import reachable
from callsheet.graphs.text.sanitizing import counted

_LONGEST_LIST = 10


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class View:
    """The part of a catalog that one user may see.

    Attributes:
        catalog: The visible tools and skills; none of their dependencies leads to a hidden tool.
        tools: Ids of the visible tools.
        blocked: Ids of tools that are allowed but require a forbidden one; they are hidden too.
    """

    catalog: Catalog
    tools: frozenset[str]
    blocked: frozenset[str]

    def __contains__(self, node: str) -> bool:
        """Whether an agent, a tool or a skill is visible."""
        return node in self.tools or node in self.catalog.by_id or node in self.catalog.skills_by_id

    def summary(self, tools: int) -> str:
        """How many of all tools the policy allows, in words; forbidden tools are not named."""
        allowed = f"the policy allows {len(self.tools) + len(self.blocked):,} of {counted(tools, 'tool')}"
        if not self.blocked:
            return allowed
        names = sorted(self.blocked)
        more = f" and {len(names) - _LONGEST_LIST:,} more" if len(names) > _LONGEST_LIST else ""
        return f"{allowed}; left out because they require one that is not: {', '.join(names[:_LONGEST_LIST])}{more}"


def view_of(catalog: Catalog, allowed: Callable[[Tool], bool]) -> View:
    """The part of a catalog with the tools that are allowed and can work, and the skills that are allowed.

    Optional dependencies on hidden tools are dropped; agents without a remaining tool are left out. A skill is allowed
    as a tool of its id would be; hidden tools that it names are dropped.
    """
    granted = {tool.id for tool in catalog.tools.values() if allowed(tool)}
    without_tools = [agent.id for agent in catalog.agents if not agent.tools]
    forbidden = {agent for agent in without_tools if not allowed(Tool(agent=agent, name="*"))}
    skills = tuple(skill for skill in catalog.skills if allowed(Tool(agent=SKILLS, name=skill.name)))
    if len(granted) == len(catalog.tools) and not forbidden and len(skills) == len(catalog.skills):
        return View(catalog, frozenset(granted), frozenset())
    blocked = _blocked(catalog, granted)
    visible = frozenset(granted - blocked)
    agents = tuple(
        agent.model_copy(update={"tools": tuple(_within(tool, visible) for tool in agent.tools if tool.id in visible)})
        for agent in catalog.agents
        if any(tool.id in visible for tool in agent.tools) or (agent.id in without_tools and agent.id not in forbidden)
    )
    seen = (skill.model_copy(update={"tools": tuple(t for t in skill.tools if t in visible)}) for skill in skills)
    return View(Catalog(agents=agents, skills=tuple(seen)), visible, frozenset(blocked))


def _blocked(catalog: Catalog, granted: set[str]) -> set[str]:
    """The granted tools that require a tool that is not granted, directly or through others."""
    dependents: dict[str, list[str]] = defaultdict(list)
    for tool in catalog.tools.values():
        for edge in tool.depends_on:
            if edge.required:
                dependents[edge.tool].append(tool.id)
    return reachable(dependents.keys() - granted, lambda tool: dependents.get(tool, ())) & granted


def _within(tool: Tool, visible: frozenset[str]) -> Tool:
    edges = tuple(edge for edge in tool.depends_on if edge.tool in visible)
    return tool if len(edges) == len(tool.depends_on) else tool.model_copy(update={"depends_on": edges})
