"""Writes a catalog as an RDF graph."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from rdflib import DCTERMS, RDF, RDFS, SKOS, XSD, Graph, Literal, URIRef

from callsheet.graphs.capabilities.taxonomy import Capability
from callsheet.graphs.catalog.errors import SettingsError
from callsheet.graphs.catalog.model import Agent, Catalog, Dependency, Parameter, Skill, Tool
from callsheet.graphs.export.graph_formats import (
    FieldRole,
    agent_key,
    capabilities_of,
    capability_key,
    dependency_key,
    field_key,
    json_text,
    skill_key,
    tool_key,
)
from callsheet.graphs.rdf.vocabulary_terms import BASE, CS, EDGES, HINTS, prefixes
from callsheet.graphs.text.sanitizing import encodable


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
    writing.taxonomy(capabilities_of(catalog, taxonomy))
    writing.catalog(catalog)
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

    def catalog(self, catalog: Catalog) -> None:
        node = self._iri("catalog")
        self._say(node, RDF.type, CS.Catalog)
        for position, agent in enumerate(catalog.agents, 1):
            self._say(node, CS.lists, self._agent(agent, position))
        for position, skill in enumerate(catalog.skills, 1):
            self._say(node, CS.lists, self._skill(skill, position, catalog))
        for tool in catalog.tools.values():
            self._dependencies(tool, catalog)

    def taxonomy(self, taxonomy: Sequence[Capability]) -> None:
        for capability in taxonomy:
            node = self._capability(capability.id)
            self._say(node, SKOS.prefLabel, _text(capability.name))
            self._texts(node, {SKOS.definition: capability.definition})
            for example in capability.examples:
                self._say(node, SKOS.example, _text(example))
            if capability.broader:
                broader = self._capability(capability.broader)
                self._say(node, SKOS.broader, broader)
                self._say(broader, SKOS.narrower, node)

    def _agent(self, agent: Agent, position: int) -> URIRef:
        node = self._iri(agent_key(agent.id))
        self._say(node, RDF.type, CS.Agent)
        self._say(node, DCTERMS.identifier, _text(agent.id))
        self._say(node, RDFS.label, _text(agent.name or agent.id))
        self._say(node, CS.position, Literal(position))
        self._texts(
            node,
            {
                CS.name: agent.name,
                DCTERMS.description: agent.description,
                CS.instructions: agent.instructions,
                CS.category: agent.category,
                CS.system: agent.system,
            },
        )
        for place, tool in enumerate(agent.tools, 1):
            tool_node = self._tool(tool, place)
            self._say(tool_node, CS.hostedOn, node)
            self._say(node, CS.hosts, tool_node)
        return node

    def _skill(self, skill: Skill, position: int, catalog: Catalog) -> URIRef:
        node = self._iri(skill_key(skill.name))
        self._say(node, RDF.type, CS.Skill)
        self._say(node, DCTERMS.identifier, _text(skill.id))
        self._say(node, RDFS.label, _text(skill.name))
        self._say(node, CS.name, _text(skill.name))
        self._say(node, CS.position, Literal(position))
        self._texts(node, {DCTERMS.description: skill.description, CS.instructions: skill.text})
        for tool in skill.tools:
            self._say(node, CS.namesTool, self._node_of(catalog.tools[tool]))
        if len(skill.tools) > 1:
            self._say(node, CS.toolOrder, _json(skill.tools))
        return node

    def _tool(self, tool: Tool, position: int) -> URIRef:
        node = self._node_of(tool)
        self._say(node, RDF.type, CS.Tool)
        self._say(node, DCTERMS.identifier, _text(tool.id))
        self._say(node, RDFS.label, _text(tool.title or tool.name))
        self._say(node, CS.name, _text(tool.name))
        self._say(node, CS.position, Literal(position))
        self._say(node, CS.core, Literal(tool.core))
        self._texts(node, {DCTERMS.title: tool.title, DCTERMS.description: tool.description})
        self._schemas(node, tool)
        for parameter in tool.parameters:
            field = self._field(tool.agent, parameter, "parameter")
            self._say(node, CS.hasInput, field)
            self._say(node, CS.hasRequiredInput if parameter.required else CS.hasOptionalInput, field)
        for output in tool.outputs:
            self._say(node, CS.hasOutput, self._field(tool.agent, output, "output"))
        for capability in tool.capabilities:
            self._say(node, CS.hasCapability, self._capability(capability))
        if len(tool.capabilities) > 1:
            self._say(node, CS.capabilityOrder, _json(tool.capabilities))
        return node

    def _schemas(self, node: URIRef, tool: Tool) -> None:
        self._say(node, CS.inputSchema, _json(tool.input_schema))
        if tool.output_schema is not None:
            self._say(node, CS.outputSchema, _json(tool.output_schema))
        if tool.annotations:
            self._say(node, CS.annotations, _json(tool.annotations))
        for hint, term in HINTS.items():
            if isinstance(claim := tool.annotations.get(hint), bool):
                self._say(node, term, Literal(claim))

    def _field(self, agent_id: str, field: Parameter, role: FieldRole) -> URIRef:
        node = self._iri(field_key(agent_id, field, role))
        self._say(node, RDF.type, CS.Parameter if role == "parameter" else CS.OutputField)
        self._say(node, CS.name, _text(field.name))
        self._say(node, RDFS.label, _text(field.name))
        self._texts(node, {DCTERMS.description: field.description, CS.valueFormat: field.format})
        for name in field.type.split("|"):
            self._say(node, CS.valueType, _text(name))
        for value in field.enum:
            self._say(node, CS.enumValue, _value(value))
        if field.default is not None:
            self._say(node, CS.defaultValue, _value(field.default))
        return node

    def _capability(self, capability_id: str) -> URIRef:
        node = self._iri(capability_key(capability_id))
        self._say(node, RDF.type, CS.Capability)
        self._say(node, RDF.type, SKOS.Concept)
        self._say(node, SKOS.notation, _text(capability_id))
        return node

    def _dependencies(self, tool: Tool, catalog: Catalog) -> None:
        inputs = {parameter.name: parameter for parameter in tool.parameters}
        for position, edge in enumerate(tool.depends_on, 1):
            needed = self._node_of(catalog.tools[edge.tool])
            node = self._dependency(tool, edge, position)
            self._say(node, CS.needs, needed)
            self._say(self._node_of(tool), CS.dependsOn, needed)
            self._say(self._node_of(tool), EDGES[edge.kind], needed)
            if edge.parameter in inputs:
                field = field_key(tool.agent, inputs[edge.parameter], "parameter")
                self._say(node, CS.onParameter, self._iri(field))

    def _dependency(self, tool: Tool, edge: Dependency, position: int) -> URIRef:
        node = self._iri(dependency_key(tool.agent, tool.name, position))
        self._say(self._node_of(tool), CS.hasDependency, node)
        self._say(node, RDF.type, CS.Dependency)
        self._say(node, CS.position, Literal(position))
        self._say(node, CS.kind, _text(edge.kind.value))
        self._say(node, CS.provenance, _text(edge.provenance.value))
        self._say(node, CS.confidence, _decimal(edge.confidence))
        self._say(node, CS.count, Literal(edge.count))
        self._texts(node, {CS.reason: edge.reason})
        if edge.parameter is not None:
            self._say(node, CS.parameterName, _text(edge.parameter))
        return node

    def _node_of(self, tool: Tool) -> URIRef:
        return self._iri(tool_key(tool.agent, tool.name))

    def _iri(self, key: str) -> URIRef:
        return URIRef(self._base + key)

    def _texts(self, node: URIRef, texts: dict[URIRef, str]) -> None:
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
