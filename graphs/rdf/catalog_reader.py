"""Reads a catalog from an RDF graph."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from rdflib import DCTERMS, RDF, SKOS, Graph, Literal, URIRef
from rdflib.term import Node

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.model import Catalog
from callsheet.graphs.rdf.vocabulary_terms import CS, EDGES, HINTS
from callsheet.graphs.text.sanitizing import clean, counted

_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")
_KINDS = {term: kind for kind, term in EDGES.items()}


def from_graph(graph: Graph) -> Catalog:
    """The catalog in an RDF graph in Callsheet's vocabulary: the inverse of ``to_graph``.

    A missing ``cs:inputSchema`` is made from the tool's inputs; nodes without ``cs:position`` are ordered by
    identifier; an edge such as ``cs:toolDirectlyDependsOn`` is sufficient without a ``cs:Dependency``.

    Raises:
        CatalogError: The graph has no catalog, a node lacks a required property, an edge leads to an undescribed node,
            or the catalog is inconsistent.
    """
    agents = _ordered(graph, graph.subjects(RDF.type, CS.Agent))
    if not agents and (None, RDF.type, CS.Catalog) not in graph:
        raise CatalogError(f"contains no catalog: it has neither a cs:Catalog nor a cs:Agent, where cs: is <{CS._NS}>")
    reading = _Reading(graph)
    document: dict[str, Any] = {"agents": reading.agents(agents), "skills": reading.skills()}
    return Catalog(**document)


class _Reading:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._agents = {node: _needed(graph, node, DCTERMS.identifier) for node in _all(graph, CS.Agent)}
        self._tools = {node: self._identity(node) for node in _all(graph, CS.Tool)}

    def agents(self, nodes: Iterable[Node]) -> list[dict[str, Any]]:
        tools: dict[str, list[dict[str, Any]]] = {agent_id: [] for agent_id in self._agents.values()}
        for node in _ordered(self._graph, self._tools):
            tools[self._tools[node][0]].append(self._tool(node))
        return [self._agent(node, tools.get(self._agents[node], [])) for node in nodes]

    def skills(self) -> list[dict[str, Any]]:
        return [self._skill(node) for node in _ordered(self._graph, _all(self._graph, CS.Skill))]

    def _skill(self, node: Node) -> dict[str, Any]:
        ids = {self._needed_tool(tool) for tool in self._graph.objects(node, CS.namesTool)}
        return {
            "name": _needed(self._graph, node, CS.name),
            "tools": _in_order(self._graph, node, CS.toolOrder, ids),
            **self._texts(node, {"description": DCTERMS.description, "text": CS.instructions}),
        }

    def _agent(self, node: Node, tools: list[dict[str, Any]]) -> dict[str, Any]:
        texts = {
            "name": CS.name,
            "description": DCTERMS.description,
            "instructions": CS.instructions,
            "category": CS.category,
            "system": CS.system,
        }
        return {"id": self._agents[node], "tools": tools, **self._texts(node, texts)}

    def _identity(self, node: Node) -> tuple[str, str]:
        """Owner and name of a tool."""
        graph = self._graph
        owners = {*graph.objects(node, CS.hostedOn), *graph.subjects(CS.hosts, node)}
        if len(owners) != 1:
            raise CatalogError(
                f"tool {_shown(node)} is hosted on {counted(len(owners), 'agent')}: say one with cs:hostedOn"
            )
        owner = owners.pop()
        if owner not in self._agents:
            raise CatalogError(f"tool {_shown(node)} is hosted on {_shown(owner)}, which is not a cs:Agent here")
        return self._agents[owner], _needed(graph, node, CS.name)

    def _tool(self, node: Node) -> dict[str, Any]:
        agent, name = self._tools[node]
        try:
            return {
                "agent": agent,
                "name": name,
                "core": _boolean(self._graph, node, CS.core) or False,
                "annotations": self._annotations(node),
                "depends_on": self._dependencies(node),
                "capabilities": self._capabilities(node),
                **self._schemas(node),
                **self._texts(node, {"title": DCTERMS.title, "description": DCTERMS.description}),
            }
        except CatalogError as error:
            raise CatalogError(f"tool '{agent}/{name}': {error}") from error

    def _schemas(self, node: Node) -> dict[str, Any]:
        terms = {"input_schema": CS.inputSchema, "output_schema": CS.outputSchema}
        documents = {key: _document(self._graph, node, term) for key, term in terms.items()}
        schemas = {key: schema for key, schema in documents.items() if schema is not None}
        graph = self._graph
        required = set(graph.objects(node, CS.hasRequiredInput))
        inputs = {*required, *graph.objects(node, CS.hasInput), *graph.objects(node, CS.hasOptionalInput)}
        if inputs and "input_schema" not in schemas:
            schemas["input_schema"] = self._schema(inputs, required)
        if (outputs := set(graph.objects(node, CS.hasOutput))) and "output_schema" not in schemas:
            schemas["output_schema"] = self._schema(outputs, set())
        return schemas

    def _schema(self, fields: set[Node], required: set[Node]) -> dict[str, Any]:
        by_name = sorted((_needed(self._graph, field, CS.name), field) for field in fields)
        schema: dict[str, Any] = {"type": "object", "properties": {name: self._field(field) for name, field in by_name}}
        required_names = [name for name, field in by_name if field in required]
        return {**schema, "required": required_names} if required_names else schema

    def _field(self, node: Node) -> dict[str, Any]:
        types = sorted({str(value) for value in self._graph.objects(node, CS.valueType)} - {"any"})
        values = sorted(self._graph.objects(node, CS.enumValue), key=str)
        spec = {
            "type": types[0] if len(types) == 1 else types,
            "enum": [_value(value) for value in values],
            **self._texts(node, {"description": DCTERMS.description, "format": CS.valueFormat}),
        }
        default = _one(self._graph, node, CS.defaultValue)
        known = {key: value for key, value in spec.items() if value}
        return known if default is None else {**known, "default": _value(default)}

    def _annotations(self, node: Node) -> dict[str, Any]:
        annotations = _document(self._graph, node, CS.annotations)
        if annotations is not None:
            return annotations
        claims = {hint: _boolean(self._graph, node, term) for hint, term in HINTS.items()}
        return {hint: claim for hint, claim in claims.items() if claim is not None}

    def _capabilities(self, node: Node) -> list[str]:
        graph = self._graph
        ids = {_needed(graph, item, SKOS.notation) for item in graph.objects(node, CS.hasCapability)}
        return _in_order(graph, node, CS.capabilityOrder, ids)

    def _dependencies(self, node: Node) -> list[dict[str, Any]]:
        graph = self._graph
        edges = [self._dependency(item) for item in _ordered(graph, graph.objects(node, CS.hasDependency))]
        covered = {(edge["kind"], edge["tool"]) for edge in edges}
        bare = {
            (kind.value, self._needed_tool(target))
            for term, kind in _KINDS.items()
            for target in graph.objects(node, term)
        }
        return [*edges, *({"kind": kind, "tool": tool} for kind, tool in sorted(bare - covered))]

    def _dependency(self, node: Node) -> dict[str, Any]:
        graph = self._graph
        target = _one(graph, node, CS.needs)
        if target is None:
            raise CatalogError(f"the dependency {_shown(node)} has no cs:needs: say which tool is needed")
        numbers = {"confidence": CS.confidence, "count": CS.count}
        known = {key: _number(graph, node, term) for key, term in numbers.items()}
        texts = {"parameter": CS.parameterName, "reason": CS.reason, "provenance": CS.provenance}
        return {
            "tool": self._needed_tool(target),
            "kind": _needed(graph, node, CS.kind),
            **{key: value for key, value in known.items() if value is not None},
            **self._texts(node, texts),
        }

    def _needed_tool(self, node: Node) -> str:
        if node not in self._tools:
            raise CatalogError(
                f"depends on {_shown(node)}, which is not a cs:Tool here: describe it or remove the edge"
            )
        agent, name = self._tools[node]
        return f"{agent}/{name}"

    def _texts(self, node: Node, terms: dict[str, URIRef]) -> dict[str, str]:
        values = {key: _one(self._graph, node, term) for key, term in terms.items()}
        return {key: str(value) for key, value in values.items() if value is not None}


def _all(graph: Graph, kind: URIRef) -> list[Node]:
    return sorted(set(graph.subjects(RDF.type, kind)), key=str)


def _ordered(graph: Graph, nodes: Iterable[Node]) -> list[Node]:
    """The nodes by position; nodes without one come last, by identifier and then by IRI."""

    def place(node: Node) -> tuple[float, str, str]:
        position = _number(graph, node, CS.position)
        return (
            math.inf if position is None else position,
            str(graph.value(node, DCTERMS.identifier, any=True) or ""),
            str(node),
        )

    return sorted(set(nodes), key=place)


def _in_order(graph: Graph, node: Node, term: URIRef, ids: set[str]) -> list[str]:
    """The ids in the order that the JSON list of this term gives; the others after them."""
    order = _one(graph, node, term)
    preferred = [] if order is None else _parsed(order)
    first = [item for item in preferred if item in ids] if isinstance(preferred, list) else []
    return [*first, *sorted(ids.difference(first))]


def _one(graph: Graph, node: Node, term: URIRef) -> Node | None:
    values = set(graph.objects(node, term))
    if len(values) > 1:
        raise CatalogError(f"{_shown(node)} has {len(values)} values of {_shown(term)}: keep one")
    return values.pop() if values else None


def _needed(graph: Graph, node: Node, term: URIRef) -> str:
    value = _one(graph, node, term)
    if value is None:
        raise CatalogError(f"{_shown(node)} has no {_shown(term)}: give it one")
    return str(value)


def _number(graph: Graph, node: Node, term: URIRef) -> float | None:
    value = _one(graph, node, term)
    if value is None:
        return None
    text = str(value)
    try:
        number = int(text) if _INTEGER.fullmatch(text) else float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise CatalogError(f"{_shown(node)}: {_shown(term)} is {text[:40]!r}, which is not a number")
    return number


def _boolean(graph: Graph, node: Node, term: URIRef) -> bool | None:
    value = _one(graph, node, term)
    if value is None:
        return None
    if not isinstance(value, Literal) or not isinstance(value.value, bool) or value.ill_typed:
        raise CatalogError(f"{_shown(node)}: {_shown(term)} is not a boolean: write true or false, without quotes")
    return value.value


def _document(graph: Graph, node: Node, term: URIRef) -> dict[str, Any] | None:
    value = _one(graph, node, term)
    if value is None:
        return None
    document = _parsed(value)
    if not isinstance(document, dict):
        raise CatalogError(f"{_shown(term)} is not an object")
    return document


def _value(node: Node) -> Any:
    return _parsed(node) if isinstance(node, Literal) and node.datatype == CS.json else str(node)


def _parsed(value: Node) -> Any:
    try:
        return clean(json.loads(str(value)))
    except json.JSONDecodeError as error:
        raise CatalogError(f"{str(value)[:40]!r} is not valid JSON: {error.msg}, column {error.colno}") from error
    except RecursionError as error:
        raise CatalogError("a JSON literal is nested too deeply") from error


def _shown(node: Node) -> str:
    """The node as a prefixed name, or as an IRI of at most 120 characters in angle brackets."""
    text = str(node)
    for prefix, namespace in {"cs": CS._NS, "dcterms": DCTERMS._NS, "skos": SKOS._NS}.items():
        if text.startswith(namespace):
            return f"{prefix}:{text.removeprefix(namespace)}"
    return f"<{text[:120]}>"
