"""Reads and writes files of dependencies, which hold proposals and the decisions of a person about them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from callsheet.graphs.catalog.formats.manifests import Problem, read_json
from callsheet.graphs.catalog.model import Agent, Catalog, Dependency, DependencyKind, Name, Provenance, Record, Tool
from callsheet.graphs.errors import CatalogError, near_names
from callsheet.graphs.storage import file_lock, replace_bytes
from callsheet.graphs.text.unicode import clean

KEY = "callsheet_dependencies"
FORMAT = 1


class Proposal(Record):
    """A dependency that a program proposes, with the decision about it.

    Attributes:
        source: Id of the tool that depends on the other.
        target: Id of the needed tool.
        parameter: The argument whose value the target returns, if the edge concerns one; names of a nested argument
            are joined by dots.
        count: How often a call of the source used a result of the target.
        accept: Decision of a person, or of a model that a person asked; ``None`` if there is none yet.
    """

    source: Name
    target: Name
    kind: DependencyKind
    parameter: str | None = None
    confidence: Annotated[float, Field(ge=0, le=1)] = 1.0
    evidence: str = ""
    count: Annotated[int, Field(ge=0)] = 0
    accept: bool | None = Field(default=None, strict=True)

    @property
    def key(self) -> tuple[str, str, str | None]:
        """Returns the identity of the proposal: source, target and parameter."""
        return self.source, self.target, self.parameter

    @property
    def dependency(self) -> Dependency:
        """Returns the proposal as a dependency; its provenance shows whether a person has accepted it."""
        unreviewed = Provenance.OBSERVED if self.count else Provenance.PROPOSED
        return Dependency(
            tool=self.target,
            kind=self.kind,
            parameter=self.parameter,
            reason=self.evidence,
            provenance=Provenance.REVIEWED if self.accept else unreviewed,
            confidence=self.confidence,
            count=self.count,
        )


class _File(Record):
    edges: tuple[Proposal, ...] = ()


def parse_dependencies(document: Mapping[str, Any], where: str) -> tuple[Proposal, ...]:
    """Returns the proposals in a parsed file, reviewed or not.

    Raises:
        CatalogError: The file has another format, or one edge twice; the message names it ``where``.
    """
    if document.get(KEY) != FORMAT:
        raise CatalogError(f"{where}: unknown format {document.get(KEY)!r} of {KEY}; this program reads {FORMAT}")
    try:
        content = clean(dict(document))
        del content[KEY]
        edges = _File(**content).edges
    except CatalogError as error:
        raise CatalogError(f"{where}: {error}") from error
    keys = set[tuple[str, str, str | None]]()
    for edge in edges:
        if edge.key in keys:
            raise CatalogError(f"{where}: {edge.source} -> {edge.target} occurs twice: remove one")
        keys.add(edge.key)
    return edges


def read_dependencies(path: str | Path) -> tuple[Proposal, ...]:
    """Returns the proposals in a file of dependencies, reviewed or not.

    Raises:
        CatalogError: The file cannot be read, or is no file of dependencies.
    """
    document = read_json(Path(path))
    if not isinstance(document, dict) or KEY not in document:
        raise CatalogError(f"{path}: not a file of dependencies: it should be an object with {KEY!r}: {FORMAT}")
    return parse_dependencies(document, str(path))


def write_dependencies(edges: Iterable[Proposal], path: str | Path) -> None:
    """Writes a file of dependencies atomically, with one edge per line for review, or raises ``CatalogError``."""
    lines = ",\n  ".join(json.dumps(edge.model_dump(mode="json"), ensure_ascii=False) for edge in edges)
    text = f'{{\n "{KEY}": {FORMAT},\n "edges": [\n  {lines}\n ]\n}}\n'
    try:
        replace_bytes(Path(path), text.encode(), mode=0o666)
    except OSError as error:
        raise CatalogError(f"{path}: cannot be written: {error.strerror}") from error


def merge_proposals(before: Iterable[Proposal], new: Iterable[Proposal]) -> tuple[Proposal, ...]:
    """Adds earlier decisions of a person to new proposals and returns them in their order.

    Edges with a decision stay, even if they are not proposed again; edges without one stay only if they are.
    """
    decided = {edge.key: edge for edge in before if edge.accept is not None}
    edges = [decided.pop(edge.key, edge) for edge in new]
    return (*edges, *decided.values())


def combine(*groups: Iterable[Proposal]) -> tuple[Proposal, ...]:
    """Returns the proposals of several programs by confidence, highest first; equal edges are merged."""
    best: dict[tuple[str, str, str | None], Proposal] = {}
    for edge in chain(*groups):
        rival = best.get(edge.key)
        best[edge.key] = edge if rival is None else _merged(rival, edge)
    return tuple(
        sorted(best.values(), key=lambda edge: (-edge.confidence, edge.source, edge.parameter or "", edge.target))
    )


def _merged(first: Proposal, second: Proposal) -> Proposal:
    """Merges two proposals of one edge: the surer one, with the evidence of both."""
    surer, other = (first, second) if first.confidence >= second.confidence else (second, first)
    evidence = "; ".join(dict.fromkeys(filter(None, (surer.evidence, other.evidence))))
    return surer.model_copy(update={"evidence": evidence, "count": max(surer.count, other.count)})


_INDIRECT = {
    DependencyKind.TOOL_DIRECTLY: DependencyKind.TOOL_INDIRECTLY,
    DependencyKind.PARAMETER_DIRECTLY: DependencyKind.PARAMETER_INDIRECTLY,
}


def without_cycles(proposals: Sequence[Proposal], catalog: Catalog) -> tuple[Proposal, ...]:
    """Returns the proposals without cycles of direct dependencies.

    In each cycle, the proposal with the lowest confidence becomes indirect, until no cycle is left. Dependencies of
    the catalog do not change.
    """
    from callsheet.graphs.knowledge_graph import dependency_edges, knowledge_graph

    required = [(tool, edge.tool) for tool, edge in dependency_edges(knowledge_graph(catalog)) if edge.required]
    direct = [place for place, edge in enumerate(proposals) if edge.kind.direct]
    direct.sort(key=lambda place: -proposals[place].confidence)
    # The surest come first, so whatever closes a cycle is the least sure of it.
    pairs = required + [(proposals[place].source, proposals[place].target) for place in direct]
    closing = {direct[n - len(required)] for n in _closing(pairs) if n >= len(required)}
    result = list(proposals)
    for place in closing:
        edge = proposals[place]
        result[place] = edge.model_copy(update={"kind": _INDIRECT[edge.kind]})
    return tuple(result)


def _closing(pairs: Sequence[tuple[str, str]]) -> Iterator[int]:
    """Yields the places of the pairs that are in a cycle with pairs before them, for n pairs in about n log n steps.

    By bisection: each part of the work is the pairs whose ends get into one cycle after ``low`` to ``high`` pairs.
    The nodes of a cycle of earlier pairs count as one node, so that no pair is looked at in more than log n parts.
    """
    from callsheet.graphs.knowledge_graph import cycles

    waiting = [(0, len(pairs) + 1, list(enumerate(pairs)))]
    while waiting:
        low, high, part = waiting.pop()
        if low == high:
            yield from (place for place, _ in part if place + 1 == low)
            continue
        middle = (low + high) // 2
        node_of_cycle: dict[str, str] = {}
        for cycle in cycles(pair for place, pair in part if place < middle):
            first = next(iter(cycle))
            node_of_cycle.update(dict.fromkeys(cycle, first))
        inside = list[tuple[int, tuple[str, str]]]()
        outside = list[tuple[int, tuple[str, str]]]()
        for place, pair in part:
            ends = (node_of_cycle.get(pair[0], pair[0]), node_of_cycle.get(pair[1], pair[1]))
            if ends[0] != ends[1]:
                outside.append((place, ends))
            elif place < middle:
                inside.append((place, pair))
            else:
                yield place
        waiting += [(low, middle, inside), (middle + 1, high, outside)]


def attach(
    agents: Sequence[Agent], files: Iterable[tuple[str, Iterable[Proposal]]], *, lenient: Collection[str] = ()
) -> tuple[tuple[Agent, ...], tuple[Problem, ...]]:
    """Returns the agents with the dependencies of these files added, and the problems.

    Accepted proposals become reviewed dependencies; undecided ones stay proposed or observed. A dependency that a tool
    already has is skipped. A rejected proposal also removes the same dependency from the tool, unless a person declared
    or accepted it. Tools of the ``lenient`` agents may be missing, because their servers may be down or have changed.

    Raises:
        CatalogError: A tool is not in the catalog, or required dependencies form a cycle.
    """
    additions = _Additions({tool.id: tool for agent in agents for tool in agent.tools}, lenient)
    for where, edges in files:
        for number, edge in enumerate(edges):
            additions.add(edge, f"{where}: edges.{number}")
    if additions.new or additions.rejected:
        agents = [additions.applied(agent) for agent in agents]
        _check_cycles(agents, additions.origin)
    return tuple(agents), tuple(additions.problems)


def _check_cycles(agents: Sequence[Agent], origin: Mapping[tuple[str, str], str]) -> None:
    """Refuses a cycle through one of these required edges; the values say where they are written."""
    from callsheet.graphs.knowledge_graph import cycle_from, cycles, dependency_edges, graph_of

    if not origin:
        return
    edges = dependency_edges(graph_of(agents))
    for part in cycles((tool, edge.tool) for tool, edge in edges if edge.required):
        for (source, target), where in origin.items():
            if source in part and target in part:
                cycle = " -> ".join(cycle_from(part, source, target))
                cure = "remove one of these edges, or make it indirect"
                raise CatalogError(f"{where}: this makes a cycle of tools that require each other: {cycle}: {cure}")


def decide(path: str | Path, edge: Proposal, *, before: bool | None, agents: Sequence[Agent]) -> None:
    """Writes the decision of a person about one edge to a file of dependencies; all else in the file stays.

    An edge without a decision withdraws an earlier one. ``before`` is the decision that the person saw.

    Raises:
        CatalogError: Somebody else decided in the meantime, an accepted edge makes a cycle of tools that require each
            other, or the file cannot be read or written.
    """
    with file_lock(Path(path)):
        edges = {known.key: known for known in read_dependencies(path)}
        decided = edges[edge.key].accept if edge.key in edges else None
        if decided is not before:
            words = {True: "was accepted", False: "was rejected", None: "was left undecided"}[decided]
            raise CatalogError(
                f"{edge.source} -> {edge.target} {words} by somebody else in the meantime: review it again"
            )
        edges[edge.key] = edge
        if edge.accept:
            _check_accepted(edge, edges.values(), agents, str(path))
        write_dependencies(edges.values(), path)


def _check_accepted(edge: Proposal, edges: Iterable[Proposal], agents: Sequence[Agent], where: str) -> None:
    """Refuses a cycle, also one with edges that somebody accepted since these agents were loaded."""
    tools = {tool.id for agent in agents for tool in agent.tools}
    others = [other for other in edges if other.accept and other is not edge]
    accepted = [edge, *(other for other in others if {other.source, other.target} <= tools)]
    # The agents may have some of these edges already: they are removed, and then all are added.
    rejected = [other.model_copy(update={"accept": False}) for other in accepted]
    without, _ = attach(agents, [(where, rejected)])
    attach(without, [(where, accepted)])


@dataclass
class _Additions:
    """Edges to add, by tool, and edges to remove; ``origin`` says where each required edge is written."""

    tools: Mapping[str, Tool]
    lenient: Collection[str]
    new: defaultdict[str, list[Dependency]] = field(default_factory=lambda: defaultdict(list))
    rejected: set[tuple[str, str, str | None]] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)
    origin: dict[tuple[str, str], str] = field(default_factory=dict)

    def add(self, edge: Proposal, where: str) -> None:
        """Adds one edge, or notes its rejection, or reports that a tool of it is missing."""
        if edge.accept is False:
            self.rejected.add(edge.key)
            return
        has_source = self._exists(edge.source, where)
        has_target = self._exists(edge.target, where)
        if edge.source == edge.target:
            raise CatalogError(f"{where}: {edge.source!r} depends on itself: remove the edge")
        if not has_source or not has_target:
            return
        tool = self.tools[edge.source]
        dependency = edge.dependency
        existing = [(old.tool, old.parameter) for old in (*tool.depends_on, *self.new.get(tool.id, ()))]
        if (edge.target, edge.parameter) not in existing:
            self.new[tool.id].append(dependency)
            if dependency.required:
                self.origin.setdefault((tool.id, edge.target), where)
        known = {parameter.name for parameter in tool.parameters}
        if edge.accept and edge.parameter and edge.parameter.split(".")[0] not in known:
            lacking = f"{edge.source!r} has no parameter {edge.parameter!r}{near_names(edge.parameter, known)}"
            self.problems.append(Problem(where, "dependency", f"{lacking}: the dependency is used for the whole tool"))

    def applied(self, agent: Agent) -> Agent:
        """Returns the agent with the changes to its tools."""
        tools = tuple(self._changed(tool) for tool in agent.tools)
        return agent if tools == agent.tools else agent.model_copy(update={"tools": tools})

    def _changed(self, tool: Tool) -> Tool:
        # What a person wrote or accepted stays, whatever another file rejects.
        own = [e for e in tool.depends_on if e.holds or (tool.id, e.tool, e.parameter) not in self.rejected]
        edges = (*own, *self.new.get(tool.id, ()))
        return tool if edges == tool.depends_on else tool.model_copy(update={"depends_on": edges})

    def _exists(self, name: str, where: str) -> bool:
        """Returns whether there is a tool of this id; reports one that is missing, or raises ``CatalogError``."""
        if name in self.tools:
            return True
        message = f"{name!r} is not in the catalog{near_names(name, self.tools)}"
        if any(name.startswith(f"{agent}/") for agent in self.lenient):
            self.problems.append(Problem(where, "dependency", f"{message}; it is dropped"))
            return False
        if not self.tools:
            raise CatalogError(f"{where} contains only dependencies: name the catalog that they are for beside it")
        raise CatalogError(f"{where}: {message}: correct the id or remove it")
