"""Exports the knowledge graph as GraphML, Cypher and Mermaid; ``graphs.rdf`` exports RDF."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any
from urllib.parse import quote

import networkx as nx
from pydantic import TypeAdapter

from callsheet.graphs.capabilities.taxonomy import Capability
from callsheet.graphs.catalog.model import SKILLS, Catalog, DependencyKind
from callsheet.graphs.errors import SettingsError
from callsheet.graphs.knowledge_graph import (
    Edge,
    KnowledgeGraph,
    detailed_graph,
    knowledge_graph,
    node_name,
    owner,
)
from callsheet.graphs.text.hidden import escaped, written_out
from callsheet.graphs.text.unicode import encodable

__all__ = ["edges_to_mermaid", "to_cypher", "to_graphml", "to_mermaid"]

Property = str | int | float | bool
_FIELD = ("name", "type", "description", "format", "enum", "default")
_PROPERTIES: Mapping[str, Sequence[str]] = {
    "agent": ("id", "name", "description", "instructions", "category", "system"),
    "tool": ("id", "name", "title", "description", "core", "always", "input_schema", "output_schema", "annotations"),
    "skill": ("id", "name", "description", "text", "agent"),
    "parameter": _FIELD,
    "output": _FIELD,
    "capability": ("id", "name", "definition"),
}
"""The properties of the nodes of each kind."""


def key(kind: str, *parts: str) -> str:
    """Returns a key such as ``tool/weather.forecast``, which is unique for each kind and parts."""
    quoted = [quote(part, safe="", errors="replace").replace(".", "%2E") for part in parts]
    return f"{kind}/{'.'.join(quoted)}"


def node_key(graph: KnowledgeGraph, node: Any) -> str:
    """Returns the key of a node of the knowledge graph."""
    if isinstance(node, tuple):
        return key(*node)
    match graph.nodes[node]["kind"]:
        case "tool":
            agent = owner(graph, node)
            return key("tool", agent, node.removeprefix(f"{agent}/"))
        case "skill":
            return key("skill", node.removeprefix(f"{SKILLS}/"))
        case kind:
            return key(kind, node)


def _exported(catalog: Catalog, taxonomy: Sequence[Capability] | None) -> nx.MultiDiGraph[str]:
    """Returns the knowledge graph with keys as nodes, and texts, numbers and booleans as attributes."""
    graph = detailed_graph(catalog, taxonomy)
    keys = {node: node_key(graph, node) for node in graph}
    records: Mapping[str, Any] = {**catalog.by_id, **catalog.tools, **catalog.skills_by_id}
    exported: nx.MultiDiGraph[str] = nx.MultiDiGraph()
    for node, data in graph.nodes(data=True):
        record = data["record"] if isinstance(node, tuple) else records[node]
        values = {name: _property(name, getattr(record, name, "")) for name in _PROPERTIES[data["kind"]]}
        if "id" in values and record is None:  # a capability that the taxonomy does not have
            values["id"] = encodable(node[1])
        exported.add_node(keys[node], kind=data["kind"], **values)
    for source, target, place, data in graph.edges(keys=True, data=True):
        details: dict[str, Property] = {}
        dependency = data.get("dependency")
        if dependency is not None:
            details["position"] = place
            for name, value in dependency.model_dump(mode="json", exclude={"tool", "kind"}).items():
                details[name] = _property(name, value)
        exported.add_edge(keys[source], keys[target], kind=data["kind"].value, **details)
    return exported


def _property(name: str, value: Any) -> Property:
    """Returns a value as the formats can hold it; others as JSON, and so is a ``default``, which may be of any type."""
    if value is None or value == ():
        return ""
    if name != "default":
        if isinstance(value, str):
            return encodable(value)
        if isinstance(value, bool | int | float):
            return value
    return encodable(json_text(value))


def json_text(value: Any) -> str:
    """Serialises a value as JSON, with keys in their original order and without ASCII escapes."""
    return json.dumps(value, ensure_ascii=False, default=partial(TypeAdapter(Any).dump_python, mode="json"))


_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_graphml(catalog: Catalog, taxonomy: Sequence[Capability] | None = None) -> str:
    """Returns the knowledge graph as GraphML.

    Characters that XML does not allow, such as NUL, become U+FFFD in texts; keys of nodes are percent-encoded and stay
    unique.
    """
    graph = _exported(catalog, taxonomy)
    of_nodes = (data for _, data in graph.nodes(data=True))
    of_edges = (data for *_, data in graph.edges(data=True))
    for properties in chain(of_nodes, of_edges):
        for name, value in properties.items():
            if isinstance(value, str):
                properties[name] = _NOT_XML.sub("\ufffd", value)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + "\n".join(nx.generate_graphml(graph)) + "\n"


_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r"})
_LARGEST = 2**63 - 1  # of Cypher's integers


def to_cypher(catalog: Catalog, taxonomy: Sequence[Capability] | None = None) -> str:
    """Returns the knowledge graph as a Cypher script with one statement per line; a second run changes nothing.

    Nodes are labelled ``Agent``, ``Tool``, ``Skill``, ``Parameter``, ``Output`` and ``Capability`` and have a unique
    ``key``; relationships are ``OWNED_BY``, ``HAS_REQUIRED_INPUT``, ``TOOL_DIRECTLY_DEPENDS_ON`` and so on.
    """
    return written_out("".join(f"{statement};\n" for statement in _statements(catalog, taxonomy)), longest=8)


def _statements(catalog: Catalog, taxonomy: Sequence[Capability] | None) -> Iterator[str]:
    """Yields a statement for each node, then one for each edge."""
    graph = _exported(catalog, taxonomy)
    match_of = dict[str, str]()
    for node, properties in graph.nodes(data=True):
        match_of[node] = f":{properties['kind'].capitalize()} {{key: {_literal(node)}}}"
        yield f"MERGE (n{match_of[node]}){_set('n', properties)}"
    for source, target, properties in graph.edges(data=True):
        relationship = properties["kind"].upper()
        if "position" in properties:  # of a dependency; two of one kind differ by it
            relationship += f"_DEPENDS_ON {{position: {properties['position']}}}"
        ends = f"(a{match_of[source]}), (b{match_of[target]})"
        yield f"MATCH {ends} MERGE (a)-[r:{relationship}]->(b){_set('r', properties)}"


def _set(variable: str, properties: Mapping[str, Property]) -> str:
    """Returns a clause that sets the properties of a node or a relationship; empty if there are none."""
    own = [name for name in properties if name not in ("kind", "position")]
    parts = [f"{variable}.`{name}` = {_literal(properties[name])}" for name in own]
    return f" SET {', '.join(parts)}" if parts else ""


def _literal(value: Property) -> str:
    """Returns a value as a literal of Cypher."""
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f"'{value.translate(_ESCAPES)}'"
        case int():
            return str(min(value, _LARGEST))
        case _:
            return repr(value)


MOST_TOOLS = 60
_LONGEST_LABEL = 60
_MARKUP = re.compile(r"[!-+.;-@\[-^`{-~]|^-")
_ARROWS: Mapping[str, str] = {
    DependencyKind.TOOL_INDIRECTLY: "-.->",
    DependencyKind.PARAMETER_DIRECTLY: "==>",
    DependencyKind.PARAMETER_INDIRECTLY: "--o",
}
_SHAPES = {"agent": "[[{}]]", "skill": "[({})]", "capability": "([{}])", "parameter": "[/{}/]", "output": "[/{}/]"}
_STYLES = (
    "classDef core fill:#fdf1d0,stroke:#b8860b,color:#1b2a41",
    "classDef start fill:#d5e8d4,stroke:#2d7d46,stroke-width:3px,color:#1b2a41",
    "classDef agent fill:#f3f6fa,stroke:#9db2cf,color:#1b2a41",
    "classDef tool fill:#dbe7f6,stroke:#3a6ea5,color:#1b2a41",
    "classDef skill fill:#f6e3ef,stroke:#a5467c,color:#1b2a41",
    "classDef capability fill:#e8e1f5,stroke:#6b4fa0,color:#1b2a41",
    "classDef parameter fill:#ffffff,stroke:#7a8699,color:#1b2a41",
    "classDef output fill:#eef1f4,stroke:#7a8699,color:#1b2a41",
)


def to_mermaid(catalog: Catalog) -> str:
    """Returns tools with their agents and dependencies as a Mermaid flowchart, as ``edges_to_mermaid``.

    Raises:
        SettingsError: The catalog is too large for a chart.
    """
    if len(catalog.tools) > MOST_TOOLS:
        raise SettingsError(
            f"{len(catalog.tools)} tools are more than a Mermaid chart can show: "
            "`callsheet graph ID --mermaid` draws one tool or agent"
        )
    graph = knowledge_graph(catalog)
    edges = list[Edge]()
    for tool in catalog.tools:
        for edge in graph.out_edges(tool, data=True):
            if edge[1] in catalog.tools or edge[1] in catalog.by_id:
                edges.append(edge)
    return edges_to_mermaid(graph, edges)


def edges_to_mermaid(graph: KnowledgeGraph, edges: Sequence[Edge], *, start: Any = None) -> str:
    """Returns edges of the knowledge graph as a Mermaid flowchart.

    Shapes show the kinds of nodes, lines show the kinds of dependencies. The node ``start`` is highlighted.

    Source: Representing Agentic Tools in Knowledge Graphs, figure 3: server, tool, capability, parameter.
    """
    nodes: dict[Any, None] = {start: None} if start else {}  # in order, without duplicates
    for source, target, _ in edges:
        nodes[source] = None
        nodes[target] = None
    names = {node: f"n{number}" for number, node in enumerate(nodes)}
    lines = []
    for node, name in names.items():
        attributes = graph.nodes[node]
        kind = attributes["kind"]
        style = kind
        if node == start:
            style = "start"
        elif attributes.get("core"):
            style = "core"
        shape = _SHAPES.get(kind, "[{}]")
        lines.append(f"{name}{shape.format(_label(node_name(node)))}:::{style}")
    for source, target, data in edges:
        words = data["kind"].replace("_", " ")
        dependency = data.get("dependency")
        if dependency and dependency.parameter:
            words += f", {dependency.parameter}"
        arrow = _ARROWS.get(data["kind"], "-->")
        lines.append(f"{names[source]} {arrow}|{_label(words)}| {names[target]}")
    return "\n  ".join(["flowchart LR", *lines, *_STYLES]) + "\n"


def _label(text: str) -> str:
    """Returns a quoted label on one line, with Mermaid and HTML markup characters as entities."""
    line = " ".join(escaped(text).split())
    if len(line) > _LONGEST_LABEL:
        line = f"{line[: _LONGEST_LABEL - 1]}…"
    line = _MARKUP.sub(lambda match: f"#{ord(match.group())};", line)
    return f'"{line or " "}"'  # Mermaid refuses an empty label
