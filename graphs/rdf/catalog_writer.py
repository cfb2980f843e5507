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
from callsheet.graphs.rdf.vocabulary_terms import BASE, CS, EDGES, HINTS, prefixes
from callsheet.graphs.text.sanitizing import encodable

_TERMS: Mapping[str, tuple[Sequence[URIRef], Sequence[URIRef]]] = {
    Relation.OWNED_BY: ([CS.hostedOn], [CS.hosts]),
    Relation.USES: ([CS.namesTool], []),
    Relation.HAS_REQUIRED_INPUT: ([CS.hasInput, CS.hasRequiredInput], []),
    Relation.HAS_OPTIONAL_INPUT: ([CS.hasInput, CS.hasOptionalInput], []),
    Relation.HAS_OUTPUT: ([CS.hasOutput], []),
    Relation.HAS_CAPABILITY: ([CS.hasCapability], []),
    Relation.PARENT: ([SKOS.broader], [SKOS.narrower]),
    **{kind: ([CS.dependsOn, term], []) for kind, term in EDGES.items()},
}
"""The properties for each kind of edge, along it and against it."""


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
    writing = _Writing(base)
    graph = detailed_graph(catalog, taxonomy)
    iris = {node: writing.iri(key_of(graph, node)) for node in graph}
    writing.catalog([iris[node] for node in (*catalog.by_id, *catalog.skills_by_id)])
    for position, agent in enumerate(catalog.agents, 1):
        writing.agent(iris[agent.id], agent, position)
        for place, tool in enumerate(agent.tools, 1):
            writing.tool(iris[tool.id], tool, place)
    for position, skill in enumerate(catalog.skills, 1):
        writing.skill(iris[skill.id], skill, position)
    for node, data in graph.nodes(data=True):
        match data["kind"]:
            case "capability":
                writing.capability(iris[node], node[1], data["record"])
            case "parameter" | "output":
                writing.field(iris[node], data["record"], data["kind"])
    for source, target, place, data in graph.edges(keys=True, data=True):
        writing.edge(iris[source], iris[target], data["kind"])
        if edge := data.get("dependency"):
            writing.dependency(iris[source], iris[target], catalog.tools[source], edge, place)
    return writing.graph


