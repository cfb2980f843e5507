"""RDF as text: Turtle, JSON-LD and N-Triples."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import cache
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import IO, Any, NoReturn, cast

from rdflib import RDF, SKOS, XSD, ConjunctiveGraph, Graph, Literal
from rdflib.plugins.parsers.ntriples import NTGraphSink, W3CNTriplesParser
from rdflib.term import Node

from callsheet.graphs.capabilities.taxonomy import Capability
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.rdf.catalog_reader import from_graph
from callsheet.graphs.rdf.catalog_writer import to_graph
from callsheet.graphs.rdf.vocabulary_terms import BASE, CS, EDGES, prefixes
from callsheet.graphs.text.regex import linear
from callsheet.graphs.text.sanitizing import written_out

_SAFE_INTEGER = 2**53
_LINKS = (
    *(CS.lists, CS.hosts, CS.hostedOn, CS.hasInput, CS.hasRequiredInput, CS.hasOptionalInput, CS.hasOutput),
    *(CS.hasCapability, CS.namesTool, CS.hasDependency, CS.dependsOn, *EDGES.values(), CS.needs, CS.onParameter),
    *(SKOS.broader, SKOS.narrower),
)
_TYPED = {
    CS.inputSchema: CS.json,
    CS.outputSchema: CS.json,
    CS.annotations: CS.json,
    CS.capabilityOrder: CS.json,
    CS.toolOrder: CS.json,
    CS.confidence: XSD.decimal,
}


def json_ld(graph: Graph, prefixes: Mapping[str, str]) -> str:
    """The graph as one JSON-LD document with its context.

    Args:
        graph: A graph without blank nodes; subjects and values are written in alphabetical order.
        prefixes: Prefix -> namespace; each namespace ends in a slash or a hash.
    """
    short = _Names(prefixes)
    types: dict[Node, str] = {**dict.fromkeys(_LINKS, "@id"), **{term: short(kind) for term, kind in _TYPED.items()}}
    context = {**prefixes, **{short(term): {"@id": short(term), "@type": kind} for term, kind in types.items()}}
    nodes: dict[Node, dict[str, Any]] = {}
    for subject, term, value in sorted(graph):
        node = nodes.setdefault(subject, {"@id": short(subject)})
        name = "@type" if term == RDF.type else short(term)
        node.setdefault(name, []).append(_value(value, short, types.get(term, "")))
    document = {"@context": context, "@graph": [_single(node) for node in nodes.values()]}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


class _Names:
    def __init__(self, prefixes: Mapping[str, str]) -> None:
        self._prefixes = sorted(prefixes.items(), key=lambda item: -len(item[1]))

    def __call__(self, node: Node) -> str:
        """As ``prefix:name`` where a prefix fits."""
        text = str(node)
        for prefix, namespace in self._prefixes:
            if text.startswith(namespace):
                return f"{prefix}:{text.removeprefix(namespace)}"
        return text


def _value(value: Node, short: _Names, declared: str) -> Any:
    if not isinstance(value, Literal):
        return short(value)
    kind = "" if value.datatype is None else short(value.datatype)
    if kind == declared:
        return str(value)
    native = value.toPython()
    if isinstance(native, bool) or (kind == "xsd:integer" and abs(native) < _SAFE_INTEGER):
        return native
    return {"@value": str(value), "@type": kind}


def _single(node: Mapping[str, Any]) -> dict[str, Any]:
    """A list of one value as the value."""
    return {name: value[0] if isinstance(value, list) and len(value) == 1 else value for name, value in node.items()}


_CONTEXT, _PARSER = "rdflib.plugins.shared.jsonld.context", "rdflib.plugins.parsers.jsonld"


def read_json_ld(text: str, base: str) -> Graph:
    """The default graph in a JSON-LD text.

    Raises:
        CatalogError: The text is not JSON, or its context is in another document.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise CatalogError(f"not valid JSON: {error.msg}, line {error.lineno} column {error.colno}") from error
    except (RecursionError, ValueError) as error:
        raise CatalogError("not valid JSON-LD: nested too deeply, or a number too long") from error
    if not isinstance(document, dict | list):
        raise CatalogError("not valid JSON-LD: it is neither an object nor a list of objects")
    graph = Graph(bind_namespaces="none")
    _parser().to_rdf(document, ConjunctiveGraph(store=graph.store, identifier=graph.identifier), base=base)
    return graph


@cache
def _parser() -> ModuleType:
    """Rdflib's parser with our own copy of its context module, because rdflib has no setting for the loader."""
    context, parser = _copy_of(_CONTEXT), _copy_of(_PARSER)
    vars(context)["source_to_json"] = _refuse
    for name in ("Context", "Term", "UNDEF"):
        vars(parser)[name] = vars(context)[name]
    vars(parser)["TYPE_TERM"] = context.Term(str(RDF.type), "@type", "@vocab")
    return parser


def _copy_of(name: str) -> ModuleType:
    spec = find_spec(name)
    if spec is None or spec.loader is None:
        raise ImportError(f"this version of rdflib has no {name}")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _refuse(source: str) -> NoReturn:
    raise CatalogError(f"its @context is at {source[:80]!r}, which is not fetched: write it into the file")


