"""Rules on JSON Schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st
from jsonschema import Draft7Validator, Draft202012Validator

from callsheet.graphs import Agent, Catalog, Tool
from callsheet.graphs.capabilities.taxonomy import default_taxonomy
from callsheet.graphs.lint import schema_rules
from callsheet.graphs.lint.lint_rule import Rule, Subject

Finds = Callable[..., list[tuple[str, str, str]]]


def taking(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


SOUND: list[dict[str, Any]] = [
    {},
    taking(x={"type": "string", "enum": ["a"], "default": {"$ref": "nowhere"}}),
    taking(x={"$ref": "#/$defs/N"}) | {"$defs": {"N": {"properties": {"n": {"$ref": "#/$defs/N"}}}}},
    taking(x={"$ref": "#here"}) | {"$defs": {"N": {"$anchor": "here"}}},
    taking(x={"$ref": "https://x.test/s#/$defs/N"}) | {"$id": "https://x.test/s", "$defs": {"N": {}}},
    taking(**{"$ref": {"type": "string"}, "pattern": {"type": "string"}, "required": {"type": "boolean"}}),
    {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "definitions": {"a": True}},
    {"$schema": "http://unknown.test/schema", "type": "object"},
]
BROKEN: list[tuple[Rule, dict[str, Any], str]] = [
    (schema_rules.invalid_schema, {"type": "objekt"}, "objekt"),
    (schema_rules.invalid_schema, taking(x={"type": "bool"}), "$.properties.x.type"),
    (schema_rules.invalid_schema, {"properties": ["x"]}, "$.properties"),
    (schema_rules.invalid_schema, taking(x="string"), "$.properties.x"),
    (schema_rules.invalid_schema, {"required": "x"}, "$.required"),
    (schema_rules.invalid_schema, {"$schema": {}}, "TypeError"),
    (schema_rules.unresolved_reference, taking(x={"$ref": "#/$defs/Missing"}), "'#/$defs/Missing'"),
    (schema_rules.unresolved_reference, taking(x={"items": [{"$ref": "#no-anchor"}]}), "'#no-anchor'"),
    (schema_rules.unresolved_reference, taking(x={"$ref": "http://["}), "'http://['"),
    (
        schema_rules.unresolved_reference,
        taking(x={"$ref": "http://127.0.0.1:9/steal.json"}),
        "'http://127.0.0.1:9/steal.json'",
    ),
    (schema_rules.unresolved_reference, taking(x={"$ref": "file:///etc/hosts"}), "'file:///etc/hosts'"),
    (schema_rules.unresolved_reference, taking(x={"anyOf": [{"$ref": "other.json#/a"}]}), "'other.json#/a'"),
]


@pytest.mark.parametrize("schema", SOUND)
@pytest.mark.parametrize("rule", dict.fromkeys(rule for rule, _, _ in BROKEN))
def test_a_sound_schema_is_left_alone(finds: Finds, rule: Rule, schema: dict[str, Any]) -> None:
    assert finds(rule, a={"x": {"input_schema": schema, "output_schema": schema}}) == []


@pytest.mark.parametrize(("rule", "schema", "said"), BROKEN)
def test_a_broken_schema_is_found_with_its_place(finds: Finds, rule: Rule, schema: dict[str, Any], said: str) -> None:
    [(agent, tool, message)] = finds(rule, a={"x": {"input_schema": schema}, "y": {}})
    assert (agent, tool) == ("a", "a/x")
    assert said in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (taking() | {"anyOf": [taking(a={}), taking(b={})]}, "the alternatives at its root are merged into one object"),
        (taking(**{"filter[title]": {"type": "string"}}), '"filter[title]" is shown as filter_title'),
        (taking(x={"type": "array"}) | {"required": None}, "required null is left out"),
        (taking(x={"type": "float"}), 'type "float" is shown as number'),
        ({"type": "array", "items": {}}, 'its type is "array", so no arguments are shown'),
        ({"type": ["object", "null"]}, 'type ["object", "null"] at its root is shown as object'),
        ({"properties": {"x": {}}, "required": ["x", "y", "z"]}, "y, z is required and not described"),
    ],
)
def test_what_a_model_is_shown_in_another_form_is_said(finds: Finds, schema: dict[str, Any], said: str) -> None:
    sound = taking(x={"type": "array", "items": {"type": "string"}}, y={"enum": ["a"]})
    [(agent, tool, message)] = finds(
        schema_rules.adapted_schema, a={"x": {"input_schema": schema}, "y": {"input_schema": sound}}
    )
    assert (agent, tool) == ("a", "a/x")
    assert said in message


def test_output_schemas_are_looked_at_too(finds: Finds) -> None:
    broken = {"type": "objekt", "properties": {"x": {"$ref": "#/nowhere"}, "y": {"$ref": "#/nowhere"}}}
    for rule in (schema_rules.invalid_schema, schema_rules.unresolved_reference):
        [(_, _, message)] = finds(rule, a={"x": {"output_schema": broken}})
        assert message.startswith("its output schema")


def test_a_reference_is_told_once_at_any_depth(finds: Finds) -> None:
    schema: dict[str, Any] = taking(x={"$ref": "#/nowhere"}, y={"$ref": "#/nowhere"})
    for _ in range(100):
        schema = {"items": schema}
    assert len(finds(schema_rules.unresolved_reference, a={"x": {"input_schema": schema}})) == 1


KEYWORDS = "type description default required items anyOf properties $defs pattern $ref enum".split()
plain = st.sampled_from(["object", "string", "objekt", "", None, True, 3, ["a"], ["a", "a"], [], {}])
schemas = st.recursive(
    st.dictionaries(st.sampled_from(KEYWORDS), plain, max_size=3),
    lambda inner: st.dictionaries(st.sampled_from(KEYWORDS), inner | plain | st.lists(inner, max_size=2), max_size=4),
    max_leaves=8,
)


@given(schemas, st.sampled_from([Draft7Validator, Draft202012Validator]))
def test_the_schemas_that_are_invalid_are_those_of_the_library(schema: dict[str, Any], draft: Any) -> None:
    named = schema | {"$schema": draft.META_SCHEMA["$id"]}
    subject = Subject(
        Catalog(agents=(Agent(id="a", tools=(Tool(agent="a", name="x", input_schema=named),)),)), default_taxonomy()
    )
    assert bool(list(schema_rules.invalid_schema.findings(subject))) != draft(draft.META_SCHEMA).is_valid(named)
