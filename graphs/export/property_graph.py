"""The knowledge graph of a catalog, and GraphML of it, for networkx, Gephi, yEd and igraph."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pydantic_core import to_jsonable_python

from callsheet.graphs.capabilities.taxonomy import Capability, default_taxonomy
from callsheet.graphs.catalog.model import Catalog, Parameter, Tool
from callsheet.graphs.dependencies.traversal import reachable
from callsheet.graphs.export.node_keys import FieldRole, agent_key, capability_key, field_key, skill_key, tool_key
from callsheet.graphs.text.sanitizing import encodable

if TYPE_CHECKING:
    import networkx as nx

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
    return "" if value is None else json.dumps(value, ensure_ascii=False, default=to_jsonable_python)


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
