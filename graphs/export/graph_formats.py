"""A catalog as a property graph, and in GraphML, Cypher and Mermaid."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from urllib.parse import quote

from pydantic import TypeAdapter

from callsheet.graphs.capabilities.taxonomy import Capability, default_taxonomy
from callsheet.graphs.catalog.errors import SettingsError, UnknownNameError, near_names
from callsheet.graphs.catalog.model import Agent, Catalog, Dependency, DependencyKind, Parameter, Tool
from callsheet.graphs.dependencies.traversal import dependency_graph, reachable
from callsheet.graphs.text.sanitizing import counted, encodable, escaped, written_out

if TYPE_CHECKING:
    import networkx as nx


FieldRole = Literal["parameter", "output"]


def agent_key(agent_id: str) -> str:
    """``agent/weather``; unique for each id."""
    return f"agent/{_segment(agent_id)}"


def tool_key(agent_id: str, name: str) -> str:
    """``tool/weather.forecast``; unique for each pair of agent and name."""
    return f"tool/{_segment(agent_id)}.{_segment(name)}"


def skill_key(name: str) -> str:
    """``skill/pdf``; unique for each name."""
    return f"skill/{_segment(name)}"


def dependency_key(agent_id: str, name: str, position: int) -> str:
    """``dependency/weather.forecast.1``, for the first dependency of a tool."""
    return f"dependency/{_segment(agent_id)}.{_segment(name)}.{position}"


def capability_key(capability_id: str) -> str:
    """``capability/search``; unique for each id."""
    return f"capability/{_segment(capability_id)}"


def field_key(agent_id: str, field: Parameter, role: FieldRole) -> str:
    """``parameter/weather.place.`` and a digest: one node for equal parameters of all tools of an agent.

    Two parameters are equal if name, type, description, enum, format and default are the same. Whether a tool requires
    a parameter is an edge, not a part of the node.

    Source: Representing Agentic Tools in Knowledge Graphs: required and optional inputs as relations.
    """
    meaning = [field.name, field.type, field.description, field.enum, field.format, field.default]
    text = json.dumps(meaning, default=repr)
    digest = hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()
    return f"{role}/{_segment(agent_id)}.{_segment(field.name)}.{digest}"


def _segment(text: str) -> str:
    """The text percent-encoded, with its dots, which separate segments."""
    return quote(text, safe="", errors="replace").replace(".", "%2E")


KnowledgeGraph: TypeAlias = "nx.MultiDiGraph[str]"
Property = str | int | float | bool
EntityKind = Literal["agent", "tool", "skill", "parameter", "output", "capability"]


def knowledge_graph(catalog: Catalog, taxonomy: Sequence[Capability] | None = None) -> KnowledgeGraph:
    """Agents, tools, skills, parameters, output fields and capabilities, with their relations.

    Source: Representing Agentic Tools in Knowledge Graphs; outputs, dependencies, skills and the
    hierarchy of capabilities are ours.

    Args:
        catalog: The agents and tools.
        taxonomy: The taxonomy of the capabilities; None: the default taxonomy. The graph includes the capabilities of
            the tools and all broader ones.

    Returns:
        A graph whose nodes are keys (``tool/weather.forecast``) with the attribute ``kind`` and other texts, numbers
        and booleans, the same for every node of a kind. An edge has ``kind``: ``hosted_on``, ``has_required_input``,
        ``has_optional_input``, ``has_output``, ``has_capability``, ``broader``, ``names_tool`` (of a skill), or a kind
        of dependency, which also has the fields of ``Dependency``.
    """
    import networkx as nx

    graph: KnowledgeGraph = nx.MultiDiGraph()
    for agent in catalog.agents:
        texts = {"name": agent.name, "description": agent.description, "instructions": agent.instructions}
        _node(graph, agent_key(agent.id), "agent", id=agent.id, **texts, category=agent.category, system=agent.system)
        for tool in agent.tools:
            _add_tool(graph, tool)
    for skill in catalog.skills:
        texts = {"name": skill.name, "description": skill.description, "text": skill.text}
        _node(graph, skill_key(skill.name), "skill", id=skill.id, **texts)
        for tool_id in skill.tools:
            _edge(graph, skill_key(skill.name), _key(catalog.tools[tool_id]), "names_tool")
    _add_capabilities(graph, catalog, taxonomy)
    for tool in catalog.tools.values():
        for position, edge in enumerate(tool.depends_on, 1):
            details = edge.model_dump(mode="json", exclude={"tool", "kind"})
            details["parameter"] = edge.parameter or ""
            _edge(graph, _key(tool), _key(catalog.tools[edge.tool]), edge.kind.value, position=position, **details)
    return graph


def capabilities_of(catalog: Catalog, taxonomy: Sequence[Capability] | None) -> tuple[Capability, ...]:
    """The capabilities of a catalog's tools and all broader ones, in the order of the taxonomy (None: the default)."""
    taxonomy = default_taxonomy().capabilities if taxonomy is None else taxonomy
    broader = {capability.id: [capability.broader] for capability in taxonomy if capability.broader is not None}
    assigned = (name for tool in catalog.tools.values() for name in tool.capabilities)
    ids = reachable(assigned, lambda name: broader.get(name, []))
    return tuple(capability for capability in taxonomy if capability.id in ids)


