"""The part of a catalog that somebody may see, as a catalog of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

from callsheet.graphs.catalog.model import Catalog, Tool
from callsheet.graphs.text.sanitizing import counted

_MOST_NAMED = 10


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class View:
    """What one user may see of a catalog.

    Attributes:
        catalog: Just that: a tool that may not be seen is not in it, and nothing in it leads to one.
        tools: Ids of the tools in it.
        blocked: Ids of tools that are allowed but require one that is not; they are not in it either.
    """

    catalog: Catalog
    tools: frozenset[str]
    blocked: frozenset[str]

    def __contains__(self, node: str) -> bool:
        """Whether an agent or a tool is in it."""
        return node in self.tools or node in self.catalog.by_id

    def told(self, tools: int) -> str:
        """In words what is withheld of so many tools; what may not be seen is not named."""
        said = f"the policy allows {len(self.tools) + len(self.blocked):,} of {counted(tools, 'tool')}"
        if not self.blocked:
            return said
        names = sorted(self.blocked)
        more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
        return f"{said}; left out because they require one that is not: {', '.join(names[:_MOST_NAMED])}{more}"


def view_of(catalog: Catalog, allowed: Callable[[Tool], bool]) -> View:
    """The part of a catalog that holds just the tools that are allowed and can do their work.

    Dependencies that are not required are dropped where they lead out of it; an agent without any tool left is gone.
    """
    granted = {tool.id for tool in catalog.tools.values() if allowed(tool)}
    bare = [agent.id for agent in catalog.agents if not agent.tools]
    shut = {agent for agent in bare if not allowed(Tool(agent=agent, name="*"))}
    if len(granted) == len(catalog.tools) and not shut:
        return View(catalog, frozenset(granted), frozenset())
    blocked = _blocked(catalog, granted)
    kept = frozenset(granted - blocked)
    agents = tuple(
        agent.model_copy(update={"tools": tuple(_within(tool, kept) for tool in agent.tools if tool.id in kept)})
        for agent in catalog.agents
        if any(tool.id in kept for tool in agent.tools) or (agent.id in bare and agent.id not in shut)
    )
    return View(Catalog(agents=agents), kept, frozenset(blocked))


def _blocked(catalog: Catalog, granted: set[str]) -> set[str]:
    """The granted tools from which required dependencies lead to one that is not granted."""
    needed_by: dict[str, list[str]] = defaultdict(list)
    for tool in catalog.tools.values():
        for edge in tool.depends_on:
            if edge.kind.direct and edge.holds:
                needed_by[edge.tool].append(tool.id)
    lost, todo = set[str](), [needed for needed in needed_by if needed not in granted]
    while todo:
        new = set(needed_by.get(todo.pop(), ())) - lost
        lost |= new
        todo.extend(new)
    return lost & granted


def _within(tool: Tool, kept: frozenset[str]) -> Tool:
    edges = tuple(edge for edge in tool.depends_on if edge.tool in kept)
    return tool if len(edges) == len(tool.depends_on) else tool.model_copy(update={"depends_on": edges})
