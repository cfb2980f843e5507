"""JSON Schemas: their keywords, their fields, and what of them is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from callsheet.graphs.text.sanitizing import LONGEST_TEXT, hidden_in, one_line, shown, strings_in

LARGEST_SCHEMA = 65_536
_TEXTS = frozenset({"title", "description", "$comment"})
_LABELS = frozenset({"title", "enumNames", "enumTitles"})
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


def pointed(reference: object, whole: Any) -> Any:
    """What a reference within a document points to (RFC 6901), or ``LookupError``."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        raise LookupError(reference)
    part = whole
    for name in unquote(reference).split("/")[1:]:
        key = name.replace("~1", "/").replace("~0", "~")
        try:
            part = part[int(key)] if isinstance(part, list) else part[key]
        except (LookupError, ValueError, TypeError) as error:
            raise LookupError(reference) from error
    return part


def shown_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON Schema in the form that a model is shown.

    Titles and descriptions are sanitized by ``shown``. Any other string (a name, or a value of ``enum``, ``default``,
    ``pattern``, ``required`` ...) that contains hidden characters or is too long is removed, not changed, because tools
    compare it exactly. Of a schema above 64 kB, only names, types and required marks of the parameters remain.
    """
    cleaned: dict[str, Any] = _shown(dict(schema))
    if len(json.dumps(cleaned, ensure_ascii=False, default=str)) <= LARGEST_SCHEMA:
        return cleaned
    properties = cleaned.get("properties")
    types = {
        name: {"type": spec["type"]} if isinstance(spec, dict) and isinstance(spec.get("type"), str | list) else {}
        for name, spec in (properties.items() if isinstance(properties, dict) else ())
    }
    return {"type": "object", "properties": types, "required": cleaned.get("required", [])}


def shown_form(form: Mapping[str, Any]) -> dict[str, Any]:
    """``shown_schema`` for the form of a question: what names a field or a choice has no line breaks.

    Otherwise it could imitate another field, or our own words. A field or a choice whose own name has some is removed.
    """
    found: dict[str, Any] = _in_lines(shown_schema(form))
    return found


def _in_lines(value: Any, key: str = "") -> Any:
    match value:
        case str() if key in _LABELS:
            return " ".join(value.split())
        case dict():
            names = [name for name in value if key not in NAMED or one_line(name) == name]
            return {name: _in_lines(value[name], name if key not in NAMED else "") for name in names}
        case list():
            return [_in_lines(item, key) for item in value if key != "enum" or one_line(str(item)) == str(item)]
        case _:
            return value


def _shown(value: Any, key: str = "") -> Any:
    """What is shown of the value of a keyword; without one, of a schema or a list of them."""
    match value:
        case str() if key in _TEXTS:
            return shown(value)
        case dict() if key in NAMED:
            return {name: _shown(part) for name, part in value.items() if not _hides(str(name))}
        case dict() if key not in _VALUES:
            kept = {name: item for name, item in value.items() if not (_hides(str(name)) or _is_removed(name, item))}
            return {name: _shown(item, name) for name, item in kept.items()}
        case list() if key in _LISTS:
            return [item for item in value if not _hides(item)]
        case list() if key not in _VALUES:
            return [_shown(item) for item in value if not (isinstance(item, str) and _hides(item))]
        case _:
            return value


def _is_removed(key: str, value: Any) -> bool:
    if key in _LISTS:
        return isinstance(value, list) and bool(value) and all(map(_hides, value))
    return (key in _VALUES or (isinstance(value, str) and key not in _TEXTS)) and _hides(value)


def _hides(value: Any) -> bool:
    """Whether a value contains hidden characters, or a text that is too long to be shown."""
    return any(len(text) > LONGEST_TEXT or hidden_in(text) for text in strings_in(value))


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
    for field in _leaves(schema, schema, (), required=True, many=False):
        if len(leaves) == _MOST:
            break
        leaves.setdefault(field.path, field)
    return tuple(leaves.values())


def _leaves(
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
                yield from _leaves(part, root, (*path, name), required=required and name in names, many=many)
    elif path and forms:
        yield _leaf(forms, path, required=required, many=many)


def _forms(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """The schema, its references, its alternatives and the items of its lists, as objects."""
    if not isinstance(schema, dict) or depth > 2 * _DEEPEST:
        return
    yield schema
    if isinstance(reference := schema.get("$ref"), str) and reference != "#":
        with suppress(LookupError):
            yield from _forms(pointed(reference, root), root, depth + 1)
    for key in _ALTERNATIVES:
        for part in schema[key] if isinstance(schema.get(key), list) else ():
            yield from _forms(part, root, depth + 1)
    if isinstance(schema.get("items"), dict):
        yield from _forms(schema["items"], root, depth + 1)


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