def _add_tool(graph: KnowledgeGraph, tool: Tool) -> None:
    documents = {name: json_text(getattr(tool, name)) for name in ("input_schema", "output_schema", "annotations")}
    texts = {"name": tool.name, "title": tool.title, "description": tool.description}
    _node(graph, _key(tool), "tool", id=tool.id, **texts, core=tool.core, **documents)
    _edge(graph, _key(tool), agent_key(tool.agent), "hosted_on")
    for parameter in tool.parameters:
        kind = "has_required_input" if parameter.required else "has_optional_input"
        _edge(graph, _key(tool), _field(graph, tool.agent, parameter, "parameter"), kind)
    for output in tool.outputs:
        _edge(graph, _key(tool), _field(graph, tool.agent, output, "output"), "has_output")


def _add_capabilities(graph: KnowledgeGraph, catalog: Catalog, taxonomy: Sequence[Capability] | None) -> None:
    capabilities = capabilities_of(catalog, taxonomy)
    assigned = [name for tool in catalog.tools.values() for name in tool.capabilities]
    for name in [*assigned, *(capability.broader for capability in capabilities if capability.broader is not None)]:
        _node(graph, capability_key(name), "capability", id=name, name="", definition="")
    for capability in capabilities:
        texts = {"name": capability.name, "definition": capability.definition}
        _node(graph, capability_key(capability.id), "capability", id=capability.id, **texts)
        if capability.broader is not None:
            _edge(graph, capability_key(capability.id), capability_key(capability.broader), "broader")
    for tool in catalog.tools.values():
        for name in dict.fromkeys(tool.capabilities):
            _edge(graph, _key(tool), capability_key(name), "has_capability")


def _field(graph: KnowledgeGraph, agent_id: str, field: Parameter, role: FieldRole) -> str:
    key = field_key(agent_id, field, role)
    default = "" if field.default is None else json_text(field.default)
    texts = {"name": field.name, "type": field.type, "description": field.description, "format": field.format}
    _node(graph, key, role, **texts, enum=json_text(field.enum) if field.enum else "", default_value=default)
    return key


def _key(tool: Tool) -> str:
    return tool_key(tool.agent, tool.name)


def _node(graph: KnowledgeGraph, key: str, kind: EntityKind, **properties: Property) -> None:
    graph.add_node(key, kind=kind, **_encodable(properties))


def _edge(graph: KnowledgeGraph, source: str, target: str, kind: str, **properties: Property) -> None:
    graph.add_edge(source, target, kind=kind, **_encodable(properties))


def _encodable(properties: dict[str, Property]) -> dict[str, Property]:
    return {name: encodable(value) if isinstance(value, str) else value for name, value in properties.items()}


def json_text(value: Any) -> str:
    """JSON with keys in their original order and without ASCII escapes; empty for None."""
    plain = partial(TypeAdapter(Any).dump_python, mode="json")
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=plain)


_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_graphml(catalog: Catalog, taxonomy: Sequence[Capability] | None = None) -> str:
    """The knowledge graph as GraphML.

    Characters that XML does not allow, such as NUL, become U+FFFD in texts; keys of nodes are percent-encoded and stay
    unique.

    Args:
        catalog: The catalog.
        taxonomy: The taxonomy of the capabilities; None: the default taxonomy.
    """
    import networkx as nx

    graph = knowledge_graph(catalog, taxonomy)
    for _, properties in graph.nodes(data=True):
        properties.update(_in_xml(properties))
    for _, _, properties in graph.edges(data=True):
        properties.update(_in_xml(properties))
    return '<?xml version="1.0" encoding="utf-8"?>\n' + "\n".join(nx.generate_graphml(graph)) + "\n"


def _in_xml(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        name: _NOT_XML.sub("\ufffd", value) if isinstance(value, str) else value for name, value in properties.items()
    }


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


MOST_TOOLS = 60
_LONGEST_LABEL = 60
_MARKUP = re.compile(r"[!-+.;-@\[-^`{-~]|^-")
_ARROWS: Mapping[DependencyKind, str] = {
    DependencyKind.TOOL_DIRECTLY: "-->",
    DependencyKind.TOOL_INDIRECTLY: "-.->",
    DependencyKind.PARAMETER_DIRECTLY: "==>",
    DependencyKind.PARAMETER_INDIRECTLY: "--o",
}
_STYLES = (
    "classDef tool fill:#ffffff,stroke:#4a6fa5,color:#1b2a41",
    "classDef core fill:#fdf1d0,stroke:#b8860b,color:#1b2a41",
    "classDef start fill:#d5e8d4,stroke:#2d7d46,stroke-width:3px,color:#1b2a41",
    "classDef owner fill:#f3f6fa,stroke:#9db2cf,color:#1b2a41",
    "classDef key fill:none,stroke:none,color:#777777",
)


