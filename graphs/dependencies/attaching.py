"""Puts the dependencies of files beside a catalog onto its tools."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.mcp_format import Problem
from callsheet.graphs.catalog.model import Agent, Dependency, Tool, near_names
from callsheet.graphs.dependencies.cycles import path_between
from callsheet.graphs.dependencies.dependency_rules import Rule
from callsheet.graphs.dependencies.proposals import DependencyFile, Proposal

Edges = Mapping[str, Sequence[Dependency]]


def attach(
    agents: Sequence[Agent], files: Iterable[tuple[str, DependencyFile]], *, lenient: Collection[str] = ()
) -> tuple[tuple[Agent, ...], tuple[Problem, ...]]:
    """The same agents, their tools with the dependencies of these files behind their own.

    A rule's edges are declared, an accepted proposal's are reviewed, an undecided one's keep that they are proposed or
    observed; a refused one is left out, as is what the tool says itself already.

    Args:
        agents: All agents of the catalog; their dependencies are resolved.
        files: The files with their names.
        lenient: Ids of agents whose tools may be missing: the server may be down, or may have changed.

    Raises:
        CatalogError: A tool is not in the catalog, or direct dependencies that people wrote go round in a circle.
    """
    found = _Found({tool.id: tool for agent in agents for tool in agent.tools}, lenient)
    for where, content in files:
        for number, rule in enumerate(content.rules):
            found.add_rule(rule, f"{where}: rules.{number}")
        for number, edge in enumerate(content.edges):
            found.add_proposal(edge, f"{where}: edges.{number}")
    if not found.new:
        return tuple(agents), tuple(found.problems)
    found.check_circles()
    return tuple(_with(agent, found.new) for agent in agents), tuple(found.problems)


@dataclass
class _Found:
    tools: Mapping[str, Tool]
    lenient: Collection[str]
    new: defaultdict[str, list[Dependency]] = field(default_factory=lambda: defaultdict(list))
    problems: list[Problem] = field(default_factory=list)
    origin: dict[tuple[str, str], str] = field(default_factory=dict)

    def add_rule(self, rule: Rule, where: str) -> None:
        meant = [tool for tool in self.tools.values() if rule.selects(tool)]
        if not meant:
            self.problems.append(Problem(where, "dependency", "the rule is for no tool of the catalog"))
        for name in rule.depends_on:
            if (target := self._named(name, where)) is not None:
                for tool in meant:
                    self._add(tool.id, Dependency(tool=target, kind=rule.kind, reason=rule.reason), where)

    def add_proposal(self, edge: Proposal, where: str) -> None:
        if edge.accept is False:
            return
        known = [self._known(name, where) for name in (edge.source, edge.target)]
        if edge.source == edge.target:
            raise CatalogError(f"{where}: {edge.source!r} depends on itself: remove the edge")
        if all(known):
            self._add(edge.source, edge.dependency, where)

    def check_circles(self) -> None:
        direct = {
            tool.id: [
                edge.tool for edge in (*tool.depends_on, *self.new.get(tool.id, ())) if edge.holds and edge.kind.direct
            ]
            for tool in self.tools.values()
        }
        for (source, target), where in self.origin.items():
            if target in direct[source] and (path := path_between(direct, target, source)):
                raise CatalogError(
                    f"{where}: this makes a circle of tools that cannot do without each other: "
                    f"{' -> '.join((source, *path))}: leave one of these edges out, or make it an indirect one"
                )

    def _add(self, source: str, edge: Dependency, where: str) -> None:
        there = (*self.tools[source].depends_on, *self.new.get(source, ()))
        if source == edge.tool or any((old.tool, old.parameter) == (edge.tool, edge.parameter) for old in there):
            return
        self.new[source].append(edge)
        if edge.holds and edge.kind.direct:
            self.origin.setdefault((source, edge.tool), where)

    def _named(self, name: str, where: str) -> str | None:
        if name not in self.tools and "/" not in name:
            named = [tool.id for tool in self.tools.values() if tool.name == name]
            if len(named) > 1:
                raise CatalogError(f"{where}: {name!r} could be {' or '.join(named)}: give the id")
            if named:
                return named[0]
        return name if self._known(name, where) else None

    def _known(self, name: str, where: str) -> bool:
        if name in self.tools:
            return True
        trouble = f"{name!r} is not in the catalog{near_names(name, self.tools)}"
        if any(name.startswith(f"{agent}/") for agent in self.lenient):
            self.problems.append(Problem(where, "dependency", f"{trouble}; it is dropped"))
            return False
        if not self.tools:
            raise CatalogError(f"{where} holds dependencies only: name the catalog that they are for beside it")
        raise CatalogError(f"{where}: {trouble}: correct the id or remove it")


def _with(agent: Agent, new: Edges) -> Agent:
    if not any(tool.id in new for tool in agent.tools):
        return agent
    tools = (
        tool.model_copy(update={"depends_on": (*tool.depends_on, *new[tool.id])}) if new.get(tool.id) else tool
        for tool in agent.tools
    )
    return agent.model_copy(update={"tools": tuple(tools)})
