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
from callsheet.graphs.rdf.vocabulary_terms import BASE, CS, DOCUMENTS, EDGES, HINTS, TEXTS, prefixes
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
    scheme, bad = base.partition("/")[0], any(c in ' <>"{}|^`\\' or c < " " for c in base)
    if ":" not in scheme or base[-1] not in "/#" or bad:
        raise SettingsError(f"the base {base!r} is not an absolute IRI that ends in / or #")
    writing = _Writing(base)
    writing.taxonomy(capabilities_of(catalog, taxonomy))
    writing.catalog(catalog)
    return writing.graph


_MAY_BE_EMPTY = {(CS.Field, "name"), (CS.Dependency, "parameter")}


class _Writing:
    def __init__(self, base: str) -> None:
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
            for position, edge in enumerate(tool.depends_on, 1):
                self._dependency(tool, edge, position, catalog)

    def taxonomy(self, taxonomy: Sequence[Capability]) -> None:
        for capability in taxonomy:
            node = self._capability(capability.id)
            self._say(node, SKOS.prefLabel, _text(capability.name))
            self._say(node, SKOS.definition, _text(capability.definition))
            for example in capability.examples:
                self._say(node, SKOS.example, _text(example))
            if capability.broader:
                broader = self._capability(capability.broader)
                self._say(node, SKOS.broader, broader)
                self._say(broader, SKOS.narrower, node)

    def _agent(self, agent: Agent, position: int) -> URIRef:
        node = self._entity(agent_key(agent.id), CS.Agent, agent, position)
        for place, tool in enumerate(agent.tools, 1):
            tool_node = self._tool(tool, place)
            self._say(tool_node, CS.hostedOn, node)
            self._say(node, CS.hosts, tool_node)
        return node

    def _skill(self, skill: Skill, position: int, catalog: Catalog) -> URIRef:
        node = self._entity(skill_key(skill.name), CS.Skill, skill, position)
        for tool in skill.tools:
            self._say(node, CS.namesTool, self._node_of(catalog.tools[tool]))
        if len(skill.tools) > 1:
            self._say(node, CS.toolOrder, _json(skill.tools))
        return node

    def _tool(self, tool: Tool, position: int) -> URIRef:
        node = self._entity(tool_key(tool.agent, tool.name), CS.Tool, tool, position)
        self._say(node, CS.core, Literal(tool.core))
        for name, term in DOCUMENTS.items():
            value = getattr(tool, name)
            if value is not None and (value or name != "annotations"):
                self._say(node, term, _json(value))
        for hint, term in HINTS.items():
            if isinstance(claim := tool.annotations.get(hint), bool):
                self._say(node, term, Literal(claim))
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

    def _entity(self, key: str, kind: URIRef, item: Agent | Tool | Skill, position: int) -> URIRef:
        """What agents, tools and skills have in common."""
        node = self._iri(key)
        self._say(node, RDF.type, kind)
        self._say(node, DCTERMS.identifier, _text(item.id))
        self._say(node, RDFS.label, _text((item.title if isinstance(item, Tool) else "") or item.name or item.id))
        self._say(node, CS.position, Literal(position))
        self._texts(node, kind, item)
        return node

    def _field(self, agent_id: str, field: Parameter, role: FieldRole) -> URIRef:
        node = self._iri(field_key(agent_id, field, role))
        self._say(node, RDF.type, CS.Parameter if role == "parameter" else CS.OutputField)
        self._say(node, RDFS.label, _text(field.name))
        self._texts(node, CS.Field, field)
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

    def _dependency(self, tool: Tool, edge: Dependency, position: int, catalog: Catalog) -> None:
        node = self._iri(dependency_key(tool.agent, tool.name, position))
        source, needed = self._node_of(tool), self._node_of(catalog.tools[edge.tool])
        self._say(source, CS.hasDependency, node)
        self._say(source, CS.dependsOn, needed)
        self._say(source, EDGES[edge.kind], needed)
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
                self._say(node, CS.onParameter, self._iri(field_key(tool.agent, parameter, "parameter")))

    def _node_of(self, tool: Tool) -> URIRef:
        return self._iri(tool_key(tool.agent, tool.name))

    def _iri(self, key: str) -> URIRef:
        return URIRef(self._base + key)

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