class RdfFormat(StrEnum):
    """A text format of RDF."""

    TURTLE = "turtle"
    JSON_LD = "jsonld"
    N_TRIPLES = "ntriples"


_OF_SUFFIX: Mapping[str, RdfFormat] = {
    ".ttl": RdfFormat.TURTLE,
    ".jsonld": RdfFormat.JSON_LD,
    ".nt": RdfFormat.N_TRIPLES,
}
_BAD_TURTLE = linear(r"at line (?P<line>\d+) of <.*?>: Bad syntax \((?P<why>.*)\) at \^ in:")
_LONGEST = 200
_WORDS = {RdfFormat.TURTLE: "Turtle", RdfFormat.JSON_LD: "JSON-LD", RdfFormat.N_TRIPLES: "N-Triples"}


def to_rdf(
    catalog: Catalog,
    taxonomy: Sequence[Capability] | None = None,
    *,
    form: RdfFormat = RdfFormat.TURTLE,
    base: str = BASE,
) -> str:
    """The catalog as RDF text, which ``from_rdf`` reads back unchanged; arguments and errors as for ``to_graph``."""
    graph = to_graph(catalog, taxonomy, base=base)
    if form is RdfFormat.JSON_LD:
        return written_out(json_ld(graph, prefixes(base)))
    if form is RdfFormat.N_TRIPLES:
        return written_out("\n".join(sorted(graph.serialize(format="nt").strip().split("\n"))) + "\n", longest=8)
    return written_out(graph.serialize(format="turtle"), longest=8)


def from_rdf(text: str, *, form: RdfFormat = RdfFormat.TURTLE) -> Catalog:
    """The catalog in an RDF text.

    Raises:
        CatalogError: The text is not valid in this format, or as for ``from_graph``.
    """
    return from_graph(parse(text, form=form))


def read_rdf(path: Path) -> Catalog:
    """The catalog in a file; the suffix determines the format: ``.ttl``, ``.jsonld`` or ``.nt``.

    Raises:
        CatalogError: The file cannot be read, or as for ``from_rdf``; the message begins with its path.
    """
    graph = graph_of_file(path)
    try:
        return from_graph(graph)
    except CatalogError as error:
        raise CatalogError(f"{path}: {error}") from error


def graph_of_file(path: Path) -> Graph:
    """The graph in an RDF file, valid as a catalog or not.

    Raises:
        CatalogError: The file cannot be read, or is not valid in the format of its suffix.
    """
    if path.suffix.lower() not in _OF_SUFFIX:
        raise CatalogError(f"{path}: not an RDF file: its name should end in {', '.join(_OF_SUFFIX)}")
    try:
        return parse(path.read_text(encoding="utf-8-sig"), form=_OF_SUFFIX[path.suffix.lower()])
    except UnicodeDecodeError as error:
        raise CatalogError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from error
    except OSError as error:
        raise CatalogError(f"{path}: cannot be read: {error.strerror}") from error
    except CatalogError as error:
        raise CatalogError(f"{path}: {error}") from error


def parse(text: str, *, form: RdfFormat) -> Graph:
    """The graph in an RDF text, without network access.

    Raises:
        CatalogError: The text is not valid in this format, or it is JSON-LD whose context is in another document.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            if form is RdfFormat.N_TRIPLES:
                return read_n_triples(text)
            if form is RdfFormat.JSON_LD:
                return read_json_ld(text, BASE)
            return Graph(bind_namespaces="none").parse(data=text, format="turtle", publicID=BASE)
    except CatalogError:
        raise
    except RecursionError as error:
        raise CatalogError(f"not valid {_WORDS[form]}: nested too deeply") from error
    except Exception as error:
        raise CatalogError(f"not valid {_WORDS[form]}: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    words = " ".join(str(error).split())
    if place := _BAD_TURTLE.match(words):
        return f"{place['why']}, line {place['line']}"
    if not isinstance(error, (SyntaxError, ValueError)):
        words = f"its structure cannot be understood ({type(error).__name__}: {words})"
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."


_LINE_END = re.compile(r"\r\n|\r|\n")


class NTriplesError(ValueError):
    """A line is not a triple; the message gives its number."""


def read_n_triples(text: str) -> Graph:
    """The graph in an N-Triples text.

    Raises:
        NTriplesError: A line is not a triple.
    """
    graph = Graph(bind_namespaces="none")
    lines = _Lines(text)
    try:
        W3CNTriplesParser(NTGraphSink(graph)).parse(cast("IO[bytes]", lines))
    except Exception as error:  # the parser can raise any error
        raise NTriplesError(f"line {lines.read_so_far} is not a triple") from error
    return graph


class _Lines:
    """A file that returns one line per read."""

    encoding = "utf-8"

    def __init__(self, text: str) -> None:
        self._lines = _LINE_END.split(text)
        self.read_so_far = 0

    def read(self, _: int) -> str:
        if self.read_so_far == len(self._lines):
            return ""
        self.read_so_far += 1
        return f"{self._lines[self.read_so_far - 1]}\n"
