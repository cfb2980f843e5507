"""Reads and writes RDF as Turtle, JSON-LD and N-Triples."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from enum import StrEnum
from functools import cache
from importlib.util import find_spec, module_from_spec
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, cast

from rdflib import RDF, SKOS, ConjunctiveGraph, Graph
from rdflib.parser import InputSource
from rdflib.plugins.serializers import jsonld

from callsheet.graphs.capabilities.taxonomy import Capability
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.rdf.catalog_graph import BASE, CS, DOCUMENTS, PREFIXES, TERMS, from_graph, to_graph
from callsheet.graphs.text.hidden import written_out
from callsheet.graphs.text.regex import linear
from callsheet.graphs.text.regular_files import read_regular

_LINKS = (*(CS[term] for term, kind in TERMS.items() if kind == "owl:ObjectProperty"), SKOS.broader, SKOS.narrower)
_TYPES = {
    **dict.fromkeys((*DOCUMENTS.values(), CS.capabilityOrder, CS.toolOrder), "cs:json"),
    CS.confidence: "xsd:decimal",
    CS["count"]: "xsd:integer",
    **dict.fromkeys(_LINKS, "@id"),
}


class RdfFormat(StrEnum):
    """A text format of RDF."""

    TURTLE = "turtle"
    JSON_LD = "jsonld"
    N_TRIPLES = "ntriples"


_OF_SUFFIX = {".ttl": RdfFormat.TURTLE, ".jsonld": RdfFormat.JSON_LD, ".nt": RdfFormat.N_TRIPLES}
_NAMES = dict(zip(RdfFormat, ("Turtle", "JSON-LD", "N-Triples"), strict=True))
_BAD_TURTLE = linear(r"at line (?P<line>\d+) of <.*?>: Bad syntax \((?P<why>.*)\) at \^ in:")
_LONGEST = 200


def to_rdf(
    catalog: Catalog, taxonomy: Sequence[Capability] | None = None, *, form: RdfFormat = RdfFormat.TURTLE
) -> str:
    """Returns the catalog as RDF text, which ``from_rdf`` reads back unchanged; arguments as for ``to_graph``."""
    graph = to_graph(catalog, taxonomy)
    if form is RdfFormat.JSON_LD:
        return written_out(_json_ld(graph))
    text = graph.serialize(format=form)
    if form is RdfFormat.N_TRIPLES:
        text = "\n".join(sorted(text.strip().split("\n"))) + "\n"
    return written_out(text, longest=8)


def _json_ld(graph: Graph) -> str:
    """Returns the graph, which has no blank nodes, as one document with its context, in alphabetical order."""
    context: dict[str, Any] = dict(PREFIXES)
    for term, kind in _TYPES.items():
        name = graph.namespace_manager.curie(term)
        context[name] = {"@id": name, "@type": kind}
    document: Any = cast("Any", jsonld).from_rdf(graph, context_data=context)
    nodes = document.get("@graph", [])
    for node in nodes:
        for key, value in node.items():
            if isinstance(value, list):
                node[key] = sorted(value, key=str)
    nodes.sort(key=lambda node: node["@id"])
    return json.dumps(document, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def from_rdf(text: str, *, form: RdfFormat = RdfFormat.TURTLE) -> Catalog:
    """Reads a catalog from an RDF text; raises as ``parse`` and ``from_graph`` do."""
    return from_graph(parse(text, form=form))


def read_rdf(path: Path) -> Catalog:
    """Reads a catalog from a file, whose suffix determines the format: ``.ttl``, ``.jsonld`` or ``.nt``.

    Raises:
        CatalogError: The file cannot be read, or as for ``from_rdf``; the message begins with its path.
    """
    graph = graph_of_file(path)
    try:
        return from_graph(graph)
    except CatalogError as error:
        raise CatalogError(f"{path}: {error}") from error


def graph_of_file(path: Path) -> Graph:
    """Reads the graph of an RDF file, even if it is not a valid catalog.

    Raises:
        CatalogError: The file cannot be read, or its text is not valid RDF.
    """
    try:
        form = _OF_SUFFIX.get(path.suffix.lower())
        if form is None:
            raise CatalogError(f"not an RDF file: its name should end in {', '.join(_OF_SUFFIX)}")
        return parse(read_regular(path).decode("utf-8-sig"), form=form)
    except UnicodeDecodeError as error:
        raise CatalogError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from error
    except (CatalogError, OSError) as error:
        why = f"cannot be read: {error.strerror}" if isinstance(error, OSError) else error
        raise CatalogError(f"{path}: {why}") from error


def parse(text: str, *, form: RdfFormat) -> Graph:
    """Parses an RDF text to a graph, without network access.

    Raises:
        CatalogError: The text is not valid in this format, or it is JSON-LD whose context is in another document.
    """
    graph = Graph(bind_namespaces="none")
    try:
        with warnings.catch_warnings(action="ignore"):
            if form is RdfFormat.JSON_LD:
                whole = ConjunctiveGraph(store=graph.store, identifier=graph.identifier)
                _json_ld_parser().to_rdf(json.loads(text), whole, base=BASE)
                return graph
            source = InputSource()
            source.setCharacterStream(_Lines(text) if form is RdfFormat.N_TRIPLES else StringIO(text))
            return graph.parse(source, format=form, publicID=BASE)
    except CatalogError:
        raise
    except Exception as error:
        raise CatalogError(f"not valid {_NAMES[form]}: {_reason(error)}") from error


class _Lines(StringIO):
    """Gives rdflib a line at a time; it would match a long line anew with every 2 kB."""

    def read(self, size: int | None = -1, /) -> str:
        return self.readline()


@cache
def _json_ld_parser() -> ModuleType:
    """Returns rdflib's parser with our own copy of its context module: rdflib has no setting for the loader."""
    context, parser = map(_copy_of, ("rdflib.plugins.shared.jsonld.context", "rdflib.plugins.parsers.jsonld"))
    vars(context)["source_to_json"] = _refuse
    for name in ("Context", "Term", "UNDEF"):
        vars(parser)[name] = vars(context)[name]
    vars(parser)["TYPE_TERM"] = context.Term(str(RDF.type), "@type", "@vocab")
    return parser


def _copy_of(name: str) -> ModuleType:
    spec: Any = find_spec(name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _refuse(source: str) -> NoReturn:
    raise CatalogError(f"its @context is at {source[:80]!r}, which is not fetched: write it into the file")


def _reason(error: Exception) -> str:
    """Returns why rdflib cannot parse a text, in words."""
    if isinstance(error, RecursionError):
        return "nested too deeply"
    words = " ".join(str(error).split())
    place = _BAD_TURTLE.match(words)
    if place:
        return f"{place['why']}, line {place['line']}"
    if not isinstance(error, (SyntaxError, ValueError)):
        words = f"its structure cannot be understood ({type(error).__name__}: {words})"
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."
