"""Keys of the nodes of the knowledge graph: the same in RDF (as the end of an IRI), in GraphML and in Cypher."""

from __future__ import annotations

import hashlib
import json
from typing import Literal
from urllib.parse import quote

from callsheet.graphs.catalog.model import Parameter

FieldRole = Literal["parameter", "output"]


def agent_key(agent_id: str) -> str:
    """``agent/weather``; different for different ids."""
    return f"agent/{_segment(agent_id)}"


def tool_key(agent_id: str, name: str) -> str:
    """``tool/weather.forecast``; different for different pairs of agent and name."""
    return f"tool/{_segment(agent_id)}.{_segment(name)}"


def dependency_key(agent_id: str, name: str, position: int) -> str:
    """``dependency/weather.forecast.1``: the first dependency of a tool."""
    return f"dependency/{_segment(agent_id)}.{_segment(name)}.{position}"


def capability_key(capability_id: str) -> str:
    """``capability/search``; different for different ids."""
    return f"capability/{_segment(capability_id)}"


def field_key(agent_id: str, field: Parameter, role: FieldRole) -> str:
    """``parameter/weather.place.`` and a digest: one node for all tools of an agent whose parameter means the same.

    Two parameters mean the same if name, type, description, enum, format and default are the same; whether a tool
    requires it is an edge, not a part of the node.

    Source: Representing Agentic Tools in Knowledge Graphs: required and optional inputs as relations.

    Args:
        agent_id: Id of the agent.
        field: An argument of one of its tools, or a field of a result.
        role: Which of both it is.
    """
    meaning = [field.name, field.type, field.description, field.enum, field.format, field.default]
    text = json.dumps(meaning, default=repr)
    digest = hashlib.blake2b(text.encode("ascii"), digest_size=8).hexdigest()
    return f"{role}/{_segment(agent_id)}.{_segment(field.name)}.{digest}"


def _segment(text: str) -> str:
    """Percent-encoded, the dot too, which separates segments and alone would name a folder."""
    return quote(text, safe="", errors="replace").replace(".", "%2E")
