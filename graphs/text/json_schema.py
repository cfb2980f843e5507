"""Reads JSON Schemas: their keywords, their fields, and the form in which a model sees them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote

from callsheet.graphs.text.hidden import LONGEST_TEXT, escaped_line, hidden_in, shown
from callsheet.graphs.text.unicode import strings_in

JsonObject: TypeAlias = dict[str, Any]
"""An object of parsed JSON, whose values may be of any type."""
LARGEST_SCHEMA = 65_536
"""Maximum size of a schema that is shown completely, in characters."""
_TEXTS = frozenset({"title", "description", "$comment"})
_LABELS = frozenset({"title", "enumNames", "enumTitles"})
_LISTS = frozenset({"enum", "examples"})
_VALUES = frozenset({"default", "const", "example"})
NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})


def keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yields each keyword of a schema and its subschemas, with its value; names of properties are skipped."""
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


def resolve_pointer(reference: object, whole: Any) -> Any:
    """Returns the part of a document to which a reference points.

    Source: JSON Pointer, RFC 6901.

    Raises:
        LookupError: It points to another document, or to nothing.
    """
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


def shown_schema(schema: Mapping[str, Any]) -> JsonObject:
    """Returns a JSON Schema in the form that a model sees.

    Titles and descriptions are sanitized by ``shown``. Any other string (a name, or a value of ``enum``, ``default``,
    ``pattern``, ``required`` ...) that contains hidden characters or is too long is removed instead of changed, because
    tools compare it exactly. A schema of more than 64 kB is reduced to the names, types and required marks of its
    parameters.
    """
    cleaned: JsonObject = _shown(dict(schema))
    if len(json.dumps(cleaned, ensure_ascii=False, default=str)) <= LARGEST_SCHEMA:
        return cleaned
    types = JsonObject()
    properties = cleaned.get("properties")
    if isinstance(properties, dict):
        for name, spec in properties.items():
            has_type = isinstance(spec, dict) and isinstance(spec.get("type"), str | list)
            types[name] = {"type": spec["type"]} if has_type else {}
    return {"type": "object", "properties": types, "required": cleaned.get("required", [])}


def shown_form(form: Mapping[str, Any]) -> JsonObject:
    """Returns the schema of a form for people, sanitized by ``shown_schema``, without line breaks in labels.

    With line breaks, a label could imitate another field or our own words. A field or a choice whose own name has line
    breaks is removed.
    """
    result: JsonObject = _in_lines(shown_schema(form))
    return result


def _in_lines(value: Any, key: str = "") -> Any:
    """Returns the value of a keyword without line breaks in labels, names and choices."""
    match value:
        case str() if key in _LABELS:
            return " ".join(value.split())
        case dict() if key in NAMED:
            return {name: _in_lines(part) for name, part in value.items() if escaped_line(name) == name}
        case dict():
            return {name: _in_lines(item, name) for name, item in value.items()}
        case list() if key == "enum":
            return [_in_lines(item, key) for item in value if escaped_line(str(item)) == str(item)]
        case list():
            return [_in_lines(item, key) for item in value]
        case _:
            return value


def _shown(value: Any, key: str = "") -> Any:
    """Returns what is shown of the value of a keyword; without one, of a schema or a list of them."""
    if isinstance(value, str) and key in _TEXTS:
        return shown(value)
    if key in _VALUES:
        return value  # tools compare it exactly; one that hides something was removed with its keyword
    if isinstance(value, dict):
        return _shown_names(value) if key in NAMED else _shown_keywords(value)
    if isinstance(value, list) and key in _LISTS:
        return [item for item in value if not _hides(item)]
    if isinstance(value, list):
        return [_shown(item) for item in value if not (isinstance(item, str) and _hides(item))]
    return value


def _shown_names(schemas: Mapping[str, Any]) -> JsonObject:
    """Returns what is shown of schemas by name, as of ``properties``."""
    return {name: _shown(schema) for name, schema in schemas.items() if not _hides(str(name))}


def _shown_keywords(schema: Mapping[str, Any]) -> JsonObject:
    result = {}
    for key, value in schema.items():
        if not _hides(str(key)) and not _is_removed(key, value):
            result[key] = _shown(value, key)
    return result


def _is_removed(key: str, value: Any) -> bool:
    """Returns whether a keyword is left out, because its value hides something and must not be changed."""
    if key in _LISTS:
        return isinstance(value, list) and bool(value) and all(map(_hides, value))
    return (key in _VALUES or (isinstance(value, str) and key not in _TEXTS)) and _hides(value)


def _hides(value: Any) -> bool:
    """Returns whether a value contains hidden characters, or a text that is too long to be shown."""
    return any(len(text) > LONGEST_TEXT or hidden_in(text) for text in strings_in(value))


_DEEPEST = 5
"""Objects in each other down to which fields are read."""
_MOST = 120
"""Fields of one schema."""
_ALTERNATIVES = ("allOf", "anyOf", "oneOf")


@dataclass(frozen=True, slots=True)
class Field:
    """A value in an object schema, at any depth.

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
        """Returns the last name of the path."""
        return self.path[-1]


def fields_of(schema: Mapping[str, Any]) -> tuple[Field, ...]:
    """Returns the leaves of an object schema in order, at most 120 and five objects deep.

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
    """Yields the leaves of a schema at this path; of several forms of an object, those of each."""
    forms = list(_forms(schema, root))
    many = many or any("items" in form for form in forms)
    objects = [form for form in forms if isinstance(form.get("properties"), dict) and form["properties"]]
    if objects and len(path) < _DEEPEST:
        for form in objects:
            declared = form.get("required")
            names = set(map(str, declared)) if isinstance(declared, list) else set[str]()
            for name, part in form["properties"].items():
                yield from _leaves(part, root, (*path, name), required=required and name in names, many=many)
    elif path and forms:
        yield _leaf(forms, path, required=required, many=many)


def _forms(schema: Any, root: Mapping[str, Any], depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yields the schema, its references, its alternatives and the items of its lists, as objects."""
    if not isinstance(schema, dict) or depth > 2 * _DEEPEST:
        return
    yield schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference != "#":
        with suppress(LookupError):
            yield from _forms(resolve_pointer(reference, root), root, depth + 1)
    for key in _ALTERNATIVES:
        parts = schema.get(key)
        if isinstance(parts, list):
            for part in parts:
                yield from _forms(part, root, depth + 1)
    if isinstance(schema.get("items"), dict):
        yield from _forms(schema["items"], root, depth + 1)


def _leaf(forms: list[Mapping[str, Any]], path: tuple[str, ...], *, required: bool, many: bool) -> Field:
    """Returns one value with what its forms say together; its description is the first."""
    types = set[str]()
    descriptions = list[str]()
    for form in forms:
        types.update(_types(form.get("type")))
        description = form.get("description")
        if isinstance(description, str) and description:
            descriptions.append(description)
    types.discard("null")
    return Field(
        path=path,
        types=frozenset(types),
        description=descriptions[0] if descriptions else "",
        required=required,
        closed=types in ({"boolean"}, {"bool"}) or any("enum" in form or "const" in form for form in forms),
        default=any(form.get("default") is not None for form in forms),
        many=many,
    )


def _types(declared: Any) -> list[str]:
    if isinstance(declared, str):
        return [declared]
    return [name for name in declared if isinstance(name, str)] if isinstance(declared, list) else []
