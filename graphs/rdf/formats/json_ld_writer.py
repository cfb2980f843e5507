"""Writes JSON-LD of a graph without blank nodes. rdflib's own writer loses some values and large integers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rdflib import RDF, SKOS, XSD, Graph, Literal
from rdflib.term import Node

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
