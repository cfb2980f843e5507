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
from callsheet.graphs.rdf.vocabulary_terms import CS, DOCUMENTS, EDGES, HINTS, NAMESPACE, TEXTS
from callsheet.graphs.text.sanitizing import clean, counted

_INTEGER = re.compile(r"[+-]?[0-9]{1,4000}")


def from_graph(graph: Graph) -> Catalog:
    """The catalog in an RDF graph in Callsheet's vocabulary: the inverse of ``to_graph``.

    A missing ``cs:inputSchema`` is made from the tool's inputs; nodes without ``cs:position`` are ordered by
    identifier; an edge such as ``cs:toolDirectlyDependsOn`` is sufficient without a ``cs:Dependency``.

    Raises:
        CatalogError: The graph has no catalog, a node lacks a required property, an edge leads to an undescribed node,
            or the catalog is inconsistent.
    """
    reading = _Reading(graph)
    if not reading.agents and (None, RDF.type, CS.Catalog) not in graph:
        raise CatalogError(
            f"contains no catalog: it has neither a cs:Catalog nor a cs:Agent, where cs: is <{NAMESPACE}>"
        )
    document: dict[str, Any] = reading.document()
    return Catalog(**document)


class _Reading:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.agents = {node: self._needed(node, DCTERMS.identifier) for node in self._all(CS.Agent)}
        self._tools = {node: self._identity(node) for node in self._all(CS.Tool)}

    def document(self) -> dict[str, Any]:
        """The catalog as plain values."""
        tools: dict[str, list[dict[str, Any]]] = {agent_id: [] for agent_id in self.agents.values()}
        for node in self._ordered(self._tools):
            tools[self._tools[node][0]].append(self._tool(node))
        agents = [
            {"id": self.agents[node], "tools": tools.get(self.agents[node], []), **self._texts(node, CS.Agent)}
            for node in self._ordered(self.agents)
        ]
        return {"agents": agents, "skills": [self._skill(node) for node in self._ordered(self._all(CS.Skill))]}

    def _skill(self, node: Node) -> dict[str, Any]:
        ids = {self._tool_id(tool) for tool in self._graph.objects(node, CS.namesTool)}
        self._needed(node, CS.name)
        return {"tools": self._in_order(node, CS.toolOrder, ids), **self._texts(node, CS.Skill)}

    def _identity(self, node: Node) -> tuple[str, str]:
        """Owner and name of a tool."""
        owners = {*self._graph.objects(node, CS.hostedOn), *self._graph.subjects(CS.hosts, node)}
        if len(owners) != 1:
            number = counted(len(owners), "agent")
            raise CatalogError(f"tool {_shown(node)} is hosted on {number}: say one with cs:hostedOn")
        owner = owners.pop()
        if owner not in self.agents:
            raise CatalogError(f"tool {_shown(node)} is hosted on {_shown(owner)}, which is not a cs:Agent here")
        return self.agents[owner], self._needed(node, CS.name)

    def _tool(self, node: Node) -> dict[str, Any]:
        agent, name = self._tools[node]
        capabilities = self._graph.objects(node, CS.hasCapability)
        try:
            ids = {self._needed(item, SKOS.notation) for item in capabilities}
            return {
                "agent": agent,
                "core": self._boolean(node, CS.core) or False,
                "depends_on": self._dependencies(node),
                "capabilities": self._in_order(node, CS.capabilityOrder, ids),
                **self._documents(node),
                **self._texts(node, CS.Tool),
            }
        except CatalogError as error:
            raise CatalogError(f"tool '{agent}/{name}': {error}") from error

    def _documents(self, node: Node) -> dict[str, Any]:
        """The schemas and the annotations; where one is missing, what the graph says of fields and hints."""
        graph, documents = self._graph, dict[str, Any]()
        for name, term in DOCUMENTS.items():
            if (value := self._one(node, term)) is not None:
                documents[name] = _parsed(value)
                if not isinstance(documents[name], dict):
                    raise CatalogError(f"{_shown(term)} is not an object")
        required = set(graph.objects(node, CS.hasRequiredInput))
        inputs = {*required, *graph.objects(node, CS.hasInput), *graph.objects(node, CS.hasOptionalInput)}
        for name, fields in (("input_schema", inputs), ("output_schema", set(graph.objects(node, CS.hasOutput)))):
            if fields and name not in documents:
                documents[name] = self._schema(fields, required)
        claims = {hint: self._boolean(node, term) for hint, term in HINTS.items()}
        return {"annotations": {hint: claim for hint, claim in claims.items() if claim is not None}, **documents}

    def _schema(self, fields: set[Node], required: set[Node]) -> dict[str, Any]:
        by_name = sorted((self._needed(field, CS.name), field) for field in fields)
        schema: dict[str, Any] = {"type": "object", "properties": {name: self._field(field) for name, field in by_name}}
        required_names = [name for name, field in by_name if field in required]
        return {**schema, "required": required_names} if required_names else schema

    def _field(self, node: Node) -> dict[str, Any]:
        types = sorted({str(value) for value in self._graph.objects(node, CS.valueType)} - {"any"})
        values = sorted(self._graph.objects(node, CS.enumValue), key=str)
        texts = {key: text for key, text in self._texts(node, CS.Field).items() if key != "name"}
        spec = {"type": types[0] if len(types) == 1 else types, "enum": [_value(value) for value in values], **texts}
        default = self._one(node, CS.defaultValue)
        known = {key: value for key, value in spec.items() if value}
        return known if default is None else {**known, "default": _value(default)}

    def _dependencies(self, node: Node) -> list[dict[str, Any]]:
        edges = [self._dependency(item) for item in self._ordered(self._graph.objects(node, CS.hasDependency))]
        covered = {(edge["kind"], edge["tool"]) for edge in edges}
        bare = {
            (kind.value, self._tool_id(target))
            for kind, term in EDGES.items()
            for target in self._graph.objects(node, term)
        }
        return [*edges, *({"kind": kind, "tool": tool} for kind, tool in sorted(bare - covered))]

    def _dependency(self, node: Node) -> dict[str, Any]:
        target = self._one(node, CS.needs)
        if target is None:
            raise CatalogError(f"the dependency {_shown(node)} has no cs:needs: say which tool is needed")
        self._needed(node, CS.kind)
        numbers = {name: self._number(node, CS[name]) for name in ("confidence", "count")}
        known = {name: number for name, number in numbers.items() if number is not None}
        return {"tool": self._tool_id(target), **known, **self._texts(node, CS.Dependency)}

    def _tool_id(self, node: Node) -> str:
        if node not in self._tools:
            raise CatalogError(
                f"depends on {_shown(node)}, which is not a cs:Tool here: describe it or remove the edge"
            )
        return "/".join(self._tools[node])

    def _texts(self, node: Node, kind: URIRef) -> dict[str, str]:
        values = {name: self._one(node, term) for name, term in TEXTS[kind].items()}
        return {name: str(value) for name, value in values.items() if value is not None}

    def _all(self, kind: URIRef) -> list[Node]:
        return sorted(set(self._graph.subjects(RDF.type, kind)), key=str)

    def _ordered(self, nodes: Iterable[Node]) -> list[Node]:
        """The nodes by position; nodes without one come last, by identifier and then by IRI."""

        def place(node: Node) -> tuple[float, str, str]:
            position = self._number(node, CS.position)
            identifier = self._graph.value(node, DCTERMS.identifier, any=True)
            return math.inf if position is None else position, str(identifier or ""), str(node)

        return sorted(set(nodes), key=place)

    def _in_order(self, node: Node, term: URIRef, ids: set[str]) -> list[str]:
        """The ids in the order that the JSON list of this term gives; the others after them."""
        order = self._one(node, term)
        preferred = [] if order is None else _parsed(order)
        first = [item for item in preferred if item in ids] if isinstance(preferred, list) else []
        return [*first, *sorted(ids.difference(first))]

    def _one(self, node: Node, term: URIRef) -> Node | None:
        values = set(self._graph.objects(node, term))
        if len(values) > 1:
            raise CatalogError(f"{_shown(node)} has {len(values)} values of {_shown(term)}: keep one")
        return values.pop() if values else None

    def _needed(self, node: Node, term: URIRef) -> str:
        value = self._one(node, term)
        if value is None:
            raise CatalogError(f"{_shown(node)} has no {_shown(term)}: give it one")
        return str(value)

    def _number(self, node: Node, term: URIRef) -> float | None:
        value = self._one(node, term)
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

    def _boolean(self, node: Node, term: URIRef) -> bool | None:
        value = self._one(node, term)
        if value is None:
            return None
        if not isinstance(value, Literal) or not isinstance(value.value, bool) or value.ill_typed:
            raise CatalogError(f"{_shown(node)}: {_shown(term)} is not a boolean: write true or false, without quotes")
        return value.value


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
    for prefix, namespace in {"cs": NAMESPACE, "dcterms": str(DCTERMS), "skos": str(SKOS)}.items():
        if text.startswith(namespace):
            return f"{prefix}:{text.removeprefix(namespace)}"
    return f"<{text[:120]}>"
