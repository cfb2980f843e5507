"""Specifications of every sort, and arguments for their tools: a clear error, or requests to the API and no other."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, strategies as st

from callsheet.agents.calls.outcome import Fault
from callsheet.agents.servers.api_requests import api_request
from callsheet.graphs import CatalogError
from callsheet.graphs.catalog.formats.manifests import tool_from_entry
from callsheet.graphs.catalog.formats.openapi_documents import parse_specification
from callsheet.graphs.catalog.formats.openapi_operations import META, HttpCall, api_of
from fuzzing import fuzzed, mutated, values

FORM = {
    "schema": {"properties": {"name": {"type": "string"}, "address": {"$ref": "#/components/schemas/Pet"}}},
    "encoding": {"address": {"style": "deepObject", "explode": True}, "name": {"contentType": "text/plain"}},
}
RICH = {
    "openapi": "3.1.0",
    "info": {"title": "Pets", "description": "Keeps pets."},
    "tags": [{"name": "pets", "description": "Pets."}],
    "servers": [{"url": "https://{host}/v1", "variables": {"host": {"default": "pets.test"}}}],
    "paths": {
        "/pets/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}],
            "get": {
                "operationId": "readPet",
                "tags": ["pets"],
                "parameters": [
                    {"name": "Start", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                    {"name": "Start<", "in": "query", "style": "pipeDelimited", "schema": {}},
                    {"name": "Start", "in": "header", "explode": True, "schema": {"type": "object"}},
                    {"name": "seen", "in": "cookie", "content": {"application/json": {"schema": {}}}},
                ],
                "responses": {
                    "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}}
                },
            },
            "patch": {"requestBody": {"content": {"application/x-www-form-urlencoded": FORM}}},
            "put": {"requestBody": {"required": True, "content": {"multipart/form-data": FORM}}},
        },
        "/pets": {
            "post": {
                "operationId": "keepPet",
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}}},
            }
        },
    },
    "components": {
        "schemas": {
            "Pet": {
                "type": "object",
                "properties": {"kind": {"type": "string"}, "id": {"readOnly": True}},
                "discriminator": {"propertyName": "kind", "mapping": {"cat": "Cat"}},
                "required": ["kind"],
            },
            "Cat": {"allOf": [{"$ref": "#/components/schemas/Pet"}, {"properties": {"claws": {"type": "integer"}}}]},
            "Pack": {"oneOf": [{"$ref": "#/components/schemas/Pack"}, {"$ref": "#/components/schemas/Cat"}]},
        }
    },
}


@given(document=mutated(RICH, most=4), given_values=st.lists(values, min_size=1, max_size=6))
def read(document: Any, given_values: list[Any]) -> None:
    try:
        found = api_of(parse_specification(json.dumps(document).encode(), "spec"))
    except CatalogError:
        return
    entries = [entry for agent in found.agents.values() for entry in agent.entries]
    assert len({entry["name"] for entry in entries}) == len(entries)
    for entry in entries:
        try:
            tool = tool_from_entry("pets", entry)
        except CatalogError:
            continue
        names = tool.input_schema["properties"]
        arguments = {name: given_values[number % len(given_values)] for number, name in enumerate(names)}
        try:
            request = api_request(HttpCall(**entry["_meta"][META]), "https://pets.test/v1", arguments)
        except Fault:
            continue
        assert request.url.startswith("https://pets.test/v1/")
        assert request.url.isascii()
        assert not any(part in (".", "..") for part in request.url.partition("?")[0].split("/"))
        assert not any(sign in value for value in request.headers.values() for sign in b"\r\n\0")


def test_every_specification_is_refused_or_calls_its_own_api() -> None:
    fuzzed(150)(read)()
