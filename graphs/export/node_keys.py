"""Keys of the nodes of the knowledge graph, the same in RDF (as the end of an IRI), GraphML and Cypher."""

from __future__ import annotations

import hashlib
import json
from typing import Literal
from urllib.parse import quote

from callsheet.graphs.catalog.model import Parameter

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
