"""Schemas of every sort, and arguments for them: what is sent is what was given, and fits."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

from hypothesis import given, strategies as st
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for
from referencing import Registry

from callsheet.graphs.text.model_schema import model_schema
from fuzzing import anything, fuzzed, mutated, scalars, texts, values, written
from puppet import result
from stage import Stage

RICH = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "http://127.0.0.1:9/schema",
    "type": "object",
    "properties": {
        "a": {"type": "integer", "minimum": 0, "description": "A number."},
        "path": {"type": "string", "format": "path", "maxLength": 20, "pattern": "^[a-z]*$"},
        "x": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "array", "items": {"enum": ["a", 1, None]}}]},
        "config": {"type": "object", "additionalProperties": {"type": "string"}},
        "filter[title]": {"type": ["string", "null"]},
        "rows": {"type": "array"},
        "rate": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
    },
    "patternProperties": {"^x-": {"type": "boolean"}},
    "required": ["a"],
    "additionalProperties": False,
    "$defs": {"a": {"type": "object", "properties": {"next": {"$ref": "#/$defs/a"}}}},
    "anyOf": [{"required": ["a"]}, {"properties": {"kind": {"const": 1}}, "required": ["kind"]}],
    "allOf": [{"properties": {"x": {"allOf": [{"description": "Any."}]}}}],
    "if": {"required": ["path"]},
    "then": {"required": ["x"]},
    "dependentRequired": {"x": ["a"]},
}
DOUBLING = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/0"}},
    "$defs": {
        **{str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(40)},
        "40": {"type": "integer"},
    },
}
GIVEN = {"a": 1, "path": "abc", "x": {"next": {"next": {}}}, "config": {"a": "b"}, "x-a": True}
SLOW = {"type": "object", "properties": {"path": {"type": "string", "pattern": "(a+)+$"}}}
schemas = mutated(RICH) | mutated(RICH, parts=texts | scalars) | st.dictionaries(texts, anything, max_size=4)
objects = mutated(GIVEN, parts=values) | mutated({"a": 1}) | st.dictionaries(texts, values, max_size=4)
arguments = objects.filter(lambda given: isinstance(given, dict))


def fits(schema: Any, args: Any) -> bool:
    """Whether arguments fit by the library itself; where it cannot say, they do."""
    try:
        found = validator_for(schema, default=Draft202012Validator)(schema, registry=Registry())
        return bool(found.is_valid(args))
    except Exception:  # noqa: BLE001 (the schema may be anything)
        return True


def comparable(value: Any) -> str:
    """JSON in which numbers that are the same are written the same."""
    return json.dumps(written(value), sort_keys=True)


@given(schema=schemas, args=st.lists(arguments, min_size=1, max_size=3))
def checked(stage: Stage, schema: Any, args: list[Any]) -> None:
    async def example() -> None:
        await stage.offer({"tools": [{"name": "work", "description": "Does work.", "inputSchema": schema}]})
        stage.accept()
        for given_args in args:
            before = len(stage.puppet.calls)
            message = await stage.call("puppet/work", given_args)
            sent = [call["arguments"] for call in stage.puppet.calls[before:]]
            assert len(sent) <= 1
            assert bool(sent) == (message is not None and message.status == "success")
            assert all(comparable(sent_args) == comparable(given_args) for sent_args in sent)
            assert not sent or fits(written(schema), written(given_args))

    stage.run(example())


def test_sent_arguments_fit_their_schema(stage: Stage) -> None:
    stage.puppet.answers["tools/call"] = result({"content": [{"type": "text", "text": "done"}]})
    fuzzed(30)(checked)(stage)


@given(schema=schemas)
def taken_by_providers(schema: Any) -> None:
    if not isinstance(schema := written(schema), dict):
        return
    found = model_schema(schema)
    with suppress(RecursionError):  # of the library: no catalog has schemas as deep
        Draft202012Validator(Draft202012Validator.META_SCHEMA).validate(found.schema)
    assert found.schema["type"] == "object"
    assert not {"anyOf", "oneOf", "allOf", "$ref", "enum", "not"} & set(found.schema)
    assert set(found.schema.get("required", ())) <= set(found.schema["properties"])
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name) for name in found.schema["properties"])
    given = dict.fromkeys(found.schema["properties"], 1)
    assert list(found.own(given)) == list(found.plain["properties"])


def test_what_a_model_is_shown_is_taken_by_providers() -> None:
    fuzzed(200)(taken_by_providers)()


def test_no_schema_takes_long(stage: Stage) -> None:
    async def example() -> None:
        for schema, args in ((DOUBLING, {"a": 1}), (SLOW, {"path": "a" * 5_000 + "!"})):
            await stage.offer({"tools": [{"name": "work", "inputSchema": schema}]})
            stage.accept()
            assert (await stage.call("puppet/work", args)).artifact["kind"] == "refused"
        assert not stage.puppet.calls

    stage.run(example())
