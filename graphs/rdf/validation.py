"""Validates RDF graphs with SHACL shapes and SPARQL queries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import cast

from rdflib import DCTERMS, RDF, SH, Graph, URIRef
from rdflib.plugins.sparql import prepareQuery
from rdflib.plugins.sparql.sparql import Query
from rdflib.query import ResultRow
from rdflib.term import Node

from callsheet.graphs.capabilities.taxonomy import Capability
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.errors import CallsheetError, CatalogError, Finding, Severity
from callsheet.graphs.rdf.catalog_graph import CS, from_graph, to_graph
from callsheet.graphs.rdf.serialization import graph_of_file

_SEVERITIES = {SH.Violation: Severity.ERROR, SH.Warning: Severity.WARNING, SH.Info: Severity.INFO}


def rdf_findings(catalog: Catalog, taxonomy: Sequence[Capability] | None = None) -> tuple[Finding, ...]:
    """Validates a catalog with the SHACL shapes and the SPARQL checks; ``taxonomy`` is as for ``to_graph``."""
    return graph_findings(to_graph(catalog, taxonomy))


def rdf_file_findings(path: Path) -> tuple[Finding, ...]:
    """Returns the findings for an RDF file: syntax, shapes, checks, and validity as a catalog."""
    try:
        graph = graph_of_file(path)
    except CatalogError as error:
        return (Finding(Severity.ERROR, "rdf-syntax", str(error)),)
    findings = graph_findings(graph)
    try:
        from_graph(graph)
    except CatalogError as error:
        findings += (Finding(Severity.ERROR, "rdf-catalog", f"{path}: {error}"),)
    return findings


def graph_findings(graph: Graph) -> tuple[Finding, ...]:
    """Validates a graph with the SHACL shapes and the SPARQL checks; returns each finding once, by rule."""
    return tuple(dict.fromkeys((*_shaped(graph), *_checked(graph))))


@cache
def shapes() -> str:
    """Returns the shipped SHACL shapes as Turtle."""
    return files("callsheet.graphs.rdf").joinpath("shapes", "shapes.ttl").read_text(encoding="utf-8")


@cache
def checks() -> Mapping[str, str]:
    """Returns the SPARQL checks by rule: relation traversal, inverse consistency, hierarchy and integrity.

    Each query selects the variables ``?node``, ``?severity`` and ``?message`` for each problem.

    Source: Representing Agentic Tools in Knowledge Graphs, the validation of the graph by SPARQL; the queries are ours.
    """
    kinds = files("callsheet.graphs.rdf").joinpath("checks").iterdir()
    queries = {f"{kind.name}-{item.name.removesuffix('.rq')}": item for kind in kinds for item in kind.iterdir()}
    return {rule: queries[rule].read_text(encoding="utf-8") for rule in sorted(queries)}


def _shaped(graph: Graph) -> list[Finding]:
    import pyshacl

    conforms, report, message = pyshacl.validate(graph, shacl_graph=_shapes_graph(), inplace=True)
    if not isinstance(report, Graph):
        raise CallsheetError(f"the SHACL shapes could not be applied: {message}")
    if conforms:
        return []
    findings = []
    for result in report.subjects(RDF.type, SH.ValidationResult):
        node = report.value(result, SH.focusNode)
        shape = report.value(result, SH.sourceShape)
        rule = str(shape).rpartition("#")[2] if isinstance(shape, URIRef) else "rdf-shape"
        severity = _SEVERITIES[cast("URIRef", report.value(result, SH.resultSeverity))]
        findings.append(_finding(graph, node, severity, rule, str(report.value(result, SH.resultMessage))))
    return sorted(findings, key=lambda finding: (finding.rule, finding.agent, finding.tool, finding.message))


def _checked(graph: Graph) -> Iterator[Finding]:
    for rule, query in _prepared().items():
        rows = cast("list[ResultRow]", list(graph.query(query)))
        for row in sorted(rows, key=lambda row: str(row.node)):
            message = str(row.message) if row.message is not None else f"breaks the rule {rule}"
            yield _finding(graph, row.node, Severity(str(row.severity)), rule, message)


@cache
def _prepared() -> Mapping[str, Query]:
    return {rule: prepareQuery(text) for rule, text in checks().items()}


@cache
def _shapes_graph() -> Graph:
    return Graph().parse(data=shapes(), format="turtle")


def _finding(graph: Graph, node: Node | None, severity: Severity, rule: str, message: str) -> Finding:
    """Returns a finding with the agent and the tool of the node; the message names any other node by its IRI."""

    def identifier(node: Node | None) -> str:
        return str(graph.value(node, DCTERMS.identifier, any=True) or node or "")

    tool = graph.value(predicate=CS.hasDependency, object=node, any=True) or node
    if (tool, RDF.type, CS.Tool) in graph:
        agent_id = identifier(graph.value(tool, CS.hostedOn, any=True))
        return Finding(severity, rule, message, agent_id, identifier(tool))
    if (tool, RDF.type, CS.Agent) in graph:
        return Finding(severity, rule, message, identifier(tool))
    return Finding(severity, rule, f"<{node}>: {message}")
