"""Converts a catalog to an RDF graph and back; has the terms of the vocabulary and their fields in a catalog."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from importlib.resources import files
from typing import Any

from rdflib import DCTERMS, RDF, RDFS, SKOS, XSD, Graph, Literal, URIRef
from rdflib.namespace import ClosedNamespace
from rdflib.term import Node

from callsheet.graphs.capabilities.taxonomy import Capability
from callsheet.graphs.catalog.model import Agent, Catalog, Dependency, DependencyKind, Parameter, Skill, Tool
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.export import json_text, key, node_key
from callsheet.graphs.knowledge_graph import Relation, detailed_graph, field_node
from callsheet.graphs.text.messages import counted
from callsheet.graphs.text.unicode import clean, encodable

BASE = "https://w3id.org/callsheet/catalog/"
"""The prefix of the IRIs of all nodes of a catalog."""
NAMESPACE = "https://w3id.org/callsheet/ns#"


def vocabulary() -> str:
    """Returns the shipped vocabulary as Turtle."""
    return files("callsheet.graphs.rdf").joinpath("shapes", "vocabulary.ttl").read_text(encoding="utf-8")


TERMS: Mapping[str, str] = dict(re.findall(r"^cs:(\w+) a (\S+)", vocabulary(), re.MULTILINE))
"""Maps each term of the vocabulary to its class."""
CS = ClosedNamespace(NAMESPACE, list(TERMS))
"""The namespace of the vocabulary; ``vocabulary.ttl`` beside this file describes each term."""

TEXTS: Mapping[URIRef, Mapping[str, URIRef]] = {
    CS.Agent: {
        "name": CS.name,
        "description": DCTERMS.description,
        "instructions": CS.instructions,
        "category": CS.category,
        "system": CS.system,
    },
    CS.Tool: {"name": CS.name, "title": DCTERMS.title, "description": DCTERMS.description},
    CS.Skill: {"name": CS.name, "description": DCTERMS.description, "text": CS.instructions, "agent": CS.servedBy},
    CS.Field: {"name": CS.name, "description": DCTERMS.description, "format": CS.valueFormat},
    CS.Dependency: {
        "kind": CS.kind,
        "parameter": CS.parameterName,
        "reason": CS.reason,
        "provenance": CS.provenance,
    },
}
"""For each class, maps the text fields of a catalog to their properties."""
DOCUMENTS: Mapping[str, URIRef] = {
    "input_schema": CS.inputSchema,
    "output_schema": CS.outputSchema,
    "annotations": CS.annotations,
}
"""Maps the fields of a tool that hold JSON to their properties."""
EDGES: Mapping[DependencyKind, URIRef] = {
    DependencyKind.TOOL_DIRECTLY: CS.toolDirectlyDependsOn,
    DependencyKind.TOOL_INDIRECTLY: CS.toolIndirectlyDependsOn,
    DependencyKind.PARAMETER_DIRECTLY: CS.parameterDirectlyDependsOn,
    DependencyKind.PARAMETER_INDIRECTLY: CS.parameterIndirectlyDependsOn,
}
HINTS: Mapping[str, URIRef] = {
    "readOnlyHint": CS.readOnly,
    "destructiveHint": CS.destructive,
    "idempotentHint": CS.idempotent,
    "openWorldHint": CS.openWorld,
}
_DERIVED = {CS.hasOutput: CS.outputSchema, **dict.fromkeys(HINTS.values(), CS.annotations)}
"""What stands in the graph for queries, and the property that a reader takes it from."""
_KINDS = ("agent", "tool", "skill", "parameter", "output", "dependency", "capability")
PREFIXES: Mapping[str, str] = {
    "cs": NAMESPACE,
    "dcterms": str(DCTERMS),
    "rdfs": str(RDFS),
    "skos": str(SKOS),
    "xsd": str(XSD),
    **{kind: f"{BASE}{kind}/" for kind in _KINDS},
}
"""Maps prefixes to namespaces: of the vocabularies, and of the nodes of a catalog."""


_EDGES: Mapping[str, tuple[Sequence[URIRef], Sequence[URIRef]]] = {
    Relation.OWNED_BY: ([CS.hostedOn], [CS.hosts]),
    Relation.USES: ([CS.namesTool], []),
    Relation.HAS_REQUIRED_INPUT: ([CS.hasRequiredInput], []),
    Relation.HAS_OPTIONAL_INPUT: ([CS.hasInput], []),
    Relation.HAS_OUTPUT: ([CS.hasOutput], []),
    Relation.HAS_CAPABILITY: ([CS.hasCapability], []),
    Relation.PARENT: ([SKOS.broader], [SKOS.narrower]),
    **{kind: ([CS.dependsOn, term], []) for kind, term in EDGES.items()},
}
"""The properties of each kind of edge, along it and against it."""


def to_graph(catalog: Catalog, taxonomy: Sequence[Capability] | None = None) -> Graph:
    """Returns the catalog as RDF in Callsheet's vocabulary; ``docs/reference/ontology.md`` shows the form.

    Source: Representing Agentic Tools in Knowledge Graphs, the ontology of servers, tools, capabilities and
    parameters; outputs, annotations, dependencies and the hierarchy are ours.

    Args:
        catalog: The catalog. Lone surrogates become question marks.
        taxonomy: The taxonomy of the capabilities; None: the shipped ones. The graph includes the capabilities of
            the tools and all broader ones.
    """
    writing = _Writing()
    graph = detailed_graph(catalog, taxonomy)
    iris = {node: URIRef(BASE + node_key(graph, node)) for node in graph}
    writing.catalog(catalog, iris)
    for node, data in graph.nodes(data=True):
        match data["kind"]:
            case "capability":
                writing.capability(iris[node], node[1], data["record"])
            case "parameter" | "output" as role:
                writing.field(iris[node], data["record"], role)
    for source, target, place, data in graph.edges(keys=True, data=True):
        writing.edge(iris[source], iris[target], data["kind"])
        dependency = data.get("dependency")
        if dependency is not None:
            writing.dependency(iris[source], iris[target], catalog.tools[source], dependency, place)
    return writing.graph


_MAY_BE_EMPTY = {(CS.Field, "name"), (CS.Dependency, "parameter")}


class _Writing:
    """Writes the parts of a catalog into a graph."""

    def __init__(self) -> None:
        self.graph = Graph(bind_namespaces="none")
        for prefix, namespace in PREFIXES.items():
            self.graph.bind(prefix, namespace)

    def catalog(self, catalog: Catalog, iris: Mapping[Any, URIRef]) -> None:
        root = URIRef(f"{BASE}catalog")
        self._add(root, (RDF.type, CS.Catalog))
        for node in (*catalog.by_id, *catalog.skills_by_id):
            self._add(root, (CS.lists, iris[node]))
        for position, agent in enumerate(catalog.agents, 1):
            self._entity(iris[agent.id], CS.Agent, agent, position)
            for place, tool in enumerate(agent.tools, 1):
                self._tool(iris[tool.id], tool, place)
        for position, skill in enumerate(catalog.skills, 1):
            self._entity(iris[skill.id], CS.Skill, skill, position)
            if len(skill.tools) > 1:
                self._add(iris[skill.id], (CS.toolOrder, _json(skill.tools)))

    def edge(self, source: URIRef, target: URIRef, kind: str) -> None:
        along, against = _EDGES[kind]
        for term in along:
            self._add(source, (term, target))
        for term in against:
            self._add(target, (term, source))

    def capability(self, node: URIRef, capability_id: str, known: Capability | None) -> None:
        self._add(node, (RDF.type, CS.Capability), (RDF.type, SKOS.Concept), (SKOS.notation, _text(capability_id)))
        if known is not None:
            self._add(node, (SKOS.prefLabel, _text(known.name)), (SKOS.definition, _text(known.definition)))
            for example in known.examples:
                self._add(node, (SKOS.example, _text(example)))

    def _tool(self, node: URIRef, tool: Tool, position: int) -> None:
        self._entity(node, CS.Tool, tool, position)
        self._add(node, (CS.core, Literal(tool.core)))
        if tool.always:
            self._add(node, (CS.always, Literal(tool.always)))
        for name, term in DOCUMENTS.items():
            value = getattr(tool, name)
            if value is not None and (value or name != "annotations"):
                self._add(node, (term, _json(value)))
        for hint, term in HINTS.items():
            claim = tool.annotations.get(hint)
            if isinstance(claim, bool):
                self._add(node, (term, Literal(claim)))
        if len(tool.capabilities) > 1:
            self._add(node, (CS.capabilityOrder, _json(tool.capabilities)))

    def _entity(self, node: URIRef, kind: URIRef, item: Agent | Tool | Skill, position: int) -> None:
        """Writes what agents, tools and skills have in common."""
        title = item.title if isinstance(item, Tool) else ""
        label = title or item.name or item.id
        self._add(node, (RDF.type, kind), (DCTERMS.identifier, _text(item.id)), (RDFS.label, _text(label)))
        self._add(node, (CS.position, Literal(position)))
        self._texts(node, kind, item)

    def field(self, node: URIRef, field: Parameter, role: str) -> None:
        kind = CS.Parameter if role == "parameter" else CS.OutputField
        self._add(node, (RDF.type, kind), (RDFS.label, _text(field.name)))
        self._texts(node, CS.Field, field)
        for name in field.type.split("|"):
            self._add(node, (CS.valueType, _text(name)))
        for value in field.enum:
            self._add(node, (CS.enumValue, _value(value)))
        if field.default is not None:
            self._add(node, (CS.defaultValue, _value(field.default)))

    def dependency(self, source: URIRef, needed: URIRef, tool: Tool, edge: Dependency, position: int) -> None:
        node = URIRef(BASE + key("dependency", tool.agent, tool.name, str(position)))
        self._add(source, (CS.hasDependency, node))
        # All digits without an exponent; as a double, rdflib's Turtle would round it.
        confidence = Literal(format(Decimal(repr(edge.confidence)), "f"), datatype=XSD.decimal)
        self._add(node, (RDF.type, CS.Dependency), (CS.needs, needed), (CS.position, Literal(position)))
        self._add(node, (CS.confidence, confidence), (CS["count"], Literal(edge.count)))
        self._texts(node, CS.Dependency, edge)
        for parameter in tool.parameters:
            if parameter.name == edge.parameter:
                iri = URIRef(BASE + key(*field_node(tool.agent, parameter, "parameter")))
                self._add(node, (CS.onParameter, iri))

    def _texts(self, node: URIRef, kind: URIRef, item: object) -> None:
        """Writes the texts of a record; an empty one says nothing, except as the name of a field."""
        for name, term in TEXTS[kind].items():
            value = getattr(item, name)
            if value or (value is not None and (kind, name) in _MAY_BE_EMPTY):
                self._add(node, (term, _text(value)))

    def _add(self, subject: URIRef, *statements: tuple[URIRef, URIRef | Literal]) -> None:
        """Adds statements on a subject, each a property with its value."""
        for term, value in statements:
            self.graph.add((subject, term, value))


def _text(text: str) -> Literal:
    return Literal(encodable(text))


def _json(value: Any) -> Literal:
    return Literal(encodable(json_text(value)), datatype=CS.json)


def _value(value: Any) -> Literal:
    return _text(value) if isinstance(value, str) else _json(value)


_LARGEST = 1e300
"""Numbers beyond it may be infinite as a float."""


def from_graph(graph: Graph) -> Catalog:
    """Returns the catalog in an RDF graph in Callsheet's vocabulary: the inverse of ``to_graph``.

    Nodes without ``cs:position`` are ordered by IRI; an edge such as ``cs:toolDirectlyDependsOn`` is sufficient without
    a ``cs:Dependency``.

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
    """Reads the parts of a catalog from a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.agents = {node: self._needed(node, DCTERMS.identifier) for node in self._all(CS.Agent)}
        self._tools = {node: self._identity(node) for node in self._all(CS.Tool)}

    def document(self) -> dict[str, Any]:
        """Returns the catalog as plain values."""
        tools: dict[str, list[dict[str, Any]]] = {agent_id: [] for agent_id in self.agents.values()}
        for node in self._ordered(self._tools):
            agent_id, _ = self._tools[node]
            tools[agent_id].append(self._tool(node))
        agents = []
        for node in self._ordered(self.agents):
            agent_id = self.agents[node]
            agents.append({"id": agent_id, "tools": tools[agent_id], **self._texts(node, CS.Agent)})
        skills = [self._skill(node) for node in self._ordered(self._all(CS.Skill))]
        return {"agents": agents, "skills": skills}

    def _skill(self, node: Node) -> dict[str, Any]:
        ids = {self._tool_id(tool) for tool in self._graph.objects(node, CS.namesTool)}
        self._needed(node, CS.name)
        return {"tools": self._in_order(node, CS.toolOrder, ids), **self._texts(node, CS.Skill)}

    def _identity(self, node: Node) -> tuple[str, str]:
        """Returns owner and name of a tool."""
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
                "core": self._value(node, CS.core, bool) or False,
                "always": self._value(node, CS.always, bool) or False,
                "depends_on": self._dependencies(node),
                "capabilities": self._in_order(node, CS.capabilityOrder, ids),
                **self._documents(node),
                **self._texts(node, CS.Tool),
            }
        except CatalogError as error:
            raise CatalogError(f"tool '{agent}/{name}': {error}") from error

    def _documents(self, node: Node) -> dict[str, Any]:
        self._needed(node, CS.inputSchema)
        for derived, source in _DERIVED.items():
            if (node, derived, None) in self._graph:
                self._needed(node, source)
        documents = {}
        for name, term in DOCUMENTS.items():
            value = self._one(node, term)
            if value is not None:
                documents[name] = _parsed(value)
        for name, document in documents.items():
            if not isinstance(document, dict):
                raise CatalogError(f"{_shown(DOCUMENTS[name])} is not an object")
        return documents

    def _dependencies(self, node: Node) -> list[dict[str, Any]]:
        """Returns the dependencies of a tool: those that are described, then edges without a description."""
        edges = [self._dependency(item) for item in self._ordered(self._graph.objects(node, CS.hasDependency))]
        described = {(edge["kind"], edge["tool"]) for edge in edges}
        bare = set[tuple[str, str]]()
        for kind, term in EDGES.items():
            for target in self._graph.objects(node, term):
                bare.add((kind.value, self._tool_id(target)))
        return edges + [{"kind": kind, "tool": tool} for kind, tool in sorted(bare - described)]

    def _dependency(self, node: Node) -> dict[str, Any]:
        target = self._one(node, CS.needs)
        if target is None:
            raise CatalogError(f"the dependency {_shown(node)} has no cs:needs: say which tool is needed")
        self._needed(node, CS.kind)
        numbers = {name: self._value(node, CS[name], int, float, Decimal) for name in ("confidence", "count")}
        known = {name: number for name, number in numbers.items() if number is not None}
        return {"tool": self._tool_id(target), **known, **self._texts(node, CS.Dependency)}

    def _tool_id(self, node: Node) -> str:
        if node not in self._tools:
            raise CatalogError(
                f"depends on {_shown(node)}, which is not a cs:Tool here: describe it or remove the edge"
            )
        return "/".join(self._tools[node])

    def _texts(self, node: Node, kind: URIRef) -> dict[str, str]:
        """Returns the texts of a node by the field of the catalog."""
        texts = {}
        for name, term in TEXTS[kind].items():
            value = self._one(node, term)
            if value is not None:
                texts[name] = str(value)
        return texts

    def _all(self, kind: URIRef) -> list[Node]:
        return sorted(set(self._graph.subjects(RDF.type, kind)), key=str)

    def _ordered(self, nodes: Iterable[Node]) -> list[Node]:
        """Returns the nodes by position; nodes without one come last, by IRI."""

        def place(node: Node) -> tuple[float, str]:
            position = self._value(node, CS.position, int)
            return math.inf if position is None else position, str(node)

        return sorted(set(nodes), key=place)

    def _in_order(self, node: Node, term: URIRef, ids: set[str]) -> list[str]:
        """Returns the ids in the order that the JSON list of this term gives; the others after them."""
        order = self._one(node, term)
        preferred = [] if order is None else _parsed(order)
        first = list[str]()
        if isinstance(preferred, list):
            first = [item for item in preferred if item in ids]
        return [*first, *sorted(ids.difference(first))]

    def _one(self, node: Node, term: URIRef) -> Node | None:
        """Returns the value of a property; None if there is none; ``CatalogError``: there are several."""
        values = set(self._graph.objects(node, term))
        if len(values) > 1:
            raise CatalogError(f"{_shown(node)} has {len(values)} values of {_shown(term)}: keep one")
        return values.pop() if values else None

    def _needed(self, node: Node, term: URIRef) -> str:
        """Returns the value of a property as a text; ``CatalogError``: there is none, or there are several."""
        value = self._one(node, term)
        if value is None:
            raise CatalogError(f"{_shown(node)} has no {_shown(term)}: give it one")
        return str(value)

    def _value(self, node: Node, term: URIRef, *kinds: type) -> Any:
        """Returns the number or boolean; None if there is none."""
        literal = self._one(node, term)
        if literal is None:
            return None
        value: Any = literal.value if isinstance(literal, Literal) and not literal.ill_typed else None
        if type(value) not in kinds or not -_LARGEST < value < _LARGEST:
            what = "a boolean: write true or false, without quotes" if kinds == (bool,) else "a number"
            raise CatalogError(f"{_shown(node)}: {_shown(term)} is {str(literal)[:40]!r}, which is not {what}")
        return float(value) if isinstance(value, Decimal) else value


def _parsed(value: Node) -> Any:
    try:
        return clean(json.loads(str(value)))
    except json.JSONDecodeError as error:
        raise CatalogError(f"{str(value)[:40]!r} is not valid JSON: {error.msg}, column {error.colno}") from error
    except RecursionError as error:
        raise CatalogError("a JSON literal is nested too deeply") from error


def _shown(node: Node) -> str:
    """Returns the node as a prefixed name, or as an IRI of at most 120 characters in angle brackets."""
    text = str(node)
    for prefix in ("cs", "dcterms", "skos"):
        if text.startswith(PREFIXES[prefix]):
            return f"{prefix}:{text.removeprefix(PREFIXES[prefix])}"
    return f"<{text[:120]}>"
