"""Specifications as agents and tools, also broken, huge or hostile ones: a clear error, or a sane result."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from callsheet.graphs import CatalogError, load
from callsheet.graphs.catalog.formats.openapi_documents import is_specification, parse_specification
from callsheet.graphs.catalog.formats.openapi_operations import Api, api_of
from callsheet.graphs.text.model_schema import model_schema
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


def test_the_text_is_summary_and_description() -> None:
    cases = [
        ({"summary": "Tell it.", "description": "Tell it. At once."}, "Tell it. At once."),
        ({"summary": "Tell it.", "description": "At once."}, "Tell it.\nAt once."),
        ({"summary": " Tell it. "}, "Tell it."),
        ({}, ""),
    ]
    for operation, text in cases:
        assert read(operation)["description"] == text


def test_a_deprecated_operation_is_marked() -> None:
    for given, marked in ((True, True), (False, False), ("yes", False)):
        assert ("deprecated" in read({"deprecated": given})["annotations"]) is marked


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


def test_schemas_of_both_versions_become_json_schema() -> None:
    cases = [
        ({"type": "string", "nullable": True, "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, {"type": "integer", "exclusiveMinimum": 1}),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": False}, {"type": "integer", "minimum": 1}),
        ({"type": ["string", "null"], "const": "a"}, {"type": ["string", "null"], "const": "a"}),
        ({"type": "file", "example": 1, "x-more": 2, "xml": {}}, {}),
        (
            {"allOf": [{"$ref": "#/components/schemas/A"}, {"properties": {"b": {}}, "required": ["b"]}]},
            {"type": "object", "properties": {"a": {"type": "string"}, "b": {}}, "required": ["a", "b"]},
        ),
        (
            {"$ref": "#/components/schemas/A", "description": "Ours."},
            {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "description": "Ours."},
        ),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (
            {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
            {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
        ),
    ]
    for schema, expected in cases:
        known = {"schemas": {"A": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}}}
        entry = read({"parameters": [{"name": "p", "in": "query", "schema": schema}]}, components=known)
        assert entry["inputSchema"]["properties"]["p"] == expected


def test_read_only_fields_are_not_sent_and_write_only_fields_not_expected() -> None:
    fields = {"id": {"type": "string", "readOnly": True}, "password": {"type": "string", "writeOnly": True}, "n": {}}
    schema = {"type": "object", "properties": fields, "required": ["id", "n"]}
    entry = read({**body(schema, required=True), **answer(schema)}, method="post")
    assert list(entry["inputSchema"]["properties"]) == ["password", "n"]
    assert entry["inputSchema"]["required"] == ["n"]
    assert list(entry["outputSchema"]["properties"]) == ["id", "n"]


def test_path_variables_are_required_and_fields_of_an_optional_body_are_not() -> None:
    assert read({}, path="/a/{b}/{c}")["inputSchema"]["required"] == ["b", "c"]
    schema = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
    assert read(body(schema), method="post")["inputSchema"]["required"] == []


CLOSED = {"type": "object", "properties": {"kind": {"type": "string"}, "name": {}}, "additionalProperties": False}


def test_a_body_takes_the_fields_that_its_schema_allows() -> None:
    cases = [
        ({"properties": {"a": {}}}, {"a": 1, "b": 2}, True),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}, {"b": 2}, False),
        (CLOSED, {"other": 1}, False),
        ({**CLOSED, "patternProperties": {"^x-": {}}}, {"x-1": 1}, True),
        ({**CLOSED, "discriminator": {"propertyName": "kind"}}, {"kind": "cat", "claws": 3}, True),
        ({"properties": {f"p{n}": {"description": "x" * 300} for n in range(200)}}, {"p199": 1, "b": 2}, True),
        ({"allOf": [CLOSED, {"properties": {"a": {}}}]}, {"name": 1, "a": 2}, True),
        ({"allOf": [CLOSED, {"properties": {"a": {}}}]}, {"b": 2}, False),
        ({"properties": {"p": {"allOf": [{"$ref": "#/components/schemas/Loop"}, CLOSED]}}}, {"p": {"q": 1}}, True),
        (
            {"properties": {"p": {"oneOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/B"}]}}},
            {"p": {"x": {"x": {"x": {"x": 1}}}}},
            True,
        ),
    ]
    for schema, arguments, fits in cases:
        loop = {"allOf": [{"$ref": "#/components/schemas/Loop"}]}
        nested = {
            "properties": {"x": {"oneOf": [{"$ref": "#/components/schemas/A"}, {"$ref": "#/components/schemas/B"}]}}
        }
        entry = read(body(schema), method="post", components={"schemas": {"Loop": loop, "A": nested, "B": nested}})
        assert Draft202012Validator(entry["inputSchema"]).is_valid(arguments) is fits


def test_the_output_schema_is_that_of_the_success_response() -> None:
    cases = [
        (answer({"type": "object", "properties": {"a": {"type": "string"}}}, "201"), ["a"]),
        (answer({"type": "array", "items": {"type": "string"}}), ["result"]),
        (answer({"properties": {"a": {}}}, "default"), ["a"]),
        (answer({"properties": {"a": {}}}, "404"), None),
        ({"responses": {"204": {"description": "Nothing."}}}, None),
        ({"responses": {"200": {"content": {"image/png": {}}}}}, None),
    ]
    for operation, expected in cases:
        found = read(operation).get("outputSchema")
        assert (found and list(found["properties"])) == expected


def test_variables_of_the_address_have_their_defaults() -> None:
    servers = [
        {"url": "https://{region}.example/v{n}", "variables": {"region": {"default": "eu"}, "n": {"default": 2}}}
    ]
    assert api_of({**HEAD, "servers": servers}).server == "https://eu.example/v2"


def test_tags_that_differ_only_in_form_are_one_agent() -> None:
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


HEAD_31 = {"openapi": "3.1.0", "info": {"title": "T"}}


def read_api(paths: Any, **more: Any) -> Api:
    return api_of({**HEAD_31, "paths": paths, **more})


def entries(found: Api) -> dict[str, Any]:
    return {entry["name"]: entry for agent in found.agents.values() for entry in agent.entries}


def with_body(schema: Any) -> dict[str, Any]:
    content = {"application/json": {"schema": schema}}
    return {"/x": {"post": {"operationId": "x", "requestBody": {"content": content}}}}


def ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def depth_of(value: Any) -> int:
    return 1 + max((depth_of(part) for part in value.values()), default=0) if isinstance(value, dict) else 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b'{"swagger": "2.0", "paths": {}}', "Swagger 2.0 is not read"),
        (b'{"openapi": "2.5.0"}', "OpenAPI 2.5.0 is not read: give a specification of version 3.0 or 3.1"),
        (b'{"openapi": "4.0.0"}', "OpenAPI 4.0.0 is not read"),
        (b'{"openapi": "3.0.0", "paths": []}', "'paths' must be an object"),
        (b'{"openapi": "3.0.0"', "not valid JSON"),
        (b"[1]", "should be an object with 'openapi' and 'paths'"),
        (b"", "the file is empty"),
        (b"openapi: 3.0.0\n  info: [", "not valid YAML"),
        (b"openapi: 3.0.0\nx: !!python/object/apply:os.system [ls]", "not valid YAML"),
        (b"openapi: 3.0.0\nx: &a [*a]", "aliases expand to too many nodes"),
        (b"openapi: 3.0.0\nx: *nothing", "not valid YAML"),
        (b'{"openapi": "3.0.0", "paths": ' + b'{"a": ' * 100_000, "not valid JSON"),
        (b"openapi: 3.0.0\nx: " + b"[" * 5_000, "nested more than 200 levels deep"),
        (b"\xff\xfeopenapi: 3.0.0", "not "),
        (b" " * 64_000_001, "larger than 64 MB"),
    ],
    ids=lambda value: value[:25] if isinstance(value, bytes) else "",
)
def test_a_text_that_cannot_be_read_is_named_with_the_reason(text: bytes, words: str) -> None:
    with pytest.raises(CatalogError) as caught:
        parse_specification(text, "spec")
    assert words in str(caught.value)
    assert str(caught.value).startswith("spec: ")


def test_aliases_that_double_at_each_level_are_refused() -> None:
    lines = ["openapi: 3.0.0", "a0: &a0 [lol, lol]"]
    lines += [f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]" for level in range(1, 12)]
    for merge in ("", "\nx: {<<: [*a3, *a4]}"):
        with pytest.raises(CatalogError, match=r"aliases expand to too many nodes|not valid YAML"):
            parse_specification(("\n".join(lines) + merge).encode(), "spec")


def test_yaml_is_read_with_the_scalars_of_json() -> None:
    text = b"openapi: 3.0.0\nbase: &base {a: no}\n"
    text += b"x: {<<: *base, on: 2020-01-01, 200: yes, n: 1.5, t: true, z: null, e: 1e3}"
    assert parse_specification(text, "spec")["x"] == {
        "a": "no", "on": "2020-01-01", "200": "yes", "n": 1.5, "t": True, "z": None, "e": 1000.0,
    }  # fmt: skip


def test_a_configuration_is_no_specification_even_if_it_names_one(tmp_path: Path) -> None:
    entries = {"a": {"openapi": "3.0-shop.yaml"}, "b": {"openapi": "3shop.json"}}
    for name, text in (("mcp.yaml", "mcpServers: {}"), ("mcp.json", json.dumps({"mcpServers": entries}))):
        (tmp_path / name).write_text(text)
        assert not is_specification(tmp_path / name)


def test_swagger_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    file = tmp_path / "a b.yml"
    file.write_text("swagger: '2.0'\npaths: {}\n")
    with pytest.raises(CatalogError, match=r"Swagger 2\.0 is not read: convert it") as caught:
        load(file)
    command = f"`npx swagger2openapi {shlex.quote(str(file))} --outfile openapi.json`, and give the new file"
    assert command in str(caught.value)


def test_a_recursive_schema_ends_in_any_value() -> None:
    node = {"type": "object", "properties": {"name": {"type": "string"}, "next": ref("N")}}
    found = read_api(with_body(ref("N")), components={"schemas": {"N": node}})
    schema = entries(found)["x"]["inputSchema"]
    assert "$ref" not in json.dumps(schema)
    last = {"type": "object", "properties": {"name": {"type": "string"}, "next": {}}}
    assert schema["properties"]["next"]["properties"]["next"] == last
    assert found.problems == ()
    found = read_api(with_body(ref("A")), components={"schemas": {"A": ref("B"), "B": ref("A")}})
    assert entries(found)["x"]["inputSchema"]["properties"]["body"] == {}


@pytest.mark.parametrize("broken", [[], [ref("None")], [{"$ref": "other.json"}]])
def test_response_records_below_the_depth_limit_keep_the_names_of_their_values(broken: list[Any]) -> None:
    song = {"properties": {"id": {"type": "string"}, "artists": {"type": "array", "items": ref("A")}}}
    schemas: dict[str, Any] = {
        "A": {"allOf": [ref("A"), *broken, ref("S")]},
        "S": song,
        **{f"P{n}": {"properties": {"next": ref(f"P{n + 1}")}} for n in range(2)},
        "P2": {"properties": {"items": {"type": "array", "items": ref("A")}}},
    }
    content = {"application/json": {"schema": ref("P0")}}
    paths = {"/x": {"get": {"operationId": "x", "responses": {"200": {"content": content}}}}}
    schema = entries(read_api(paths, components={"schemas": schemas}))["x"]["outputSchema"]
    assert '"items": {"type": "array", "items": {"properties": {"id": {}}}}' in json.dumps(schema)


def test_schemas_that_double_at_each_level_or_are_nested_without_end_stay_small() -> None:
    schemas = {
        f"S{level}": {
            "type": "object",
            "properties": {f"p{side}": ref(f"S{level + 1}") for side in range(20)},
            "allOf": [ref(f"S{level + 1}")] * 10,
            "oneOf": [ref(f"S{level + 1}")] * 10,
        }
        for level in range(30)
    }
    found = read_api(with_body(ref("S0")), components={"schemas": {**schemas, "S30": {}}})
    assert len(json.dumps(entries(found)["x"])) < 20_000
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(400):
        schema = {"type": "array", "items": schema}
    assert depth_of(entries(read_api(with_body(schema)))["x"]) < 60


def test_a_large_schema_keeps_names_and_types_of_its_properties() -> None:
    properties = {f"p{number}": {"type": "string", "description": "long " * 100} for number in range(100)}
    found = entries(read_api(with_body({"type": "object", "properties": properties, "required": ["p0"]})))["x"]
    assert list(found["inputSchema"]["properties"]) == list(properties)
    flood = {f"p{number}": {"type": "string"} for number in range(10_000)}
    schema = entries(read_api(with_body({"type": "object", "properties": flood})))["x"]["inputSchema"]
    assert len(schema["properties"]) == 150


def test_nested_fields_of_a_large_schema_stay_as_far_as_they_fit() -> None:
    inner = {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}, "deep": {}}}}
    wide = {"type": "object", "properties": {f"q{number}": {"type": "string"} for number in range(200)}}
    schema = entries(read_api(with_body({"type": "object", "properties": {"wide": wide, "users": inner}})))["x"]
    found = schema["inputSchema"]["properties"]
    assert found["wide"] == {"type": "object"}
    assert list(found["users"]["items"]["properties"]) == ["id", "deep"]


def test_an_operation_with_a_reference_that_is_not_local_is_left_out() -> None:
    cases = [
        ("other.yaml#/A", "is in another document, which is not read: bundle the specification into one file"),
        *((other, "is in another document") for other in ("https://evil.example/a", "file:///a", "//evil", 3)),
        *((nowhere, "points to nothing: correct it") for nowhere in ("#/components/schemas/Nowhere", "#nowhere")),
    ]
    for reference, words in cases:
        paths = {**with_body({"properties": {"a": {"$ref": reference}}}), "/y": {"get": {"operationId": "y"}}}
        found = read_api(paths)
        assert set(entries(found)) == {"y"}
        (problem,) = found.problems
        assert problem.startswith("POST /x: ")
        assert words in problem
        assert problem.endswith("1 operation is left out")


@pytest.mark.parametrize("name", ["a\0", "\ud800"])
def test_a_name_that_no_argument_can_have_is_a_problem(name: str) -> None:
    of_query = {"/x": {"get": {"parameters": [{"name": name, "in": "query"}]}}}
    for paths in (of_query, with_body({"properties": {name: {}}})):
        found = read_api({**paths, "/y": {"get": {"operationId": "y"}}})
        assert set(entries(found)) == {"y"}
        assert any(words in found.problems[0] for words in (f"be named {name!r}: correct it", "name: Input should be"))


def test_an_operation_with_unnamed_or_endless_parameters_is_a_problem() -> None:
    unnamed = [{"name": " ", "in": "query"}, {"name": "a", "in": "query"}]
    found = read_api({"/x": {"get": {"parameters": unnamed}}})
    assert list(entries(found)["get_x"]["inputSchema"]["properties"]) == ["a"]
    itself = {"$ref": "#/components/parameters/P"}
    found = read_api({"/x": {"get": {"parameters": [itself]}}}, components={"parameters": {"P": itself}})
    assert "refers to itself" in found.problems[0]


def test_problems_of_one_kind_are_reported_once() -> None:
    paths = {f"/p{number}": {"get": {"parameters": [{"in": "body", "name": "a"}]}} for number in range(50)}
    (problem,) = read_api(paths).problems
    assert problem.startswith("GET /p0, GET /p1, GET /p2 and 47 more: Parameter: in: ")
    assert problem.endswith("50 operations are left out")


def test_a_path_that_leaves_the_address_of_the_server_is_left_out() -> None:
    cases = [
        "x",
        "/../admin",
        "/a/../../b",
        "/a\\..\\b",
        "/a/%2e%2E/b",
        "/a%2f.%252e/b",
        "@evil.example/x",
        "https://evil.example/",
    ]
    for path in cases:
        found = read_api({path: {"get": {"operationId": "x"}}})
        assert entries(found) == {}
        assert "the path must start with '/' and have no '..'" in found.problems[0]


def test_an_operation_of_the_wrong_form_is_a_problem_and_the_rest_go_on() -> None:
    cases = [
        None,
        3,
        [],
        {"parameters": 3},
        {"parameters": [3]},
        {"parameters": [{"name": "a"}]},
        {"parameters": [{"name": "X a\r\n", "in": "header", "schema": {}}]},
        {"tags": 3},
        {"operationId": []},
        {"responses": []},
    ]
    for operation in cases:
        found = read_api({"/x": {"get": operation}, "/y": {"get": {"operationId": "y"}}, "/z": 3})
        assert set(entries(found)) == {"y"}
        assert len(found.problems) == 1


def test_a_schema_of_the_wrong_form_allows_any_value() -> None:
    cases = [None, 3, [], True, {"type": 3}, {"properties": []}, {"required": True}, {"items": []}]
    for schema in cases:
        found = entries(read_api(with_body(schema)))["x"]["inputSchema"]
        assert set(found["properties"]) == {"body"}


def animals(**discriminator: Any) -> dict[str, Any]:
    """A pet with a kind; cats and dogs extend it, and puppies are dogs."""
    pet = {
        "type": "object",
        "properties": {"kind": {"type": "string"}, "name": {"type": "string"}},
        "required": ["kind"],
        "discriminator": {"propertyName": "kind", **discriminator},
    }

    def extends(base: str, **properties: Any) -> dict[str, Any]:
        more = {"type": "object", "properties": properties, "required": list(properties)}
        return {"allOf": [{"$ref": f"#/components/schemas/{base}"}, more]}

    return {
        "schemas": {
            "Pet": pet,
            "Cat": extends("Pet", claws={"type": "integer"}),
            "Dog": extends("Pet", bark={"type": "string"}),
            "Puppy": extends("Dog", age={"type": "integer"}),
            "Home": {"type": "object", "properties": {"pet": {"$ref": "#/components/schemas/Pet"}}},
        }
    }


MAPPING = {"cat": "#/components/schemas/Cat", "dog": "Dog"}


@pytest.mark.parametrize(
    ("mapping", "kinds"),
    [({}, {"Cat", "Dog", "Puppy", "Pet"}), ({"mapping": MAPPING}, {"cat", "dog", "Puppy"})],
)
@pytest.mark.parametrize("schema", ["Pet", "Home"])
def test_subtypes_of_a_discriminator_are_in_the_schema_that_a_model_sees(
    schema: str, mapping: dict[str, Any], kinds: set[str]
) -> None:
    components = animals(**mapping)
    entry = read(body({"$ref": f"#/components/schemas/{schema}"}), method="post", components=components)
    seen = model_schema(entry["inputSchema"]).schema["properties"]
    pet = seen["body"] if schema == "Pet" else seen["pet"]
    assert list(pet["properties"]) == ["kind", "name"]
    properties = {one["properties"]["kind"]["enum"][0]: list(one["properties"]) for one in pet["anyOf"]}
    assert properties.keys() == kinds
    assert properties["Puppy"] == ["kind", "bark", "age"]
    cat, dog = ("cat", "dog") if mapping else ("Cat", "Dog")
    valid = Draft202012Validator(pet).is_valid
    assert valid({"kind": cat, "name": "Tom", "claws": 18})
    assert valid({"kind": "Puppy", "bark": "wuff", "age": 1})
    assert not valid({"kind": cat, "name": "Tom"})
    assert not valid({"kind": dog, "claws": 18})
    assert not valid({"claws": 18})


def test_a_subtype_is_not_one_of_its_siblings() -> None:
    entry = read(body({"$ref": "#/components/schemas/Cat"}), method="post", components=animals(mapping=MAPPING))
    assert list(entry["inputSchema"]["properties"]) == ["kind", "name", "claws"]


def test_each_alternative_of_a_discriminator_names_its_value() -> None:
    refs = [{"$ref": f"#/components/schemas/{name}"} for name in ("Cat", "Dog")]
    schema = {"oneOf": refs, "discriminator": {"propertyName": "kind", "mapping": MAPPING}}
    entry = read(body(schema), method="post", components=animals(mapping=MAPPING))
    kinds = [one["properties"]["kind"]["const"] for one in entry["inputSchema"]["properties"]["body"]["anyOf"]]
    assert kinds == ["cat", "dog"]


def test_subtypes_in_another_document_leave_the_schema_open() -> None:
    components = animals(mapping={"cat": "cats.yaml#/Cat"})
    entry = read(body({"$ref": "#/components/schemas/Pet"}), method="post", components=components)
    assert Draft202012Validator(entry["inputSchema"]).is_valid({"kind": "cat", "claws": 3})
