"""JSON Schemas from outside: their keywords, and the form that a model is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from callsheet.graphs.text.sanitizing import LONGEST_TEXT, hidden_in, shown, strings_in

LARGEST_SCHEMA = 65_536
_TEXTS = frozenset({"title", "description", "$comment"})
_LISTS, _VALUES = frozenset({"enum", "examples"}), frozenset({"default", "const", "example"})
NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    """Each keyword of a schema and of its subschemas with its value; property names and plain values are skipped."""
    if isinstance(schema, list):
        for item in schema:
            yield from keywords(item)
    if not isinstance(schema, Mapping):
        return
    for key, value in schema.items():
        yield key, value
        if key in NAMED and isinstance(value, Mapping):
            yield from keywords(list(value.values()))
        elif key not in _VALUES | _LISTS:
            yield from keywords(value)


def shown_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON Schema in the form that a model is shown.

    Titles and descriptions are sanitized by ``shown``. Any other string (a name, or a value of ``enum``, ``default``,
    ``pattern``, ``required`` ...) that contains hidden characters or is too long is removed, not changed, because tools
    compare it exactly. Of a schema above 64 kB, only names, types and required marks of the parameters remain.
    """
    cleaned = _shown_object(schema)
    if len(json.dumps(cleaned, ensure_ascii=False, default=str)) <= LARGEST_SCHEMA:
        return cleaned
    properties = cleaned.get("properties")
    types = {
        name: {"type": spec["type"]} if isinstance(spec, dict) and isinstance(spec.get("type"), str | list) else {}
        for name, spec in (properties.items() if isinstance(properties, dict) else ())
    }
    return {"type": "object", "properties": types, "required": cleaned.get("required", [])}


def _shown_object(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _shown_value(key, value)
        for key, value in schema.items()
        if not (_hides(str(key)) or _is_removed(key, value))
    }


def _shown_value(key: str, value: Any) -> Any:
    if key in _TEXTS and isinstance(value, str):
        return shown(value)
    if key in _LISTS and isinstance(value, list):
        return [item for item in value if not _hides(item)]
    if key in _VALUES:
        return value
    if key in NAMED and isinstance(value, dict):
        return {name: _shown_subschema(part) for name, part in value.items() if not _hides(str(name))}
    return _shown_subschema(value)


def _shown_subschema(value: Any) -> Any:
    match value:
        case dict():
            return _shown_object(value)
        case list():
            return [_shown_subschema(item) for item in value if not (isinstance(item, str) and _hides(item))]
        case _:
            return value


def _is_removed(key: str, value: Any) -> bool:
    if key in _LISTS:
        return isinstance(value, list) and bool(value) and all(map(_hides, value))
    return (key in _VALUES or (isinstance(value, str) and key not in _TEXTS)) and _hides(value)


def _hides(value: Any) -> bool:
    """Whether a value contains hidden characters, or a text that is too long to be shown."""
    return any(len(text) > LONGEST_TEXT or hidden_in(text) for text in strings_in(value))
