"""Writes and reads JSON-LD of a graph without blank nodes. rdflib's own writer loses some values and large integers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any, NoReturn

from rdflib import RDF, SKOS, XSD, ConjunctiveGraph, Graph, Literal
from rdflib.term import Node

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.rdf.vocabulary_terms import CS, EDGES

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
