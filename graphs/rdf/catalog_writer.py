"""Writes a catalog as an RDF graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from rdflib import DCTERMS, RDF, RDFS, SKOS, XSD, Graph, Literal, URIRef

from callsheet.graphs.capabilities.taxonomy import Capability
from callsheet.graphs.catalog.errors import SettingsError
from callsheet.graphs.catalog.model import Agent, Catalog, Dependency, Parameter, Skill, Tool
from callsheet.graphs.export import json_text, key, key_of
from callsheet.graphs.knowledge_graph import Relation, detailed_graph, field_node
from callsheet.graphs.rdf.vocabulary_terms import BASE, CS, DOCUMENTS, EDGES, HINTS, TEXTS, prefixes
from callsheet.graphs.text.sanitizing import encodable

_EDGES: Mapping[str, tuple[Sequence[URIRef], Sequence[URIRef]]] = {
    Relation.OWNED_BY: ([CS.hostedOn], [CS.hosts]),
    Relation.USES: ([CS.namesTool], []),
    Relation.HAS_REQUIRED_INPUT: ([CS.hasInput, CS.hasRequiredInput], []),
    Relation.HAS_OPTIONAL_INPUT: ([CS.hasInput, CS.hasOptionalInput], []),
    Relation.HAS_OUTPUT: ([CS.hasOutput], []),
    Relation.HAS_CAPABILITY: ([CS.hasCapability], []),
    Relation.PARENT: ([SKOS.broader], [SKOS.narrower]),
    **{kind: ([CS.dependsOn, term], []) for kind, term in EDGES.items()},
}
"""The properties of each kind of edge, along it and against it."""


def to_graph(catalog: Catalog, taxonomy: Sequence[Capability] | None = None, *, base: str = BASE) -> Graph:
    """The catalog as RDF in Callsheet's vocabulary; ``docs/reference/ontology.md`` shows the form.

    Source: Representing Agentic Tools in Knowledge Graphs, the ontology of servers, tools, capabilities and
    parameters; outputs, annotations, dependencies and the hierarchy are ours.

    Args:
        catalog: The catalog. Lone surrogates become question marks.
        taxonomy: The taxonomy of the capabilities; None: the default taxonomy. The graph includes the capabilities of
            the tools and all broader ones.
        base: The beginning of the IRIs of the catalog's nodes.

    Raises:
        SettingsError: The base is not an absolute IRI that ends in a slash or a hash.
    """
    scheme, bad = base.partition("/")[0], any(c in ' <>"{}|^`\\' or c < " " for c in base)
    if ":" not in scheme or base[-1] not in "/#" or bad:
        raise SettingsError(f"the base {base!r} is not an absolute IRI that ends in / or #")
    writing = _Writing(base)
    graph = detailed_graph(catalog, taxonomy)
    iris = {node: writing.iri(key_of(graph, node)) for node in graph}
    writing.catalog(catalog, iris)
    for node, data in graph.nodes(data=True):
        match data["kind"]:
            case "capability":
                writing.capability(iris[node], node[1], data["record"])
            case "parameter" | "output" as role:
                writing.field(iris[node], data["record"], role)
    for source, target, place, data in graph.edges(keys=True, data=True):
        writing.edge(iris[source], iris[target], data["kind"])
        if edge := data.get("dependency"):
            writing.dependency(iris[source], iris[target], catalog.tools[source], edge, place)
    return writing.graph


_MAY_BE_EMPTY = {(CS.Field, "name"), (CS.Dependency, "parameter")}


class _Writing:
    def __init__(self, base: str) -> None:
        self.graph = Graph(bind_namespaces="none")
        for prefix, namespace in prefixes(base).items():
            self.graph.bind(prefix, namespace)
        self._base = base

    def catalog(self, catalog: Catalog, iris: Mapping[Any, URIRef]) -> None:
        node = self.iri("catalog")
        self._say(node, RDF.type, CS.Catalog)
        for one in (*catalog.by_id, *catalog.skills_by_id):
            self._say(node, CS.lists, iris[one])
        for position, agent in enumerate(catalog.agents, 1):
            self._entity(iris[agent.id], CS.Agent, agent, position)
            for place, tool in enumerate(agent.tools, 1):
                self._tool(iris[tool.id], tool, place)
        for position, skill in enumerate(catalog.skills, 1):
            self._entity(iris[skill.id], CS.Skill, skill, position)
            if len(skill.tools) > 1:
                self._say(iris[skill.id], CS.toolOrder, _json(skill.tools))

    def edge(self, source: URIRef, target: URIRef, kind: str) -> None:
        along, against = _EDGES[kind]
        for term in along:
            self._say(source, term, target)
        for term in against:
            self._say(target, term, source)

    def capability(self, node: URIRef, capability_id: str, known: Capability | None) -> None:
        self._say(node, RDF.type, CS.Capability)
        self._say(node, RDF.type, SKOS.Concept)
        self._say(node, SKOS.notation, _text(capability_id))
        if known is not None:
            self._say(node, SKOS.prefLabel, _text(known.name))
            self._say(node, SKOS.definition, _text(known.definition))
            for example in known.examples:
                self._say(node, SKOS.example, _text(example))

    def _tool(self, node: URIRef, tool: Tool, position: int) -> None:
        self._entity(node, CS.Tool, tool, position)
        self._say(node, CS.core, Literal(tool.core))
        for name, term in DOCUMENTS.items():
            value = getattr(tool, name)
            if value is not None and (value or name != "annotations"):
                self._say(node, term, _json(value))
        for hint, term in HINTS.items():
            if isinstance(claim := tool.annotations.get(hint), bool):
                self._say(node, term, Literal(claim))
        if len(tool.capabilities) > 1:
            self._say(node, CS.capabilityOrder, _json(tool.capabilities))

    def _entity(self, node: URIRef, kind: URIRef, item: Agent | Tool | Skill, position: int) -> None:
        """What agents, tools and skills have in common."""
        self._say(node, RDF.type, kind)
        self._say(node, DCTERMS.identifier, _text(item.id))
        self._say(node, RDFS.label, _text((item.title if isinstance(item, Tool) else "") or item.name or item.id))
        self._say(node, CS.position, Literal(position))
        self._texts(node, kind, item)

    def field(self, node: URIRef, field: Parameter, role: str) -> None:
        self._say(node, RDF.type, CS.Parameter if role == "parameter" else CS.OutputField)
        self._say(node, RDFS.label, _text(field.name))
        self._texts(node, CS.Field, field)
        for name in field.type.split("|"):
            self._say(node, CS.valueType, _text(name))
        for value in field.enum:
            self._say(node, CS.enumValue, _value(value))
        if field.default is not None:
            self._say(node, CS.defaultValue, _value(field.default))

    def dependency(self, source: URIRef, needed: URIRef, tool: Tool, edge: Dependency, position: int) -> None:
        node = self.iri(key("dependency", tool.agent, tool.name, str(position)))
        self._say(source, CS.hasDependency, node)
        self._say(node, RDF.type, CS.Dependency)
        self._say(node, CS.needs, needed)
        self._say(node, CS.position, Literal(position))
        # All digits without an exponent; as a double, rdflib's Turtle would round it.
        confidence = format(Decimal(repr(edge.confidence)), "f")
        self._say(node, CS.confidence, Literal(confidence, datatype=XSD.decimal))
        self._say(node, CS["count"], Literal(edge.count))
        self._texts(node, CS.Dependency, edge)
        for parameter in tool.parameters:
            if parameter.name == edge.parameter:
                self._say(node, CS.onParameter, self.iri(key(*field_node(tool.agent, parameter, "parameter"))))

    def iri(self, name: str) -> URIRef:
        return URIRef(self._base + name)

    def _texts(self, node: URIRef, kind: URIRef, item: object) -> None:
        """The texts of a record; an empty one says nothing, except as the name of a field."""
        for name, term in TEXTS[kind].items():
            value = getattr(item, name)
            if value or (value is not None and (kind, name) in _MAY_BE_EMPTY):
                self._say(node, term, _text(value))

    def _say(self, subject: URIRef, term: URIRef, value: URIRef | Literal) -> None:
        self.graph.add((subject, term, value))


def _text(text: str) -> Literal:
    return Literal(encodable(text))


def _json(value: Any) -> Literal:
    return Literal(encodable(json_text(value)), datatype=CS.json)


def _value(value: Any) -> Literal:
    return _text(value) if isinstance(value, str) else _json(value)
