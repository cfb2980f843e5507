"""The leaves of schemas."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.graphs.text.json_schema import fields_of

PERSON = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


def paths(schema: dict[str, Any]) -> dict[str, tuple[bool, bool]]:
    return {".".join(field.path): (field.required, field.many) for field in fields_of(schema)}


def test_objects_and_lists_are_followed_and_references_into_the_schema() -> None:
    schema = {
        "properties": {
            "owner": {"$ref": "#/$defs/person"},
            "guests": {"type": "array", "items": {"$ref": "#/$defs/person"}},
            "either": {"anyOf": [PERSON, {"type": "null"}]},
            "free": {"type": "object"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["owner", "tags"],
        "$defs": {"person": PERSON},
    }
    assert paths(schema) == {
        "owner.id": (True, False),
        "guests.id": (False, True),
        "either.id": (False, False),
        "free": (False, False),
        "tags": (True, True),
    }


def test_closed_values_and_defaults_of_fields_are_read() -> None:
    schema = {
        "properties": {
            "a": {"type": "boolean"},
            "b": {"enum": [1, 2]},
            "c": {"type": ["string", "null"], "default": None},
            "d": {"const": 1},
            "e": {"type": "integer", "default": 0},
        }
    }
    fields = {field.name: field for field in fields_of(schema)}
    assert [name for name, field in fields.items() if field.closed] == ["a", "b", "d"]
    assert [name for name, field in fields.items() if field.default] == ["e"]
    assert fields["c"].types == {"string"}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"properties": []},
        {"properties": {"a": 1, "b": None, "c": []}},
        {"properties": {"a": {"$ref": "#/properties/b"}, "b": {"$ref": "#/properties/a"}}},
        {"properties": {"a": {"$ref": "https://example.org/x"}, "b": {"$ref": "#/nowhere/at/all"}}},
        {"properties": {"a": {"type": 7, "anyOf": "x", "items": [1], "description": ["x"]}}},
        {"$ref": "#"},
        {"properties": {"child": {"$ref": "#"}, "x": {"type": "string"}}},
        {"properties": {f"p{i}": {"type": "string"} for i in range(100_000)}},
    ],
    ids=lambda schema: str(schema)[:30],
)
def test_an_invalid_recursive_or_huge_schema_is_read_within_bounds(schema: dict[str, Any]) -> None:
    fields = fields_of(schema)
    assert len(fields) <= 120
    assert all(field.path for field in fields)
