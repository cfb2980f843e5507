"""What other tools of an agent say of an argument whose schema leaves its form open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from callsheet.graphs.catalog.model import Catalog, Tool
from callsheet.graphs.text.model_schema import model_schema
from callsheet.graphs.text.sanitizing import shown

_HEADING = "Tools of the same agents that you do not have take the same arguments:"
_MOST, _LONGEST = 6, 200
"""Maximum number of lines, and of characters of what a tool says."""
_FORMS = ("enum", "const", "properties", "pattern", "format")
"""Keywords that say what a value without a type must look like."""


def siblings(catalog: Catalog, tool_ids: Sequence[str]) -> str:
    """What tools that are not among these say of the arguments that these leave open; empty if they say nothing.

    A schema such as ``{"items": {"type": "array"}}`` does not say what an item looks like. Often another tool of the
    agent takes the same argument and does: by its schema, by the argument's description, or by its own.
    """
    told: dict[str, str] = {}
    for tool in (catalog.tools[tool_id] for tool_id in tool_ids if tool_id in catalog.tools):
        properties = _properties(tool)
        unclear = [name for name, schema in properties.items() if _is_open(schema)]
        for other in catalog.agent(tool.agent).tools if unclear else ():
            if other.id in tool_ids or other.id in told:
                continue
            said = {name: _said(other, name) for name in unclear if name in _properties(other)}
            new = {name: text for name, text in said.items() if text and text not in _own(tool, name)}
            if new:
                told[other.id] = f"- {other.id} ({', '.join(new)}): {'; '.join(dict.fromkeys(new.values()))}"
    return "\n".join([_HEADING, *list(told.values())[:_MOST]]) if told else ""


def _properties(tool: Tool) -> Mapping[str, Any]:
    """The arguments of a tool with their schemas, without references."""
    properties: Mapping[str, Any] = model_schema(tool.input_schema).plain.get("properties") or {}
    return properties


def _is_open(schema: Any) -> bool:
    """Whether a value may be, or hold, an object whose keys the schema does not tell."""
    if not isinstance(schema, Mapping):
        return True
    for union in ("anyOf", "oneOf"):
        if isinstance(members := schema.get(union), list):
            return any(_is_open(member) for member in members)
    match schema.get("type"):
        case "array":
            return _is_open(schema.get("items", {}))
        case "object":
            values = schema.get("additionalProperties")
            return not schema.get("properties") and not (isinstance(values, Mapping) and not _is_open(values))
        case None:
            return not any(keyword in schema for keyword in _FORMS)
        case _:
            return False


def _said(tool: Tool, name: str) -> str:
    """What a tool says of an argument: the keys in its schema, else its description, else the description of the tool.

    Empty if it says nothing.
    """
    schema = _properties(tool)[name]
    if not _is_open(schema):
        return _keys(schema)
    about = schema.get("description") if isinstance(schema, Mapping) else ""
    return _short(about if isinstance(about, str) and about.strip() else tool.description)


def _keys(schema: Mapping[str, Any]) -> str:
    """The keys of the objects that a schema describes, the required ones marked by ``*``; empty if it has none."""
    inside = schema
    while inside.get("type") == "array" and isinstance(inside.get("items"), Mapping):
        inside = inside["items"]
    required = inside.get("required") or ()
    keys = [f"{key}*" if key in required else key for key in inside.get("properties") or ()]
    return _short(f"objects with {', '.join(keys)} (* required)") if keys else ""


def _short(text: str) -> str:
    """The first paragraph of a text in one line."""
    paragraph = text.strip().partition("\n\n")[0]
    return " ".join(shown(paragraph, most=_LONGEST).split())


def _own(tool: Tool, name: str) -> str:
    """What the worker sees of the argument."""
    schema = _properties(tool)[name]
    about = schema.get("description", "") if isinstance(schema, Mapping) else ""
    return " ".join(f"{about} {tool.description}".split())
