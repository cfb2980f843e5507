"""Cypher scripts in plain openCypher, for Neo4j, Memgraph, FalkorDB and Ladybug (the successor of Kuzu)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from callsheet.graphs.capabilities.taxonomy import Capability
from callsheet.graphs.catalog.model import Catalog, DependencyKind
from callsheet.graphs.export.property_graph import Property, knowledge_graph
from callsheet.graphs.text.sanitizing import written_out

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r"})
_LARGEST = 2**63 - 1  # of Cypher's integers
_FIELD = "name STRING, type STRING, description STRING, format STRING, enum STRING, default_value STRING"
_NODES: Mapping[str, str] = {
    "Agent": "id STRING, name STRING, description STRING, instructions STRING, category STRING, system STRING",
    "Tool": "id STRING, name STRING, title STRING, description STRING, core BOOLEAN, input_schema STRING, "
    "output_schema STRING, annotations STRING",
    "Skill": "id STRING, name STRING, description STRING, text STRING",
    "Parameter": _FIELD,
    "Output": _FIELD,
    "Capability": "id STRING, name STRING, definition STRING",
}
_EDGES: Mapping[str, tuple[str, str]] = {
    "HOSTED_ON": ("Tool", "Agent"),
    "HAS_REQUIRED_INPUT": ("Tool", "Parameter"),
    "HAS_OPTIONAL_INPUT": ("Tool", "Parameter"),
    "HAS_OUTPUT": ("Tool", "Output"),
    "HAS_CAPABILITY": ("Tool", "Capability"),
    "NAMES_TOOL": ("Skill", "Tool"),
    "BROADER": ("Capability", "Capability"),
}
_DEPENDENCY = "position INT64, parameter STRING, reason STRING, provenance STRING, confidence DOUBLE, count INT64"


def to_cypher(catalog: Catalog, taxonomy: Sequence[Capability] | None = None) -> str:
    """The knowledge graph as a Cypher script with one statement per line; a second run changes nothing.

    Nodes are labelled ``Agent``, ``Tool``, ``Skill``, ``Parameter``, ``Output`` and ``Capability`` and have a unique
    ``key``; relationships are ``HOSTED_ON``, ``HAS_REQUIRED_INPUT``, ``TOOL_DIRECTLY_DEPENDS_ON`` and so on.

    Args:
        catalog: The catalog.
        taxonomy: The taxonomy of the capabilities; None: the default taxonomy.
    """
    return written_out("".join(f"{statement};\n" for statement in _statements(catalog, taxonomy)), longest=8)


def cypher_schema() -> str:
    """Definitions of tables for engines that require them before the script (Ladybug, Kuzu); Neo4j needs none."""
    nodes = [f"CREATE NODE TABLE {label}(key STRING, {fields}, PRIMARY KEY(key))" for label, fields in _NODES.items()]
    edges = [f"CREATE REL TABLE {name}(FROM {source} TO {target})" for name, (source, target) in _EDGES.items()]
    needs = [f"CREATE REL TABLE {_relationship(kind)}(FROM Tool TO Tool, {_DEPENDENCY})" for kind in DependencyKind]
    return "".join(f"{statement};\n" for statement in (*nodes, *edges, *needs))


def _statements(catalog: Catalog, taxonomy: Sequence[Capability] | None) -> Iterator[str]:
    graph = knowledge_graph(catalog, taxonomy)
    labels = {key: str(kind).capitalize() for key, kind in graph.nodes(data="kind")}
    for key, properties in graph.nodes(data=True):
        yield f"MERGE (n:{labels[key]} {{key: {_literal(key)}}}){_set('n', properties)}"
    for source, target, properties in graph.edges(data=True):
        ends = f"(a:{labels[source]} {{key: {_literal(source)}}}), (b:{labels[target]} {{key: {_literal(target)}}})"
        place = f" {{position: {properties['position']}}}" if "position" in properties else ""
        name = _relationship(properties["kind"])
        yield f"MATCH {ends} MERGE (a)-[r:{name}{place}]->(b){_set('r', properties)}"


def _relationship(kind: str) -> str:
    return f"{kind}_depends_on".upper() if kind in set(DependencyKind) else kind.upper()


def _set(variable: str, properties: Mapping[str, Property]) -> str:
    values = {name: value for name, value in properties.items() if name not in ("kind", "position")}
    parts = [f"{variable}.{name} = {_literal(value)}" for name, value in values.items()]
    return f" SET {', '.join(parts)}" if parts else ""


def _literal(value: Property) -> str:
    match value:
        case bool():
            return str(value).lower()
        case str():
            return f"'{value.translate(_ESCAPES)}'"
        case int():
            return str(min(value, _LARGEST))
        case _:
            return repr(value)