def to_mermaid(catalog: Catalog, *, around: str | None = None, depth: int = 2) -> str:
    """Tools and their dependencies as a Mermaid flowchart; agents are frames, kinds of dependencies are line styles.

    A chart around a tool shows the tools that it needs and the tools that need it, directly or through others. If
    there are more than 60, the chart shows the nearest and says how many are left out.

    Args:
        catalog: The catalog to draw.
        around: Id of the tool or agent in the middle; None draws the whole catalog.
        depth: Maximum distance in dependencies; from an agent to its own tools counts as one.

    Raises:
        UnknownNameError: There is no tool or agent with this id.
        SettingsError: The depth is not positive, or the whole catalog is too large for a chart.
    """
    tools = list(catalog.tools) if around is None else _around(catalog, around, depth)
    if around is None and len(tools) > MOST_TOOLS:
        raise SettingsError(f"{len(tools)} tools are more than a Mermaid chart can show: name one to draw around")
    near = set(tools[:MOST_TOOLS])
    names = {tool: f"t{number}" for number, tool in enumerate(tool for tool in catalog.tools if tool in near)}
    edges = [(tool, edge) for tool in names for edge in catalog.tools[tool].depends_on if edge.tool in names]
    owners = [agent for agent in catalog.agents if agent.id == around or any(tool.id in names for tool in agent.tools)]
    lines = [
        *(line for number, agent in enumerate(owners) for line in _frame(agent, number, names, around)),
        *(_arrow(names[tool], edge, names[edge.tool]) for tool, edge in edges),
        *([f'more["and {counted(len(tools) - len(near), "more tool")}"]:::key'] if len(tools) > len(near) else []),
        *_legend({edge.kind for _, edge in edges}),
        *_STYLES,
    ]
    return "\n  ".join(["flowchart LR", *lines]) + "\n"


def _around(catalog: Catalog, start: str, depth: int) -> list[str]:
    """The ids of the tools to draw, nearest first."""
    if depth < 1:
        raise SettingsError(f"the depth must be 1 or more, not {depth}")
    if start not in catalog.tools and start not in catalog.by_id:
        known = [*catalog.by_id, *catalog.tools]
        raise UnknownNameError(f"no tool or agent {start!r} in the catalog{near_names(start, known)}")
    from_agent = start in catalog.by_id
    first = [tool.id for tool in catalog.agent(start).tools] if from_agent else [start]
    steps = depth - 1 if from_agent else depth
    graph = dependency_graph(catalog)
    dependencies, dependents = (_distances(g, first, steps) for g in (graph, graph.reverse(copy=False)))
    nodes = {**dependents, **dependencies}
    return sorted(nodes, key=lambda tool: min(dependencies.get(tool, depth), dependents.get(tool, depth)))


def _distances(graph: nx.MultiDiGraph[str], first: Sequence[str], steps: int) -> dict[str, int]:
    """Tool -> its distance in edges, up to this number of steps; the order of the layers is deterministic."""
    distances = dict.fromkeys(first, 0)
    layer = list(first)
    for step in range(1, steps + 1):
        layer = list(dict.fromkeys(other for tool in layer for other in graph[tool] if other not in distances))
        distances |= dict.fromkeys(layer, step)
    return distances


def _frame(agent: Agent, number: int, names: Mapping[str, str], around: str | None) -> Iterator[str]:
    yield f"subgraph a{number}[{_label(agent.id)}]"
    yield "  direction LR"
    for tool in agent.tools:
        if tool.id in names:
            kind = "start" if tool.id == around else "core" if tool.core else "tool"
            yield f"  {names[tool.id]}[{_label(tool.name)}]:::{kind}"
    yield "end"
    yield f"class a{number} {'start' if agent.id == around else 'owner'}"


def _arrow(source: str, edge: Dependency, target: str) -> str:
    about = f"|{_label(edge.parameter)}|" if edge.parameter and edge.parameter.strip() else ""
    return f"{source} {_ARROWS[edge.kind]}{about} {target}"


def _legend(drawn: Collection[DependencyKind]) -> Iterator[str]:
    """The legend: one line for each kind of dependency in the chart."""
    if not drawn:
        return
    yield 'subgraph legend["legend"]'
    yield "  direction LR"
    for number, kind in enumerate(kind for kind in DependencyKind if kind in drawn):
        words = kind.value.replace("_", " ")
        yield f"  k{number}[tool]:::key {_ARROWS[kind]}|needs, {words}| n{number}[needed]:::key"
    yield "end"
    yield "class legend key"


def _label(text: str) -> str:
    """A quoted label on one line, with Mermaid and HTML markup characters as entities."""
    line = " ".join(escaped(text).split())
    line = line if len(line) <= _LONGEST_LABEL else f"{line[: _LONGEST_LABEL - 1]}…"
    return f'"{_MARKUP.sub(lambda match: f"#{ord(match.group())};", line) or " "}"'
