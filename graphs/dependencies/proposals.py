"""Files of dependencies: proposals of a program with a person's decisions, and rules for many tools."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.malformed import read_json
from callsheet.graphs.catalog.model import Catalog, Dependency, DependencyKind, Provenance
from callsheet.graphs.catalog.record import Name, Record
from callsheet.graphs.dependencies.dependency_rules import Rule
from callsheet.graphs.storage import replace_bytes
from callsheet.graphs.text.sanitizing import clean

KEY, FORMAT = "callsheet_dependencies", 1


class Proposal(Record):
    """An edge that a program proposes, with the decision of a person.

    Attributes:
        source: Id of the tool that needs the other.
        target: Id of the needed tool.
        kind: One of the four kinds.
        parameter: The argument whose value the target returns, if the edge concerns one; names of a nested argument
            are joined by dots.
        confidence: Confidence of the program, 0 to 1.
        evidence: Reason for the proposal.
        count: How often a call of the source used a result of the target.
        accept: Decision of a person; ``None`` if there is none yet.
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
        """Identity of the proposal: source, target and parameter."""
        return self.source, self.target, self.parameter

    @property
    def dependency(self) -> Dependency:
        """The dependency of the source; its provenance says whether a person has accepted it."""
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


class DependencyFile(Record):
    """The content of a file of dependencies.

    Attributes:
        rules: Rules that a person declared.
        edges: Proposals, reviewed or not.
    """

    rules: tuple[Rule, ...] = ()
    edges: tuple[Proposal, ...] = ()


def parse_dependencies(document: Mapping[str, Any], where: str) -> DependencyFile:
    """The content of a parsed file.

    Args:
        document: An object with ``callsheet_dependencies``.
        where: Name of the file, for messages.

    Raises:
        CatalogError: The format or a field is unknown, a field is missing or has the wrong type, or an edge occurs
            twice.
    """
    if document.get(KEY) != FORMAT:
        raise CatalogError(f"{where}: unknown format {document.get(KEY)!r} of {KEY}; this program reads {FORMAT}")
    try:
        content = DependencyFile(**{name: value for name, value in clean(dict(document)).items() if name != KEY})
    except CatalogError as error:
        raise CatalogError(f"{where}: {error}") from error
    keys: set[tuple[str, str, str | None]] = set()
    for number, edge in enumerate(content.edges):
        if edge.key in keys:
            raise CatalogError(f"{where}: edges.{number}: {edge.source} -> {edge.target} occurs twice: remove one")
        keys.add(edge.key)
    return content


def read_dependencies(path: str | Path) -> DependencyFile:
    """The content of a file of dependencies.

    Raises:
        CatalogError: The file cannot be read, is not valid JSON, or has another format.
    """
    document = read_json(Path(path))
    if not isinstance(document, dict) or KEY not in document:
        raise CatalogError(f"{path}: not a file of dependencies: it should be an object with {KEY!r}: {FORMAT}")
    return parse_dependencies(document, str(path))


def write_dependencies(content: DependencyFile, path: str | Path) -> None:
    """Writes a file of dependencies atomically, with one edge per line for review.

    Raises:
        CatalogError: The file cannot be written.
    """
    file = Path(path).resolve()  # a symbolic link stays one
    rules = [rule.model_dump(mode="json", exclude_defaults=True) for rule in content.rules]
    edges = [edge.model_dump(mode="json") for edge in content.edges]
    text = f'{{\n "{KEY}": {FORMAT},\n "rules": {_json_lines(rules)},\n "edges": {_json_lines(edges)}\n}}\n'
    try:
        exists = file.exists()
        mode = file.stat().st_mode & 0o777 if exists else 0o666
        replace_bytes(file, text.encode(), mode=mode, exact=exists)
    except OSError as error:
        raise CatalogError(f"{path}: cannot be written: {error.strerror}") from error


def merge_proposals(before: DependencyFile, new: Iterable[Proposal]) -> DependencyFile:
    """A file with new proposals that keeps everything a person wrote.

    Rules and edges with a decision stay unchanged, even if they are not proposed again; undecided edges stay only if
    they are proposed again.

    Args:
        before: The present content of the file.
        new: The new proposals, in their order.
    """
    decided = {edge.key: edge for edge in before.edges if edge.accept is not None}
    edges = [decided.pop(edge.key, edge) for edge in new]
    return DependencyFile(rules=before.rules, edges=(*edges, *decided.values()))


def combine(*groups: Iterable[Proposal]) -> tuple[Proposal, ...]:
    """The proposals of several programs by confidence, highest first; equal edges are merged with their evidence."""
    best: dict[tuple[str, str, str | None], Proposal] = {}
    for edge in (edge for group in groups for edge in group):
        if (rival := best.get(edge.key)) is None:
            best[edge.key] = edge
            continue
        surer, other = (rival, edge) if rival.confidence >= edge.confidence else (edge, rival)
        evidence = "; ".join(dict.fromkeys(filter(None, (surer.evidence, other.evidence))))
        best[edge.key] = surer.model_copy(update={"evidence": evidence, "count": max(surer.count, other.count)})
    return tuple(
        sorted(best.values(), key=lambda edge: (-edge.confidence, edge.source, edge.parameter or "", edge.target))
    )


def _json_lines(records: Iterable[Mapping[str, Any]]) -> str:
    lines = [json.dumps(record, ensure_ascii=False) for record in records]
    return "[\n  " + ",\n  ".join(lines) + "\n ]" if lines else "[]"


_INDIRECT = {
    DependencyKind.TOOL_DIRECTLY: DependencyKind.TOOL_INDIRECTLY,
    DependencyKind.PARAMETER_DIRECTLY: DependencyKind.PARAMETER_INDIRECTLY,
}


def without_cycles(proposals: Sequence[Proposal], catalog: Catalog) -> tuple[Proposal, ...]:
    """The proposals without cycles of direct dependencies.

    In each cycle, the proposal with the lowest confidence becomes indirect, until no cycle is left. Dependencies of
    the catalog do not change.

    Args:
        proposals: The edges, in any order.
        catalog: The tools with their dependencies.
    """
    import networkx as nx

    required = [(tool.id, edge.tool) for tool in catalog.tools.values() for edge in tool.depends_on if edge.required]
    edges = list(proposals)
    while True:
        direct = [i for i, edge in enumerate(edges) if edge.kind.direct]
        graph: nx.DiGraph[str] = nx.DiGraph([*required, *((edges[i].source, edges[i].target) for i in direct)])
        cycles = [tools for tools in nx.strongly_connected_components(graph) if len(tools) > 1]
        cycle_of = {tool: number for number, tools in enumerate(cycles) for tool in tools}
        weakest: dict[int, int] = {}
        for i in direct:
            cycle = cycle_of.get(edges[i].source)
            if cycle is not None and cycle == cycle_of.get(edges[i].target):
                rival = weakest.setdefault(cycle, i)
                if edges[i].confidence <= edges[rival].confidence:
                    weakest[cycle] = i
        if not weakest:
            return tuple(edges)
        for i in weakest.values():
            edges[i] = edges[i].model_copy(update={"kind": _INDIRECT[edges[i].kind]})
