"""Schemas in the form that every provider takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from callsheet.graphs.text.model_schema import model_schema

CIRCLE = {
    "type": "object",
    "properties": {"kind": {"const": "circle"}, "r": {"type": "number"}},
    "required": ["kind", "r"],
}
SQUARE = {"properties": {"kind": {"const": "square"}, "side": {"type": "number"}}, "required": ["kind", "side"]}
SHAPES = {"kind": {"enum": ["circle", "square"]}, "r": {"type": "number"}, "side": {"type": "number"}}


def subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        yield schema
        for key, value in schema.items():
            within = value.values() if key == "properties" else value if isinstance(value, list) else [value]
            yield from (found for part in within for found in subschemas(part))


def taken(schema: dict[str, Any]) -> bool:
    """Whether a schema keeps the rules that providers publish."""
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf", "$ref", "enum", "not"} & set(schema)
    for part in subschemas(schema):
        assert isinstance(part.get("type", ""), str)
        assert part.get("type") != "array" or isinstance(part["items"], dict)
        assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name) for name in part.get("properties", ()))
    assert set(schema.get("required", ())) <= set(schema["properties"])
    return True


@pytest.mark.parametrize("key", ["anyOf", "oneOf"])
@pytest.mark.parametrize("referred", [False, True])
def test_alternatives_of_the_root_are_one_object(key: str, *, referred: bool) -> None:
    parts: list[Any] = [{"$ref": "#/$defs/circle"}, {"$ref": "#/$defs/square"}] if referred else [CIRCLE, SQUARE]
    shown = model_schema({key: parts, "$defs": {"circle": CIRCLE, "square": SQUARE}})
    assert taken(shown.schema)
    assert shown.schema["properties"] == SHAPES
    assert shown.schema["required"] == ["kind"]
    assert shown.forms == 'Arguments, in one of these forms:\n- kind="circle", r\n- kind="square", side'
    assert shown.changes == ("the alternatives at its root are merged into one object",)


def test_alternatives_that_only_require_are_said() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {}, "path": {}},
        "anyOf": [{"required": ["id"]}, {"required": ["path"]}],
    }
    shown = model_schema(schema)
    assert taken(shown.schema)
    assert (shown.schema["properties"], shown.schema["required"]) == ({"id": {}, "path": {}}, [])
    assert shown.forms.endswith("- id\n- path")


def test_parts_and_references_of_the_root_are_one_object() -> None:
    schema = {"allOf": [{"$ref": "#/$defs/a"}, {"properties": {"b": {}}, "required": ["b"]}], "$defs": {"a": CIRCLE}}
    shown = model_schema(schema)
    assert taken(shown.schema)
    assert (shown.schema["required"], shown.forms) == (["kind", "r", "b"], "")
    shown = model_schema({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": CIRCLE}})
    assert list(shown.schema["properties"]) == ["kind", "r"]
    assert "the reference at its root is resolved" in shown.changes


@pytest.mark.parametrize(
    ("part", "becomes"),
    [
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"type": "array", "items": True}, {"type": "array", "items": {}}),
        (
            {"items": [{"type": "string"}, {"type": "integer"}]},
            {"items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
        ),
        (
            {"type": "array", "prefixItems": [{"type": "number"}] * 2},
            {"type": "array", "prefixItems": [{"type": "number"}] * 2, "items": {"type": "number"}},
        ),
        ({"type": "float"}, {"type": "number"}),
        ({"type": "Integer"}, {"type": "integer"}),
        ({"type": "uuid"}, {}),
        ({"type": None, "description": None}, {}),
        ({"type": ["string", "null"], "title": "A"}, {"title": "A", "anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"type": ["array", "null"]}, {"anyOf": [{"type": "array", "items": {}}, {"type": "null"}]}),
        ({"type": "object", "required": None}, {"type": "object"}),
        ({"type": "object", "properties": {"a": {}}, "required": True}, {"type": "object", "properties": {"a": {}}}),
        ({"type": "number", "minimum": 0, "exclusiveMinimum": True}, {"type": "number", "exclusiveMinimum": 0}),
        ({"const": 1}, {"enum": [1]}),
        ({"allOf": [{"type": "string"}], "description": "d"}, {"type": "string", "description": "d"}),
        (True, {}),
        ("string", {}),
    ],
)  # fmt: skip
def test_parts_that_a_provider_refuses(part: Any, becomes: Any) -> None:
    for schema in ({"properties": {"a": part}}, {"properties": {"b": {"properties": {"a": part}}}}):
        shown = model_schema({"type": "object", **schema})
        assert taken(shown.schema)
        assert next(p["properties"]["a"] for p in subschemas(shown.schema) if "a" in p.get("properties", {})) == becomes


@pytest.mark.parametrize(
    ("names", "fit"),
    [
        (["filter[title]", "$top", "a.b", "2nd"], ["filter_title", "top", "a_b", "_2nd"]),
        (["Start", "Start<", "Start>"], ["Start", "Start_6963d03a", "Start_55513210"]),
        (["名前", "価格"], ["p_7ec26292", "p_855e4ca0"]),
        (["a b", "a-b", "a_b"], ["a_b_c8687a08", "a_b_d44362d6", "a_b"]),
        (["x" * 65], ["x" * 55 + "_" + "9537c5fd"]),
    ],
)
def test_names_are_mapped_there_and_back(names: list[str], fit: list[str]) -> None:
    inner = {"type": "object", "properties": {name: {"type": "integer"} for name in names}, "required": names}
    schema = {**inner, "properties": {**inner["properties"], "all": {"type": "array", "items": inner}, "free": {}}}
    shown = model_schema(schema)
    assert taken(shown.schema)
    assert list(shown.schema["properties"])[: len(names)] == fit
    given_args = dict.fromkeys(fit, 1)
    own = {**dict.fromkeys(names, 1), "all": [dict.fromkeys(names, 1)], "free": given_args}
    assert shown.own({**given_args, "all": [given_args], "free": given_args}) == own
    assert shown.own(own) == own
    assert set(names) <= set(shown.plain["properties"])


def test_what_every_provider_takes_stays() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "string", "enum": ["x"], "default": "x", "pattern": "^x$"},
            "b": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "title": "B"},
            "c": {"type": "array", "items": {"type": "object", "properties": {"d": {}}, "required": ["d"]}},
        },
        "required": ["a"],
        "additionalProperties": False,
    }
    shown = model_schema(schema)
    assert (shown.schema, shown.names, shown.changes, shown.forms) == (schema, {}, (), "")


@pytest.mark.parametrize("schema", [{"type": "array", "items": {}}, {"type": "string"}, {"type": ["string", "null"]}])
def test_a_schema_of_no_object_has_no_properties(schema: dict[str, Any]) -> None:
    assert model_schema(schema).schema == {"type": "object", "properties": {}}
