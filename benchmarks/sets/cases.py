"""What a benchmark is: a catalog, and queries whose right answer is known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from callsheet.graphs import Catalog, CatalogError, Dependency, Tool

Gold = Sequence[Collection[str]]
Level = Literal["agent", "tool"]


@dataclass(frozen=True, slots=True)
class Case:
    """One query with what is to be found for it: a set of alternatives for each wanted agent and tool.

    ``group`` is what it shares with related queries (a task, a main tool): intervals and folds never cut through one.
    """

    id: str
    query: str
    group: str
    agents: tuple[frozenset[str], ...] = ()
    tools: tuple[frozenset[str], ...] = ()

    def gold(self, level: Level) -> Gold:
        """What is wanted at this level."""
        return self.agents if level == "agent" else self.tools


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A catalog and its queries; a level uses those with something wanted at it.

    ``levels`` are what retrieval is measured for, agents, tools, both, or nothing, with the K of Recall@K and its like.
    """

    name: str
    about: str
    catalog: Catalog
    queries: tuple[Case, ...]
    levels: Mapping[Level, tuple[int, ...]]

    def __post_init__(self) -> None:
        wanted = {item for case in self.queries for element in (*case.agents, *case.tools) for item in element}
        if unknown := sorted(wanted - {*self.catalog.by_id, *self.catalog.tools}):
            raise CatalogError(f"{self.name} wants what the catalog does not hold: {unknown[:3]}")

    @property
    def dependencies(self) -> bool:
        """Whether the catalog declares some, so that the methods that follow them have a part."""
        return any(tool.depends_on for tool in self.catalog.tools.values())

    def cases(self, level: Level) -> list[Case]:
        """The queries for which something is wanted at this level."""
        return [case for case in self.queries if case.gold(level)]

    def sample(self, most: int) -> Benchmark:
        """The same with at most so many queries, evenly spread."""
        step = -(-len(self.queries) // most)
        return replace(self, queries=self.queries[::step])


def wanted(alternatives: Iterable[Iterable[str]]) -> tuple[frozenset[str], ...]:
    """Sets of alternatives, each once, in order."""
    return tuple(dict.fromkeys(map(frozenset, alternatives)))


def with_dependencies(catalog: Catalog, edges: Callable[[Tool], Sequence[Dependency]]) -> Catalog:
    """The same catalog with other dependencies of each tool."""

    def turned(tool: Tool) -> Tool:
        return tool.model_copy(update={"depends_on": tuple(edges(tool))})

    agents = (agent.model_copy(update={"tools": tuple(map(turned, agent.tools))}) for agent in catalog.agents)
    return Catalog(agents=tuple(agents))
