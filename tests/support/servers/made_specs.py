"""OpenAPI specifications of any size, made by a seed."""

from __future__ import annotations

import random
from typing import Any

_NOUNS = "order customer invoice parcel ticket device report account booking message folder member".split()
_WORDS = "the current date amount of a named thing that is kept for each one and shown when somebody asks".split()
_KINDS: tuple[dict[str, Any], ...] = (
    {"type": "string"},
    {"type": "integer", "format": "int64"},
    {"type": "boolean", "nullable": True},
    {"type": "string", "format": "date-time"},
    {"type": "array", "items": {"type": "string"}},
)


def made_spec(operations: int, *, words: int = 12, seed: int = 7) -> dict[str, Any]:
    """A specification with so many operations, whose schemas refer to each other in cycles.

    Args:
        operations: Their number; one in five is a POST with a body.
        words: Words of each description, which decide on the size.
        seed: The same seed gives the same specification.
    """
    chance = random.Random(seed)
    schemas = {f"{noun}{number}": {} for number in range(max(1, operations // 20)) for noun in _NOUNS}
    names = list(schemas)

    def text() -> str:
        return " ".join(chance.choices(_WORDS, k=words)).capitalize() + "."

    for name in names:
        properties: dict[str, Any] = {
            f"{word}_{place}": {**chance.choice(_KINDS), "description": text()}
            for place, word in enumerate(chance.choices(_WORDS, k=12))
        }
        links = {f"link_{place}": {"$ref": f"#/components/schemas/{chance.choice(names)}"} for place in range(2)}
        schemas[name] = {"type": "object", "properties": {**properties, **links}, "description": text()}
    paths: dict[str, Any] = {}
    for number in range(operations):
        noun, schema = _NOUNS[number % len(_NOUNS)], {"$ref": f"#/components/schemas/{chance.choice(names)}"}
        content = {"application/json": {"schema": schema}}
        operation: dict[str, Any] = {
            "operationId": f"{noun}_{number}",
            "tags": [noun],
            "summary": text(),
            "description": text() + text(),
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}},
                {"name": "limit", "in": "query", "schema": {"type": "integer"}, "description": text()},
            ],
            "responses": {"200": {"description": text(), "content": content}},
        }
        method = "post" if number % 5 == 0 else "get"
        if method == "post":
            operation["requestBody"] = {"content": content}
        paths[f"/{noun}s/{number}/{{id}}"] = {method: operation}
    info = {"title": "Made", "version": "1"}
    servers = [{"url": "https://made.example"}]
    return {"openapi": "3.0.3", "info": info, "servers": servers, "paths": paths, "components": {"schemas": schemas}}
