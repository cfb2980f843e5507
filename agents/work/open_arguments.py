"""Finds descriptions of *open* arguments: those whose schema does not say what keys their objects have.

Often another tool of the same agent has an argument of this name and describes it better.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from callsheet.graphs.catalog.model import Catalog, Tool
from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.model_schema import model_schema

_HEADING = "What other tools, which you do not have, say of single arguments (in brackets) that yours have too:"
_MOST = 6
_LONGEST = 200
"""Maximum number of lines, and of characters of one tool's description."""
_FORMS = ("enum", "const", "properties", "pattern", "format")
"""Keywords that restrict a value even if the schema has no ``type``."""


def siblings(catalog: Catalog, tool_ids: Sequence[str]) -> str:
    """Returns descriptions of the tools' open arguments from other tools of the same agents; may be empty.

    For example, the schema ``{"type": "array"}`` does not say what an item looks like. Another tool may say so in the
    argument's schema, in the argument's description, or in the description of the tool itself.
    """
    lines: dict[str, str] = {}  # id of the other tool -> its line
    for tool_id in tool_ids:
        tool = catalog.tools.get(tool_id)
        if tool is None:
            continue
        names = [name for name, schema in _properties(tool).items() if _is_open(schema)]
        others = catalog.agent(tool.agent).tools if names else ()
        for other in others:
            if other.id in tool_ids or other.id in lines:
                continue
            news = _news(tool, other, names)
            if news:
                lines[other.id] = f"- {other.id} ({', '.join(news)}): {'; '.join(dict.fromkeys(news.values()))}"
    if not lines:
        return ""
    return "\n".join([_HEADING, *list(lines.values())[:_MOST]])


def _news(tool: Tool, other: Tool, names: Sequence[str]) -> dict[str, str]:
    """Returns another tool's descriptions of these arguments, by argument; without what ``tool`` itself says."""
    news: dict[str, str] = {}
    properties = _properties(other)
    for name in names:
        if name not in properties:
            continue
        text = _account(other, name)
        if text and text not in _own_account(tool, name):
            news[name] = text
    return news


def _properties(tool: Tool) -> Mapping[str, Any]:
    """Returns the arguments of a tool with their schemas, in which references are resolved."""
    properties: Mapping[str, Any] = model_schema(tool.input_schema).plain.get("properties") or {}
    return properties


def _is_open(schema: object) -> bool:
    """Returns whether the schema allows a value that is, or contains, an object whose keys it does not name."""
    if not isinstance(schema, Mapping):
        return True
    for union in ("anyOf", "oneOf"):
        members = schema.get(union)
        if isinstance(members, list):
            return any(_is_open(member) for member in members)
    match schema.get("type"):
        case "array":
            return _is_open(schema.get("items", {}))
        case "object":
            values = schema.get("additionalProperties")
            has_known_values = isinstance(values, Mapping) and not _is_open(values)
            return not schema.get("properties") and not has_known_values
        case None:
            return not any(keyword in schema for keyword in _FORMS)
        case _:
            return False


def _account(tool: Tool, name: str) -> str:
    """Returns a tool's description of an argument; empty if there is none.

    It names the keys that the argument's schema has; otherwise it is the argument's description, or else the tool's.
    """
    schema = _properties(tool)[name]
    if not _is_open(schema):
        return _keys(schema)
    description = schema.get("description") if isinstance(schema, Mapping) else ""
    if isinstance(description, str) and description.strip():
        return _short(description)
    return _short(tool.description)


def _keys(schema: Mapping[str, Any]) -> str:
    """Lists the keys of the objects that a schema describes, and marks required keys by ``*``; empty without keys."""
    inside = schema
    while inside.get("type") == "array" and isinstance(inside.get("items"), Mapping):
        inside = inside["items"]
    required = inside.get("required") or ()
    keys = [f"{key}*" if key in required else key for key in inside.get("properties") or ()]
    return _short(f"objects with {', '.join(keys)} (* required)") if keys else ""


def _short(text: str) -> str:
    """Returns the first paragraph of a text in one line."""
    paragraph = text.strip().partition("\n\n")[0]
    return " ".join(shown(paragraph, most=_LONGEST).split())


def _own_account(tool: Tool, name: str) -> str:
    """Returns the descriptions that the worker sees of the argument and its tool."""
    schema = _properties(tool)[name]
    description = schema.get("description", "") if isinstance(schema, Mapping) else ""
    return " ".join(f"{description} {tool.description}".split())
