"""The document of an OpenAPI specification, and its schemas without references, of bounded depth and size."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.manifests import parse_json, read_yaml
from callsheet.graphs.text.json_schema import pointed
from callsheet.graphs.text.regex import linear
from callsheet.graphs.text.regular_files import read_regular

LARGEST = 64_000_000
"""Bytes of the largest specification that is read."""
_VERSIONED = linear(
    r"""(?m)(?:^|[{,\s])["']?(?:openapi|swagger)["']?\s*:\s*["']?\d+\.\d+(?:\.\d+)?["']?\s*(?:[,}#]|$)"""
)
_YAML = (".yaml", ".yml")


def is_specification(path: Path) -> bool:
    """Whether a file may be an OpenAPI specification: ``parsed`` says for sure."""
    if path.suffix.lower() not in (".json", *_YAML):
        return False
    try:
        return _VERSIONED.search(read_regular(path).decode("utf-8", "replace")) is not None
    except OSError:
        return False  # whoever reads it next says why it cannot be read


def parsed(text: bytes, where: str) -> dict[str, Any]:
    """The document of a specification; ``CatalogError``: it is too large, malformed, or of another version."""
    if len(text) > LARGEST:
        raise CatalogError(f"{where}: larger than {LARGEST // 1_000_000} MB: leave out what is not needed")
    is_json = text.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{")
    document = parse_json(text, where) if is_json else read_yaml(text, where)
    if not isinstance(document, dict):
        raise CatalogError(f"{where}: not an OpenAPI specification: it should be an object with 'openapi' and 'paths'")
    if "swagger" in document:
        command = f"npx swagger2openapi {shlex.quote(where)} --outfile openapi.json"
        cure = f"convert it to OpenAPI 3, for example with `{command}`, and give the new file"
        raise CatalogError(f"{where}: Swagger {document['swagger']} is not read: {cure}")
    version = str(document.get("openapi"))
    if not version.startswith(("3.0", "3.1")):
        raise CatalogError(f"{where}: OpenAPI {version} is not read: give a specification of version 3.0 or 3.1")
    if not isinstance(document.get("paths", {}), dict):
        raise CatalogError(f"{where}: 'paths' must be an object of operations by path")
    return document


def object_of(value: Any) -> dict[str, Any]:
    """The value if it is an object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """The value if it is a list, otherwise an empty one."""
    return value if isinstance(value, list) else []


_MOST_HOPS, _LONGEST = 10, 200

Direction = Literal["readOnly", "writeOnly"]
"""Properties with this mark are left out: ``readOnly`` of a request, ``writeOnly`` of a response."""
_DEPTHS = (3, 2, 1)
_DEEPEST = 40
_MOST_NAMES, _MOST_SUBTYPES = 12, 50
_COMPOSED = frozenset("$ref properties items allOf oneOf anyOf additionalProperties".split())
_OPEN = frozenset(("discriminator", "patternProperties"))
"""Keywords by which a schema may have further properties, as those of subtypes, whatever ``additionalProperties``."""
_SMALL = 100  # characters of texts that weigh as much as a subschema
_TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
_TEXTS = ("title", "description", "format", "pattern")
_PLAIN = frozenset("default const uniqueItems readOnly writeOnly".split())
_NUMBERS = frozenset(
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems "
    "minProperties maxProperties".split()
)
_Sized = tuple[dict[str, Any], int]


class _Inner(Protocol):
    """Resolves a part of a schema, with its subtypes or without."""

    def __call__(self, schema: Any, *, subtypes: bool = True) -> dict[str, Any]: ...


class _Way(NamedTuple):
    """How a schema is resolved: with at most ``depth`` references in a row, and with its subtypes or without."""

    depth: int
    without: Direction
    subtypes: bool = True


class Document:
    """Resolves references and schemas; schemas that several operations use are resolved once and shared.

    References are followed up to a depth, beyond which, and so in every cycle, a schema is ``{}``: any value. Of a
    response, it still names its properties, as these tell which records it holds. A schema that is too large is
    resolved less deeply. As schemas are approximated, of ``oneOf`` several may fit: it becomes ``anyOf``.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._known: dict[tuple[str, _Way], _Sized] = {}

    def lookup(self, reference: object) -> Any:
        """What a reference points to; ``CatalogError``: it points to another document, or to nothing."""
        named = str(reference)[:_LONGEST]
        if not isinstance(reference, str) or not reference.startswith("#"):
            cure = "bundle the specification into one file, for example with `npx @redocly/cli bundle`"
            raise CatalogError(f"$ref {named!r} is in another document, which is not read: {cure}")
        try:
            return pointed(reference, self._document)
        except LookupError as error:
            raise CatalogError(f"$ref {named!r} points to nothing: correct it") from error

    def followed(self, found: Any) -> Any:
        """An object that is not a schema, with its reference resolved, or ``CatalogError``."""
        for _ in range(_MOST_HOPS):
            if not (isinstance(found, dict) and "$ref" in found):
                return found
            found = self.lookup(found["$ref"])
        raise CatalogError(f"$ref {str(found)[:_LONGEST]!r} refers to itself: correct it")

    def resolved(self, schema: Any, *, without: Direction, most: int) -> dict[str, Any]:
        """A schema on its own, of at most so many subschemas, or ``CatalogError`` for a reference.

        A hundred characters of texts count as a subschema. Of a larger schema, properties have their types only.
        """
        found: dict[str, Any] = {}
        for depth in _DEPTHS:
            found, size = self._sized(schema, _Way(depth, without), 0)
            if size <= most:
                return found
        return _outline(found, most)

    def _sized(self, schema: Any, way: _Way, level: int) -> _Sized:
        """The schema and its size."""
        if not isinstance(schema, dict) or level > _DEEPEST:
            return {}, 1
        if "$ref" not in schema:
            return self._object(schema, way, level)
        found, size = self._target(schema["$ref"], way)
        beside = {key: value for key, value in schema.items() if key in _TEXTS and isinstance(value, str)}
        return ({**found, **beside} if beside else found), size

    def _target(self, reference: Any, way: _Way) -> _Sized:
        target = self.lookup(reference)
        key = (reference, way)
        if key not in self._known and way.depth:
            self._known[key] = self._sized(target, way._replace(depth=way.depth - 1), 0)
        elif key not in self._known:
            names = self._names(target) if way.without == "writeOnly" else []
            found: dict[str, Any] = {"properties": {name: {} for name in names}} if names else {}
            self._known[key] = found, 1 + sum(map(len, names)) // _SMALL
        return self._known[key]

    def _names(self, schema: Any, depth: int = 3) -> list[str]:
        """The first names of properties that hold single values, also of ``allOf``; a wrong reference has none."""
        if depth == 0 or not isinstance(schema, dict):
            return []
        if "$ref" in schema:
            with suppress(CatalogError):
                return self._names(self.lookup(schema["$ref"]), depth - 1)
            return []
        names = [name for part in list_of(schema.get("allOf"))[:_MOST_NAMES] for name in self._names(part, depth - 1)]
        single = object_of(schema.get("properties")).items()
        names += [str(name) for name, part in single if isinstance(part, dict) and not part.keys() & _COMPOSED]
        return list(dict.fromkeys(names))[:_MOST_NAMES]

    def _object(self, schema: Mapping[str, Any], way: _Way, level: int) -> _Sized:
        found, unknown = _keywords(schema), False
        size = 1 + sum(len(found[key]) for key in _TEXTS if key in found) // _SMALL

        def inner(schema: Any, *, subtypes: bool = True) -> dict[str, Any]:
            nonlocal size
            resolved, count = self._sized(schema, way._replace(subtypes=subtypes), level + 1)
            size += count
            return resolved

        properties = schema.get("properties")
        if isinstance(properties, dict):
            parts = {str(name): inner(part) for name, part in properties.items()}
            found["properties"] = {name: part for name, part in parts.items() if part.get(way.without) is not True}
        for key in ("items", "additionalProperties"):
            if isinstance(part := schema.get(key), dict | bool):
                found[key] = inner(part) if isinstance(part, dict) else part
        if alternatives := self._alternatives(schema, inner, subtypes=way.subtypes):
            found["anyOf"] = alternatives
        if isinstance(schema.get("allOf"), list):
            # A subtype that extends a schema is not one of its other subtypes.
            merged = [inner(part, subtypes=False) for part in schema["allOf"]]
            found = _merged([*merged, found])
            unknown = {} in merged  # beyond the depth
        if unknown or schema.keys() & _OPEN:
            found.pop("additionalProperties", None)
        if "required" in found:
            known = found.get("properties", {})
            found["required"] = [name for name in found["required"] if name in known or not known]
        return found, size

    def _alternatives(self, schema: Mapping[str, Any], inner: _Inner, *, subtypes: bool) -> list[dict[str, Any]]:
        """The alternatives of a schema, or its subtypes, each with its value of the discriminator."""
        if given := [*list_of(schema.get("oneOf")), *list_of(schema.get("anyOf"))]:
            values = self._values(schema)
            return [_of_kind(inner(part), *values.get(_reference(part), ())) for part in given]
        found: list[dict[str, Any]] = []
        for value, part in self._subtypes(schema).items() if subtypes else ():
            # What all have in common stands beside the alternatives.
            own = _merged([inner(one, subtypes=False) for one in self._own_parts(part, schema)])
            own.pop("additionalProperties", None)
            found.append(_of_kind(own, schema["discriminator"]["propertyName"], value))
        return found

    @property
    def _components(self) -> dict[str, dict[str, Any]]:
        return object_of(object_of(self._document.get("components")).get("schemas"))

    @cached_property
    def _extensions(self) -> Mapping[int, list[tuple[str, dict[str, Any]]]]:
        """Names and schemas of the components that extend a schema by ``allOf``, by the ``id`` of that schema."""
        found: dict[int, list[tuple[str, dict[str, Any]]]] = defaultdict(list)
        for name, schema in self._components.items():
            for part in list_of(object_of(schema).get("allOf")):
                with suppress(CatalogError):
                    if (reference := _reference(part)) is not None:
                        found[id(self.lookup(reference))].append((str(name), schema))
        return found

    def _subtypes(self, schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
        """Value of the discriminator -> the schema of that subtype: those of the mapping, and those that extend it.

        Without a mapping, a value may be of the schema itself. If a subtype is in another document, there is none here:
        then a value may be anything.
        """
        discriminator = object_of(schema.get("discriminator"))
        if not isinstance(discriminator.get("propertyName"), str):
            return {}
        found: dict[str, dict[str, Any]] = {}
        try:
            for value, target in object_of(discriminator.get("mapping")).items():
                found[str(value)] = object_of(self.lookup(_named_schema(target)))
        except CatalogError:
            return {}
        known, waiting = {id(part) for part in found.values()}, [schema, *found.values()]
        for base in waiting:  # which grows meanwhile
            for name, part in self._extensions.get(id(base), ()):
                if id(part) not in known:
                    known.add(id(part))
                    found[name] = part
                    waiting.append(part)
        if found and not discriminator.get("mapping"):
            found |= {name: part for name, part in self._components.items() if part is schema}
        return found if len(found) <= _MOST_SUBTYPES else {}

    def _own_parts(self, subtype: Mapping[str, Any], base: Mapping[str, Any], depth: int = _MOST_HOPS) -> list[Any]:
        """The parts of a subtype beside its base; of parts that extend the base too, theirs."""
        if subtype is base or depth == 0:
            return []
        parts: list[Any] = []
        for part in list_of(subtype.get("allOf")):
            target = part
            with suppress(CatalogError):
                target = self.followed(part)
            extends = isinstance(target, dict) and "allOf" in target
            parts += self._own_parts(target, base, depth - 1) if target is base or extends else [part]
        return [*parts, {key: value for key, value in subtype.items() if key not in ("allOf", "discriminator")}]

    def _values(self, schema: Mapping[str, Any]) -> dict[str | None, tuple[str, str]]:
        """Reference of an alternative -> name and value of the discriminator, as its mapping says."""
        discriminator = object_of(schema.get("discriminator"))
        name, mapping = discriminator.get("propertyName"), object_of(discriminator.get("mapping"))
        if not isinstance(name, str):
            return {}
        return {_named_schema(target): (name, str(value)) for value, target in mapping.items()}


def _reference(schema: Any) -> str | None:
    reference = schema.get("$ref") if isinstance(schema, dict) else None
    return reference if isinstance(reference, str) else None


def _named_schema(target: Any) -> str:
    """The reference in the mapping of a discriminator, which may be the name of a schema."""
    is_name = isinstance(target, str) and "/" not in target and "." not in target and "#" not in target
    return f"#/components/schemas/{target}" if is_name else str(target)


def _of_kind(schema: dict[str, Any], name: str = "", value: str = "") -> dict[str, Any]:
    """A schema whose discriminator has this value, unless it says so itself; without a name, as it is."""
    properties = schema.get("properties", {})
    kind = object_of(properties.get(name))
    if not name or kind.keys() & {"const", "enum"}:
        return schema
    return {
        **schema,
        "properties": {name: {**kind, "const": value}, **{n: p for n, p in properties.items() if n != name}},
    }


def _keywords(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of one schema that hold no other schema, in the form of JSON Schema 2020-12."""
    found: dict[str, Any] = {}
    if types := _types(schema):
        found["type"] = types[0] if len(types) == 1 else types
    for key, value in schema.items():
        is_text, is_number = isinstance(value, str), type(value) in (int, float)
        if key in _PLAIN or (key in _TEXTS and is_text) or (key in _NUMBERS and is_number):
            found[key] = value
    for key, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if schema.get(key) is True and bound in found:  # OpenAPI 3.0
            found[key] = found.pop(bound)
    if isinstance(values := schema.get("enum"), list) and values:
        found["enum"] = [*values, None] if schema.get("nullable") is True and None not in values else values
    if isinstance(required := schema.get("required"), list):
        found["required"] = list(dict.fromkeys(map(str, required)))
    return found


def _types(schema: Mapping[str, Any]) -> list[str]:
    declared = schema.get("type")
    types = [item for item in (declared if isinstance(declared, list) else [declared]) if item in _TYPES]
    return [*types, "null"] if types and schema.get("nullable") is True and "null" not in types else types


def _merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """``allOf`` as one schema: properties and required names of all, of other keywords the last."""
    whole: dict[str, Any] = {}
    for part in parts:
        properties = {**whole.get("properties", {}), **part.get("properties", {})}
        required = [*whole.get("required", ()), *part.get("required", ())]
        whole |= part
        whole |= {"properties": properties} if properties else {}
        whole |= {"required": list(dict.fromkeys(required))} if required else {}
    return whole


def _outline(schema: Mapping[str, Any], most: int) -> dict[str, Any]:
    """A schema that is too large: its properties, and theirs as far as they fit, with types and descriptions only."""
    found, size = _skeleton(schema, 1)
    properties = dict(list(found.get("properties", {}).items())[:most])
    for name in properties:
        part, count = _skeleton(schema["properties"][name], 1)
        if (larger := size + count - 1) <= most:
            properties[name], size = part, larger
    required = [name for name in found.get("required", ()) if name in properties]
    return {**found, "properties": properties, "required": required} if properties else found


def _skeleton(schema: Mapping[str, Any], levels: int) -> _Sized:
    """The types and descriptions of a schema and its properties down to some levels; a list adds no level."""
    found = {key: schema[key] for key in ("type", "description", "format") if key in schema}
    size = 1 + len(found.get("description", "")) // _SMALL
    properties, items = schema.get("properties"), schema.get("items")
    if levels and isinstance(properties, dict):
        parts = {name: _skeleton(part, levels - 1) for name, part in properties.items()}
        found["properties"] = {name: part for name, (part, _) in parts.items()}
        found["required"] = [name for name in schema.get("required", ()) if name in parts]
        size += sum(count for _, count in parts.values())
    elif levels and isinstance(items, dict) and items:
        found["items"], count = _skeleton(items, levels)
        size += count
    return found, size
