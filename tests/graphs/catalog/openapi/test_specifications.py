"""Specifications as agents and tools: names, texts, schemas, sizes, and a published one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from callsheet.graphs import load
from callsheet.graphs.catalog.formats.openapi_operations import Api, api_of
from made_specs import made_spec

HEAD = {"openapi": "3.0.3", "info": {"title": "T"}}


def read(operation: dict[str, Any], *, method: str = "get", path: str = "/x", **more: Any) -> dict[str, Any]:
    found = api_of({**HEAD, "paths": {path: {method: operation}}, **more})
    assert found.problems == ()
    (agent,) = found.agents.values()
    (entry,) = agent.entries
    return entry


def body(schema: Any, **more: Any) -> dict[str, Any]:
    return {"requestBody": {"content": {"application/json": {"schema": schema}}, **more}}


def answer(schema: Any, status: str = "200") -> dict[str, Any]:
    return {"responses": {status: {"content": {"application/json": {"schema": schema}}}}}


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        ({"summary": "Tell it.", "description": "Tell it. At once."}, "Tell it. At once."),
        ({"summary": "Tell it.", "description": "At once."}, "Tell it.\nAt once."),
        ({"summary": " Tell it. "}, "Tell it."),
        ({}, ""),
    ],
)
def test_the_text_is_summary_and_description(operation: dict[str, Any], text: str) -> None:
    assert read(operation)["description"] == text


def test_a_name_is_the_operation_id_or_method_and_path() -> None:
    assert read({"operationId": "pets.list all"})["name"] == "pets.list_all"
    assert read({}, path="/pets/{id}", method="delete")["name"] == "delete_pets_id"
    of_fastapi = {
        "/items/{item_id}": {"get": {"operationId": "read_item_items__item_id__get"}},
        "/v2/items/{item_id}": {"get": {"operationId": "read_item_v2_items__item_id__get"}},
        "/get": {"get": {"operationId": "_get_get"}},
    }
    (agent,) = api_of({**HEAD, "paths": of_fastapi}).agents.values()
    names = [entry["name"] for entry in agent.entries]
    assert names == ["read_item", "read_item_v2_items__item_id__get", "get_get"], "each is told apart"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "string", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": False}, {"type": "integer", "minimum": 1}),
        ({"type": ["string", "null"], "const": "a"}, {"type": ["string", "null"], "const": "a"}),
        ({"type": "file", "example": 1, "x-more": 2, "xml": {}}, {}),
        ({"allOf": [{"$ref": "#/components/schemas/A"}, {"properties": {"b": {}}, "required": ["b"]}]},
         {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a", "b"]}),
        ({"$ref": "#/components/schemas/A", "description": "Ours."},
         {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "description": "Ours."}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
         {"type": "object", "additionalProperties": {"type": ["string", "null"]}}),
    ],
)  # fmt: skip
def test_schemas_of_both_versions_become_json_schema(schema: Any, expected: Any) -> None:
    known = {"schemas": {"A": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}}
    entry = read({"parameters": [{"name": "p", "in": "query", "schema": schema}]}, components=known)
    assert entry["inputSchema"]["properties"]["p"] == expected


def test_what_the_server_sets_is_not_sent_and_what_it_hides_is_not_expected() -> None:
    fields = {"id": {"type": "string", "readOnly": True}, "password": {"type": "string", "writeOnly": True}, "n": {}}
    schema = {"type": "object", "properties": fields, "required": ["id", "n"]}
    entry = read({**body(schema, required=True), **answer(schema)}, method="post")
    assert list(entry["inputSchema"]["properties"]) == ["password", "n"]
    assert entry["inputSchema"]["required"] == ["n"]
    assert list(entry["outputSchema"]["properties"]) == ["id", "n"]


def test_a_variable_of_the_path_is_required_and_no_field_of_a_body_that_may_be_left_out() -> None:
    assert read({}, path="/a/{b}/{c}")["inputSchema"]["required"] == ["b", "c"]
    schema = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
    assert read(body(schema), method="post")["inputSchema"]["required"] == []


CLOSED = {"type": "object", "properties": {"kind": {"type": "string"}, "name": {}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "arguments", "fits"),
    [
        ({"properties": {"a": {}}}, {"a": 1, "b": 2}, True),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}, {"b": 2}, False),
        (CLOSED, {"other": 1}, False),
        ({**CLOSED, "patternProperties": {"^x-": {}}}, {"x-1": 1}, True),
        ({**CLOSED, "discriminator": {"propertyName": "kind"}}, {"kind": "cat", "claws": 3}, True),
        ({"properties": {f"p{n}": {"description": "x" * 300} for n in range(200)}}, {"p199": 1, "b": 2}, True),
        ({"allOf": [CLOSED, {"properties": {"a": {}}}]}, {"name": 1, "a": 2}, True),
        ({"allOf": [CLOSED, {"properties": {"a": {}}}]}, {"b": 2}, False),
        ({"properties": {"p": {"allOf": [{"$ref": "#/components/schemas/Loop"}, CLOSED]}}}, {"p": {"q": 1}}, True),
        ({"properties": {"p": {"oneOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/B"}]}}},
         {"p": {"x": {"x": {"x": {"x": 1}}}}}, True),
    ],
)  # fmt: skip
def test_a_body_takes_the_fields_that_its_schema_allows(schema: Any, arguments: dict[str, Any], fits: bool) -> None:
    loop = {"allOf": [{"$ref": "#/components/schemas/Loop"}]}
    nested = {"properties": {"x": {"oneOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/B"}]}}}
    entry = read(body(schema), method="post", components={"schemas": {"Loop": loop, "A": nested, "B": nested}})
    assert Draft202012Validator(entry["inputSchema"]).is_valid(arguments) is fits


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (answer({"type": "object", "properties": {"a": {"type": "string"}}}, "201"), ["a"]),
        (answer({"type": "array", "items": {"type": "string"}}), ["result"]),
        (answer({"properties": {"a": {}}}, "default"), ["a"]),
        (answer({"properties": {"a": {}}}, "404"), None),
        ({"responses": {"204": {"description": "Nothing."}}}, None),
        ({"responses": {"200": {"content": {"image/png": {}}}}}, None),
    ],
)
def test_the_success_is_the_output_schema(operation: dict[str, Any], expected: list[str] | None) -> None:
    found = read(operation).get("outputSchema")
    assert (found and list(found["properties"])) == expected


def test_variables_of_the_address_have_their_defaults() -> None:
    servers = [
        {"url": "https://{region}.example/v{n}", "variables": {"region": {"default": "eu"}, "n": {"default": 2}}}
    ]
    assert api_of({**HEAD, "servers": servers}).server == "https://eu.example/v2"


def test_tags_of_one_form_are_one_agent() -> None:
    paths = {f"/{n}": {"get": {"tags": [tag]}} for n, tag in enumerate(["My Orders", "my orders", "Übrige", "/", " "])}
    found = api_of({**HEAD, "paths": paths})
    assert {slug: (agent.name, len(agent.entries)) for slug, agent in found.agents.items()} == {
        "my-orders": ("My Orders", 2),
        "übrige": ("Übrige", 1),
        "": ("T", 2),
    }


@pytest.mark.parametrize(
    ("operations", "words", "size"),
    [(500, 24, 1_300_000), pytest.param(10_000, 4, 12_000_000, marks=pytest.mark.exhaustive)],
)
def test_definitions_of_large_specifications_stay_in_proportion(operations: int, words: int, size: int) -> None:
    text = json.dumps(made_spec(operations, words=words))
    assert 0.9 * size < len(text) < 1.2 * size
    found: Api = api_of(json.loads(text))
    assert (found.size, len(found.agents), found.problems) == (operations, 12, ())
    sizes = [len(json.dumps(entry)) for agent in found.agents.values() for entry in agent.entries]
    assert sum(sizes) < 4 * len(text)
    assert max(sizes) < 65_536


def test_a_published_specification_is_read_completely(shared: Path) -> None:
    file = shared / "benchmarks" / "restbench" / "tmdb_oas.json"
    if not file.is_file():
        pytest.skip("no benchmarks/restbench in ../shared: the specification of TMDB is not here")
    loaded = load(file)
    assert (len(loaded.catalog.agents), len(loaded.catalog.tools), loaded.problems) == (1, 54, ())
    paths = json.loads(file.read_text())["paths"]
    tools = {tool.name: tool for tool in loaded.catalog.tools.values()}
    for path, item in paths.items():
        for operation in item.values():
            if isinstance(operation, dict):
                tool = tools[operation["operationId"]]
                required = {parameter.name for parameter in tool.parameters if parameter.required}
                assert {part[1:-1] for part in path.split("/") if part.startswith("{")} <= required
                assert tool.outputs
