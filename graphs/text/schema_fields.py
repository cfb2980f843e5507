"""The values of an object schema, with their paths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_DEEPEST, _MOST = 5, 120
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")


@dataclass(frozen=True, slots=True)
class Field:
    """One value of an object schema.

    Attributes:
        path: Names from the root to the value; items of a list add no name.
        types: Its JSON Schema types; empty if the schema has none.
        required: Whether it and all its parents are required.
        closed: Whether its values are fixed: an enum, a constant or a boolean.
        default: Whether it has a default other than null.
        many: Whether it is in a list.
    """

    path: tuple[str, ...]
    types: frozenset[str] = frozenset()
    description: str = ""
    required: bool = False
    closed: bool = False
    default: bool = False
    many: bool = False

    @property
    def name(self) -> str:
        """Its own name."""
        return self.path[-1]


def fields_of(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """The leaves of an object schema in order, at most 120 and five objects deep.

    Local references are followed, alternatives are merged, and invalid parts are skipped. An object without declared
    properties is a leaf.
    """
    leaves: dict[tuple[str, ...], Field] = {}
    for field in _walk(schema, schema, (), required=True, many=False):
        if len(leaves) == _MOST:
            break
        leaves.setdefault(field.path, field)
    return tuple(leaves.values())


def _walk(
    schema: Any, root: Mapping[str, Any], path: tuple[str, ...], *, required: bool, many: bool
) -> Iterator[Field]:
    forms = list(_forms(schema, root))
    many = many or any("items" in form for form in forms)
    holders = [form for form in forms if isinstance(form.get("properties"), dict) and form["properties"]]
    if holders and len(path) < _DEEPEST:
        for form in holders:
            declared = form.get("required")
            names = set(map(str, declared)) if isinstance(declared, list) else set()
            for name, part in form["properties"].items():
                yield from _walk(part, root, (*path, name), required=required and name in names, many=many)
    elif path and forms:
        yield _leaf(forms, path, required=required, many=many)


def _forms(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The schema, its references, its alternatives and the items of its lists, as objects."""
    if not isinstance(schema, dict) or depth > 2 * _DEEPEST:
        return
    yield schema
    if isinstance(reference := schema.get("$ref"), str):
        yield from _forms(_referred(reference, root), root, depth + 1)
    for key in _ALTERNATIVES:
        for part in schema[key] if isinstance(schema.get(key), list) else ():
            yield from _forms(part, root, depth + 1)
    if isinstance(schema.get("items"), dict):
        yield from _forms(schema["items"], root, depth + 1)


def _referred(reference: str, root: Mapping[str, Any]) -> Any:
    if not reference.startswith("#/"):
        return None
    part: Any = root
    for name in reference[2:].split("/"):
        part = part.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(part, dict) else None
    return part


def _leaf(forms: list[Mapping[str, Any]], path: tuple[str, ...], *, required: bool, many: bool) -> Field:
    types = {name for form in forms for name in _types(form.get("type"))} - {"null"}
    return Field(
        path=path,
        types=frozenset(types),
        description=next((text for form in forms if isinstance(text := form.get("description"), str) and text), ""),
        required=required,
        closed=types in ({"boolean"}, {"bool"}) or any("enum" in form or "const" in form for form in forms),
        default=any(form.get("default") is not None for form in forms),
        many=many,
    )


def _types(declared: Any) -> list[str]:
    if isinstance(declared, str):
        return [declared]
    return [name for name in declared if isinstance(name, str)] if isinstance(declared, list) else []