class _Writing:
    def __init__(self, base: str) -> None:
        if (
            ":" not in base.partition("/")[0]
            or base[-1] not in "/#"
            or any(c in ' <>"{}|^`\\' or c < " " for c in base)
        ):
            raise SettingsError(f"the base {base!r} is not an absolute IRI that ends in / or #")
        self.graph = Graph(bind_namespaces="none")
        for prefix, namespace in prefixes(base).items():
            self.graph.bind(prefix, namespace)
        self._base = base

    def catalog(self, nodes: Sequence[URIRef]) -> None:
        catalog = self.iri("catalog")
        self._say(catalog, RDF.type, CS.Catalog)
        for node in nodes:
            self._say(catalog, CS.lists, node)

    def edge(self, source: URIRef, target: URIRef, kind: str) -> None:
        along, against = _TERMS[kind]
        for term in along:
            self._say(source, term, target)
        for term in against:
            self._say(target, term, source)

    def capability(self, node: URIRef, capability_id: str, known: Capability | None) -> None:
        self._say(node, RDF.type, CS.Capability)
        self._say(node, RDF.type, SKOS.Concept)
        self._say(node, SKOS.notation, _text(capability_id))
        if known is not None:
            self._texts(node, {SKOS.prefLabel: known.name, SKOS.definition: known.definition})
            for example in known.examples:
                self._say(node, SKOS.example, _text(example))

    def agent(self, node: URIRef, agent: Agent, position: int) -> None:
        self._node(node, CS.Agent, agent.id, agent.name or agent.id, position)
        texts = {CS.name: agent.name, DCTERMS.description: agent.description, CS.instructions: agent.instructions}
        self._texts(node, {**texts, CS.category: agent.category, CS.system: agent.system})

    def skill(self, node: URIRef, skill: Skill, position: int) -> None:
        self._node(node, CS.Skill, skill.id, skill.name, position)
        texts = {CS.name: skill.name, DCTERMS.description: skill.description, CS.instructions: skill.text}
        self._texts(node, texts)
        if len(skill.tools) > 1:
            self._say(node, CS.toolOrder, _json(skill.tools))

    def tool(self, node: URIRef, tool: Tool, position: int) -> None:
        self._node(node, CS.Tool, tool.id, tool.title or tool.name, position)
        self._say(node, CS.core, Literal(tool.core))
        self._texts(node, {CS.name: tool.name, DCTERMS.title: tool.title, DCTERMS.description: tool.description})
        self._say(node, CS.inputSchema, _json(tool.input_schema))
        if tool.output_schema is not None:
            self._say(node, CS.outputSchema, _json(tool.output_schema))
        if tool.annotations:
            self._say(node, CS.annotations, _json(tool.annotations))
        for hint, term in HINTS.items():
            if isinstance(claim := tool.annotations.get(hint), bool):
                self._say(node, term, Literal(claim))
        if len(tool.capabilities) > 1:
            self._say(node, CS.capabilityOrder, _json(tool.capabilities))

    def field(self, node: URIRef, field: Parameter, kind: str) -> None:
        self._say(node, RDF.type, CS.Parameter if kind == "parameter" else CS.OutputField)
        self._say(node, CS.name, _text(field.name))
        self._say(node, RDFS.label, _text(field.name))
        self._texts(node, {DCTERMS.description: field.description, CS.valueFormat: field.format})
        for name in field.type.split("|"):
            self._say(node, CS.valueType, _text(name))
        for value in field.enum:
            self._say(node, CS.enumValue, _value(value))
        if field.default is not None:
            self._say(node, CS.defaultValue, _value(field.default))

    def dependency(self, source: URIRef, target: URIRef, tool: Tool, edge: Dependency, position: int) -> None:
        node = self.iri(key("dependency", tool.agent, tool.name, str(position)))
        self._say(source, CS.hasDependency, node)
        self._say(node, CS.needs, target)
        self._say(node, RDF.type, CS.Dependency)
        self._say(node, CS.position, Literal(position))
        self._say(node, CS.kind, _text(edge.kind.value))
        self._say(node, CS.provenance, _text(edge.provenance.value))
        self._say(node, CS.confidence, _decimal(edge.confidence))
        self._say(node, CS.count, Literal(edge.count))
        self._texts(node, {CS.reason: edge.reason})
        if edge.parameter is not None:
            self._say(node, CS.parameterName, _text(edge.parameter))
        if field := next((one for one in tool.parameters if one.name == edge.parameter), None):
            self._say(node, CS.onParameter, self.iri(key(*field_node(tool.agent, field, "parameter"))))

    def _node(self, node: URIRef, kind: URIRef, node_id: str, label: str, position: int) -> None:
        self._say(node, RDF.type, kind)
        self._say(node, DCTERMS.identifier, _text(node_id))
        self._say(node, RDFS.label, _text(label))
        self._say(node, CS.position, Literal(position))

    def iri(self, name: str) -> URIRef:
        return URIRef(self._base + name)

    def _texts(self, node: URIRef, texts: Mapping[URIRef, str]) -> None:
        for term, text in texts.items():
            if text:
                self._say(node, term, _text(text))

    def _say(self, subject: URIRef, term: URIRef, value: URIRef | Literal) -> None:
        self.graph.add((subject, term, value))


def _text(text: str) -> Literal:
    return Literal(encodable(text))


def _json(value: Any) -> Literal:
    return Literal(encodable(json_text(value)), datatype=CS.json)


def _value(value: Any) -> Literal:
    return _text(value) if isinstance(value, str) else _json(value)


def _decimal(number: float) -> Literal:
    """All digits without an exponent; as a double, rdflib's Turtle would round it."""
    return Literal(format(Decimal(repr(number)), "f"), datatype=XSD.decimal)
