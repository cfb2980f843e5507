"""Attaches the dependencies in separate files to the tools of a catalog."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from callsheet.graphs.catalog.errors import CatalogError, near_names
from callsheet.graphs.catalog.formats.mcp_format import Problem
from callsheet.graphs.catalog.model import Agent, Dependency, Tool
from callsheet.graphs.dependencies.dependency_rules import Rule
from callsheet.graphs.dependencies.proposals import DependencyFile, Proposal, read_dependencies, write_dependencies
from callsheet.graphs.storage import locked


def attach(
    agents: Sequence[Agent], files: Iterable[tuple[str, DependencyFile]], *, lenient: Collection[str] = ()
) -> tuple[tuple[Agent, ...], tuple[Problem, ...]]:
    """The agents with the dependencies of these files after their own, and the problems.

    Edges of rules are declared, those of accepted proposals reviewed, those of undecided proposals stay proposed or
    observed. Edges that a tool already has are left out. A rejected proposal also removes the same edge from the tool,
    unless a person wrote or accepted it.

    Args:
        agents: All agents of the catalog, with resolved dependencies.
        files: The files with their names.
        lenient: Ids of agents whose tools may be missing, because the server may be down or may have changed.

    Raises:
        CatalogError: A tool is not in the catalog, or required dependencies form a cycle.
    """
    additions = _Additions({tool.id: tool for agent in agents for tool in agent.tools}, lenient)
    for where, content in files:
        for number, rule in enumerate(content.rules):
            additions.add_rule(rule, f"{where}: rules.{number}")
        for number, edge in enumerate(content.edges):
            additions.add_proposal(edge, f"{where}: edges.{number}")
    if not additions.new and not additions.rejected:
        return tuple(agents), tuple(additions.problems)
    additions.check_cycles()
    return tuple(additions.applied(agent) for agent in agents), tuple(additions.problems)


def decide(path: str | Path, edge: Proposal, *, before: bool | None, agents: Sequence[Agent]) -> None:
    """Writes a person's decision about one edge to a file of dependencies; everything else in it stays.

    Args:
        path: The file.
        edge: The edge with its decision; None takes an earlier decision back.
        before: The decision that the person was shown.
        agents: All agents of the catalog.

    Raises:
        CatalogError: Somebody else decided in the meantime, an accepted edge makes a cycle of tools that require each
            other, or the file cannot be read or written.
        TrustError: Another process has locked the file.
    """
    with locked(Path(path)):
        content = read_dependencies(path)
        edges = {known.key: known for known in content.edges}
        decided = edges[edge.key].accept if edge.key in edges else None
        if decided is not before:
            words = {True: "was accepted", False: "was rejected", None: "was left undecided"}[decided]
            raise CatalogError(f"{edge.source} -> {edge.target} {words} by somebody else in the meantime: look again")
        edges[edge.key] = edge
        if edge.accept:
            _check_accepted(edge, edges.values(), agents, str(path))
        write_dependencies(DependencyFile(rules=content.rules, edges=tuple(edges.values())), path)


def _check_accepted(edge: Proposal, edges: Iterable[Proposal], agents: Sequence[Agent], where: str) -> None:
    """Refuses a cycle, also one with edges that somebody accepted since these agents were loaded."""
    tools = {tool.id for agent in agents for tool in agent.tools}
    held = (edge, *(one for one in edges if one.accept and one is not edge and tools.issuperset(one.key[:2])))
    refused = tuple(one.model_copy(update={"accept": False}) for one in held)
    without, _ = attach(agents, [(where, DependencyFile(edges=refused))])
    attach(without, [(where, DependencyFile(edges=held))])


@dataclass
class _Additions:
    """Edges to add, by tool, and edges to remove; ``origin`` says where each required edge is written."""

    tools: Mapping[str, Tool]
    lenient: Collection[str]
    new: defaultdict[str, list[Dependency]] = field(default_factory=lambda: defaultdict(list))
    rejected: set[tuple[str, str, str | None]] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    origin: dict[tuple[str, str], str] = field(default_factory=dict)

    def add_rule(self, rule: Rule, where: str) -> None:
        sources = [tool for tool in self.tools.values() if rule.selects(tool)]
        if not sources:
            self.problems.append(Problem(where, "dependency", "the rule matches no tool of the catalog"))
        for name in rule.depends_on:
            if (target := self._resolve(name, where)) is not None:
                for tool in sources:
                    self._add(tool.id, Dependency(tool=target, kind=rule.kind, reason=rule.reason), where)

    def add_proposal(self, edge: Proposal, where: str) -> None:
        if edge.accept is False:
            self.rejected.add(edge.key)
            return
        both = [self._exists(name, where) for name in (edge.source, edge.target)]
        if edge.source == edge.target:
            raise CatalogError(f"{where}: {edge.source!r} depends on itself: remove the edge")
        if not all(both):
            return
        self._add(edge.source, edge.dependency, where)
        known = {parameter.name for parameter in self.tools[edge.source].parameters}
        if edge.accept and edge.parameter and edge.parameter.split(".")[0] not in known:
            lacking = f"{edge.source!r} has no parameter {edge.parameter!r}{near_names(edge.parameter, known)}"
            self.problems.append(Problem(where, "dependency", f"{lacking}: the edge holds for the whole tool"))

    def check_cycles(self) -> None:
        if not self.origin:
            return
        import networkx as nx

        tools = self.tools.values()
        edges = ((tool.id, edge) for tool in tools for edge in (*tool.depends_on, *self.new.get(tool.id, ())))
        graph: nx.DiGraph[str] = nx.DiGraph((tool, edge.tool) for tool, edge in edges if edge.required)
        for (source, target), where in self.origin.items():
            if nx.has_path(graph, target, source):
                path = " -> ".join((source, *nx.shortest_path(graph, target, source)))
                raise CatalogError(
                    f"{where}: this makes a cycle of tools that require each other: {path}: "
                    "remove one of these edges, or make it indirect"
                )

    def applied(self, agent: Agent) -> Agent:
        """The agent with the changes to its tools."""
        tools = tuple(self._changed(tool) for tool in agent.tools)
        return agent if tools == agent.tools else agent.model_copy(update={"tools": tools})

    def _changed(self, tool: Tool) -> Tool:
        kept = [e for e in tool.depends_on if e.holds or (tool.id, e.tool, e.parameter) not in self.rejected]
        edges = (*kept, *self.new.get(tool.id, ()))
        return tool if edges == tool.depends_on else tool.model_copy(update={"depends_on": edges})

    def _add(self, source: str, edge: Dependency, where: str) -> None:
        existing = (*self.tools[source].depends_on, *self.new.get(source, ()))
        if source == edge.tool or any((old.tool, old.parameter) == (edge.tool, edge.parameter) for old in existing):
            return
        self.new[source].append(edge)
        if edge.required:
            self.origin.setdefault((source, edge.tool), where)

    def _resolve(self, name: str, where: str) -> str | None:
        if name not in self.tools and "/" not in name:
            candidates = [tool.id for tool in self.tools.values() if tool.name == name]
            if len(candidates) > 1:
                raise CatalogError(f"{where}: {name!r} could be {' or '.join(candidates)}: give the id")
            if candidates:
                return candidates[0]
        return name if self._exists(name, where) else None

    def _exists(self, name: str, where: str) -> bool:
        if name in self.tools:
            return True
        message = f"{name!r} is not in the catalog{near_names(name, self.tools)}"
        if any(name.startswith(f"{agent}/") for agent in self.lenient):
            self.problems.append(Problem(where, "dependency", f"{message}; it is dropped"))
            return False
        if not self.tools:
            raise CatalogError(f"{where} contains only dependencies: name the catalog that they are for beside it")
        raise CatalogError(f"{where}: {message}: correct the id or remove it")
