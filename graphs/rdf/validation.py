"""What SHACL shapes and SPARQL queries find in an RDF graph."""

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
from callsheet.graphs.catalog.errors import CallsheetError, CatalogError
from callsheet.graphs.catalog.finding import Finding, Severity
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.rdf.catalog_reader import from_graph
from callsheet.graphs.rdf.catalog_writer import to_graph
from callsheet.graphs.rdf.formats.serialization import graph_of_file
from callsheet.graphs.rdf.vocabulary_terms import CS

_SEVERITIES = {SH.Violation: Severity.ERROR, SH.Warning: Severity.WARNING, SH.Info: Severity.INFO}


def rdf_findings(catalog: Catalog, taxonomy: Sequence[Capability] | None = None) -> tuple[Finding, ...]:
    """What the SHACL shapes and the SPARQL checks find in a catalog's RDF.

    Args:
        catalog: What is checked.
        taxonomy: The capabilities that there are; those of the default taxonomy if None.
    """
    return graph_findings(to_graph(catalog, taxonomy))


def rdf_file_findings(path: Path) -> tuple[Finding, ...]:
    """What is wrong with an RDF file: its syntax, the SHACL shapes, the SPARQL checks, and whether it can be read.

    Args:
        path: A ``.ttl``, ``.jsonld`` or ``.nt`` file, valid as a catalog or not.
    """
    try:
        graph = graph_of_file(path)
    except CatalogError as error:
        return (Finding(Severity.ERROR, "rdf-syntax", str(error)),)
    found = graph_findings(graph)
    try:
        from_graph(graph)
    except CatalogError as error:
        return (*found, Finding(Severity.ERROR, "rdf-catalog", f"{path}: {error}"))
    return found


def graph_findings(graph: Graph) -> tuple[Finding, ...]:
    """What the SHACL shapes and the SPARQL checks find in a graph, without repetitions, in the order of the rules."""
    return tuple(dict.fromkeys((*_shaped(graph), *_checked(graph))))


@cache
def shapes() -> str:
    """The SHACL shapes as Turtle, as they are shipped."""
    return files("callsheet.graphs.rdf").joinpath("shapes", "shapes.ttl").read_text(encoding="utf-8")


@cache
def checks() -> Mapping[str, str]:
    """The SPARQL checks by rule: relation traversal, inverse consistency, hierarchy and integrity.

    Each selects ``?node``, ``?severity`` and ``?message`` of what is wrong.

    Source: Representing Agentic Tools in Knowledge Graphs, the validation of the graph by SPARQL; the queries are ours.
    """
    kinds = files("callsheet.graphs.rdf").joinpath("checks").iterdir()
    queries = {f"{kind.name}-{item.name.removesuffix('.rq')}": item for kind in kinds for item in kind.iterdir()}
    return {rule: queries[rule].read_text(encoding="utf-8") for rule in sorted(queries)}


def _shaped(graph: Graph) -> Iterator[Finding]:
    import pyshacl

    conforms, report, said = pyshacl.validate(graph, shacl_graph=_shapes_graph(), inplace=True)
    if isinstance(report, Exception) or not isinstance(report, Graph):
        raise CallsheetError(f"the SHACL shapes could not be applied: {said}")
    results = () if conforms else report.subjects(RDF.type, SH.ValidationResult)
    found = []
    for result in results:
        node, shape = report.value(result, SH.focusNode), report.value(result, SH.sourceShape)
        named = isinstance(shape, URIRef)
        rule = str(shape).rpartition("#")[2] if named else "rdf-shape"
        severity = _SEVERITIES[cast("URIRef", report.value(result, SH.resultSeverity))]
        found.append(_finding(graph, node, severity, rule, str(report.value(result, SH.resultMessage))))
    yield from sorted(found, key=lambda finding: (finding.rule, finding.agent, finding.tool, finding.message))


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
    """With the agent and the tool that the node is, or belongs to; a node of no name is shown by its IRI."""
    tool = graph.value(predicate=CS.hasDependency, object=node, any=True) or node
    if (tool, RDF.type, CS.Tool) in graph:
        agent = graph.value(tool, CS.hostedOn, any=True)
        ids = str(graph.value(agent, DCTERMS.identifier, any=True) or ""), _id(graph, tool)
    elif (tool, RDF.type, CS.Agent) in graph:
        ids = _id(graph, tool), ""
    else:
        ids = "", ""
    return Finding(severity, rule, message if any(ids) else f"<{node}>: {message}", *ids)


def _id(graph: Graph, node: Node | None) -> str:
    return str(graph.value(node, DCTERMS.identifier, any=True) or node)
