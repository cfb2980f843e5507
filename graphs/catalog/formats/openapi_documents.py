"""Reads the document of an OpenAPI specification, and resolves its schemas within bounds of depth and size."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from callsheet.graphs.catalog.formats.manifests import parse_json, read_yaml
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.text.json_schema import JsonObject, resolve_pointer
from callsheet.graphs.text.regex import linear
from callsheet.graphs.text.regular_files import read_regular

LARGEST = 64_000_000
"""Maximum size of a specification, in bytes."""
_VERSIONED = linear(
    r"""(?m)(?:^|[{,\s])["']?(?:openapi|swagger)["']?\s*:\s*["']?\d+\.\d+(?:\.\d+)?["']?\s*(?:[,}#]|$)"""
)
_YAML = (".yaml", ".yml")


def is_specification(path: Path) -> bool:
    """Returns whether a file looks like an OpenAPI specification; ``parse_specification`` checks it fully."""
    if path.suffix.lower() not in (".json", *_YAML):
        return False
    try:
        return _VERSIONED.search(read_regular(path).decode("utf-8", "replace")) is not None
    except OSError:
        return False  # whoever reads it next says why it cannot be read


def parse_specification(text: bytes, where: str) -> JsonObject:
    """Parses an OpenAPI specification.

    Raises:
        CatalogError: It is too large, malformed, or of another version.
    """
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


def object_of(value: Any) -> JsonObject:
    """Returns the value if it is an object, otherwise an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: Any) -> list[Any]:
    """Returns the value if it is a list, otherwise an empty one."""
    return value if isinstance(value, list) else []


_MOST_HOPS = 10
_LONGEST = 200

Direction = Literal["readOnly", "writeOnly"]
"""Properties with this mark are left out: ``readOnly`` of a request, ``writeOnly`` of a response."""
_DEPTHS = (3, 2, 1)
_DEEPEST = 40
_MOST_NAMES = 12
_MOST_SUBTYPES = 50
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
_Sized = tuple[JsonObject, int]


class _Inner(Protocol):
    """Resolves a part of a schema, with its subtypes or without."""

    def __call__(self, schema: Any, *, subtypes: bool = True) -> JsonObject: ...


class _Way(NamedTuple):
    """How a schema is resolved: with at most ``depth`` references in a row, and with its subtypes or without."""

    depth: int
    without: Direction
    subtypes: bool = True


class Document:
    """Resolves the references and schemas of a specification; schemas that several operations use are resolved once.

    References are followed to a maximum depth. Beyond it, and in every cycle, a schema is ``{}``, which allows any
    value; in a response, such a schema still names its properties, because they show which records it holds. A schema
    that is too large is resolved less deeply. Because schemas are approximated, several alternatives of ``oneOf`` may
    fit, so it becomes ``anyOf``.
    """

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._known: dict[tuple[str, _Way], _Sized] = {}

    def lookup(self, reference: object) -> Any:
        """Returns the part of the document to which a reference points.

        Raises:
            CatalogError: It points to another document, or to nothing.
        """
        named = str(reference)[:_LONGEST]
        if not isinstance(reference, str) or not reference.startswith("#"):
            cure = "bundle the specification into one file, for example with `npx @redocly/cli bundle`"
            raise CatalogError(f"$ref {named!r} is in another document, which is not read: {cure}")
        try:
            return resolve_pointer(reference, self._document)
        except LookupError as error:
            raise CatalogError(f"$ref {named!r} points to nothing: correct it") from error

    def followed(self, value: Any) -> Any:
        """Returns the object to which a reference points; an object that is no reference is returned unchanged.

        Raises:
            CatalogError: The reference points to another document, to nothing or to itself.
        """
        for _ in range(_MOST_HOPS):
            if not (isinstance(value, dict) and "$ref" in value):
                return value
            value = self.lookup(value["$ref"])
        raise CatalogError(f"$ref {str(value)[:_LONGEST]!r} refers to itself: correct it")

    def resolved(self, schema: Any, *, without: Direction, most: int) -> JsonObject:
        """Returns a schema without references, of at most ``most`` subschemas.

        A hundred characters of text count as one subschema. In a schema that is larger, properties have only their
        types.

        Raises:
            CatalogError: A reference points to another document, or to nothing.
        """
        result: JsonObject = {}
        for depth in _DEPTHS:
            result, size = self._sized(schema, _Way(depth, without), 0)
            if size <= most:
                return result
        return _outline(result, most)

    def _sized(self, schema: Any, way: _Way, level: int) -> _Sized:
        """Resolves a schema, and counts its subschemas."""
        if not isinstance(schema, dict) or level > _DEEPEST:
            return {}, 1
        if "$ref" not in schema:
            return self._object(schema, way, level)
        target, size = self._target(schema["$ref"], way)
        beside = {key: value for key, value in schema.items() if key in _TEXTS and isinstance(value, str)}
        # The target is shared with other schemas, so it is not changed.
        return ({**target, **beside} if beside else target), size

    def _target(self, reference: Any, way: _Way) -> _Sized:
        """Resolves what a reference points to; beyond the depth, it is ``{}``, or names of properties of a response."""
        target = self.lookup(reference)
        key = (reference, way)
        if key in self._known:
            return self._known[key]
        if way.depth:
            self._known[key] = self._sized(target, way._replace(depth=way.depth - 1), 0)
        else:
            names = self._names(target) if way.without == "writeOnly" else []
            schema: JsonObject = {"properties": {name: {} for name in names}} if names else {}
            self._known[key] = schema, 1 + sum(map(len, names)) // _SMALL
        return self._known[key]

    def _names(self, schema: Any, depth: int = 3) -> list[str]:
        """Returns the first names of properties that hold single values, also of ``allOf``.

        A wrong reference has none.
        """
        if depth == 0 or not isinstance(schema, dict):
            return []
        if "$ref" in schema:
            with suppress(CatalogError):
                return self._names(self.lookup(schema["$ref"]), depth - 1)
            return []
        names = list[str]()
        for part in list_of(schema.get("allOf"))[:_MOST_NAMES]:
            names += self._names(part, depth - 1)
        for name, part in object_of(schema.get("properties")).items():
            if isinstance(part, dict) and not part.keys() & _COMPOSED:
                names.append(str(name))
        return list(dict.fromkeys(names))[:_MOST_NAMES]

    def _object(self, schema: Mapping[str, Any], way: _Way, level: int) -> _Sized:
        """Resolves a schema that is no reference, and what is below it."""
        result = _keywords(schema)
        size = 1 + sum(len(result[key]) for key in _TEXTS if key in result) // _SMALL

        def inner(schema: Any, *, subtypes: bool = True) -> JsonObject:
            nonlocal size
            resolved, count = self._sized(schema, way._replace(subtypes=subtypes), level + 1)
            size += count
            return resolved

        result |= _members(schema, inner, way.without)
        alternatives = self._alternatives(schema, inner, subtypes=way.subtypes)
        if alternatives:
            result["anyOf"] = alternatives
        is_cut = False
        if isinstance(schema.get("allOf"), list):
            # A subtype that extends a schema is not one of its other subtypes.
            parts = [inner(part, subtypes=False) for part in schema["allOf"]]
            result = _merged([*parts, result])
            is_cut = {} in parts  # a part beyond the depth
        if is_cut or schema.keys() & _OPEN:
            result.pop("additionalProperties", None)
        properties = result.get("properties", {})
        if properties and "required" in result:
            result["required"] = [name for name in result["required"] if name in properties]
        return result, size

    def _alternatives(self, schema: Mapping[str, Any], inner: _Inner, *, subtypes: bool) -> list[JsonObject]:
        """Returns the alternatives of a schema, or its subtypes, each with its value of the discriminator."""
        declared = [*list_of(schema.get("oneOf")), *list_of(schema.get("anyOf"))]
        if declared:
            values = self._values(schema)
            return [_of_kind(inner(part), *values.get(_reference(part), ())) for part in declared]
        if not subtypes:
            return []
        alternatives: list[JsonObject] = []
        for value, part in self._subtypes(schema).items():
            # What all have in common stands beside the alternatives.
            own = _merged([inner(one, subtypes=False) for one in self._own_parts(part, schema)])
            own.pop("additionalProperties", None)
            alternatives.append(_of_kind(own, schema["discriminator"]["propertyName"], value))
        return alternatives

    @property
    def _components(self) -> dict[str, JsonObject]:
        return object_of(object_of(self._document.get("components")).get("schemas"))

    @cached_property
    def _extensions(self) -> Mapping[int, list[tuple[str, JsonObject]]]:
        """Names and schemas of the components that extend a schema by ``allOf``, by the ``id`` of that schema."""
        extensions: dict[int, list[tuple[str, JsonObject]]] = defaultdict(list)
        for name, schema in self._components.items():
            for part in list_of(object_of(schema).get("allOf")):
                reference = _reference(part)
                if reference is None:
                    continue
                with suppress(CatalogError):  # a reference to nothing extends nothing
                    extensions[id(self.lookup(reference))].append((str(name), schema))
        return extensions

    def _subtypes(self, schema: Mapping[str, Any]) -> dict[str, JsonObject]:
        """Returns value of the discriminator -> the schema of that subtype.

        Subtypes are those of the mapping, and those that extend the schema. Without a mapping, a value may be of the
        schema itself. If a subtype is in another document, there is none here: then a value may be anything.
        """
        discriminator = object_of(schema.get("discriminator"))
        mapping = object_of(discriminator.get("mapping"))
        if not isinstance(discriminator.get("propertyName"), str):
            return {}
        subtypes: dict[str, JsonObject] = {}
        try:
            for value, target in mapping.items():
                subtypes[str(value)] = object_of(self.lookup(_named_schema(target)))
        except CatalogError:
            return {}
        known = {id(part) for part in subtypes.values()}
        bases = [schema, *subtypes.values()]
        for base in bases:  # which grows meanwhile: a subtype may have subtypes
            for name, part in self._extensions.get(id(base), ()):
                if id(part) not in known:
                    known.add(id(part))
                    subtypes[name] = part
                    bases.append(part)
        if subtypes and not mapping:
            subtypes |= {name: part for name, part in self._components.items() if part is schema}
        return subtypes if len(subtypes) <= _MOST_SUBTYPES else {}

    def _own_parts(self, subtype: Mapping[str, Any], base: Mapping[str, Any], depth: int = _MOST_HOPS) -> list[Any]:
        """Returns the parts of a subtype beside its base; of parts that extend the base too, theirs."""
        if subtype is base or depth == 0:
            return []
        parts: list[Any] = []
        for part in list_of(subtype.get("allOf")):
            target = part
            with suppress(CatalogError):
                target = self.followed(part)
            extends = isinstance(target, dict) and "allOf" in target
            if target is base or extends:
                parts += self._own_parts(target, base, depth - 1)
            else:
                parts.append(part)
        parts.append({key: value for key, value in subtype.items() if key not in ("allOf", "discriminator")})
        return parts

    def _values(self, schema: Mapping[str, Any]) -> dict[str | None, tuple[str, str]]:
        """Returns reference of an alternative -> name and value of the discriminator, as its mapping says."""
        discriminator = object_of(schema.get("discriminator"))
        name = discriminator.get("propertyName")
        mapping = object_of(discriminator.get("mapping"))
        if not isinstance(name, str):
            return {}
        return {_named_schema(target): (name, str(value)) for value, target in mapping.items()}


def _members(schema: Mapping[str, Any], inner: _Inner, without: Direction) -> JsonObject:
    """Resolves properties, items and additional properties; properties with the mark ``without`` are left out."""
    members: JsonObject = {}
    properties = schema.get("properties")
    if isinstance(properties, dict):
        resolved = {str(name): inner(part) for name, part in properties.items()}
        members["properties"] = {name: part for name, part in resolved.items() if part.get(without) is not True}
    for key in ("items", "additionalProperties"):
        part = schema.get(key)
        if isinstance(part, dict):
            members[key] = inner(part)
        elif isinstance(part, bool):
            members[key] = part
    return members


def _reference(schema: Any) -> str | None:
    reference = schema.get("$ref") if isinstance(schema, dict) else None
    return reference if isinstance(reference, str) else None


def _named_schema(target: Any) -> str:
    """Returns the reference in the mapping of a discriminator, which may be the name of a schema."""
    is_name = isinstance(target, str) and "/" not in target and "." not in target and "#" not in target
    return f"#/components/schemas/{target}" if is_name else str(target)


def _of_kind(schema: JsonObject, name: str = "", value: str = "") -> JsonObject:
    """Returns a schema whose discriminator has this value, unless it says so itself; without a name, as it is."""
    properties = schema.get("properties", {})
    discriminator = object_of(properties.get(name))
    if not name or discriminator.keys() & {"const", "enum"}:
        return schema
    others = {other: part for other, part in properties.items() if other != name}
    return {**schema, "properties": {name: {**discriminator, "const": value}, **others}}


def _keywords(schema: Mapping[str, Any]) -> JsonObject:
    """Returns the keywords of one schema that hold no other schema, in the form of JSON Schema 2020-12."""
    result: JsonObject = {}
    types = _types(schema)
    if types:
        result["type"] = types[0] if len(types) == 1 else types
    result |= {key: value for key, value in schema.items() if _is_taken(key, value)}
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        # In OpenAPI 3.0, it is true, and the number is that of the bound.
        if schema.get(exclusive) is True and bound in result:
            result[exclusive] = result.pop(bound)
    values = schema.get("enum")
    if isinstance(values, list) and values:
        adds_null = schema.get("nullable") is True and None not in values
        result["enum"] = [*values, None] if adds_null else values
    required = schema.get("required")
    if isinstance(required, list):
        result["required"] = list(dict.fromkeys(map(str, required)))
    return result


def _is_taken(key: str, value: Any) -> bool:
    """Returns whether a keyword is taken as it is: it is known, and its value has the right type."""
    if key in _TEXTS:
        return isinstance(value, str)
    if key in _NUMBERS:
        return type(value) in (int, float)  # bool is a subclass of int
    return key in _PLAIN


def _types(schema: Mapping[str, Any]) -> list[str]:
    """Returns the types of a schema that JSON Schema knows, with ``null`` for OpenAPI 3.0's ``nullable``."""
    declared = schema.get("type")
    words = declared if isinstance(declared, list) else [declared]
    types = [word for word in words if word in _TYPES]
    if types and schema.get("nullable") is True and "null" not in types:
        types.append("null")
    return types


def _merged(parts: list[JsonObject]) -> JsonObject:
    """Merges the parts of ``allOf``: properties and required names of all, of other keywords the last."""
    whole: JsonObject = {}
    for part in parts:
        properties = {**whole.get("properties", {}), **part.get("properties", {})}
        required = [*whole.get("required", ()), *part.get("required", ())]
        whole |= part
        if properties:
            whole["properties"] = properties
        if required:
            whole["required"] = list(dict.fromkeys(required))
    return whole


def _outline(schema: Mapping[str, Any], most: int) -> JsonObject:
    """Returns the outline of a schema that is too large, with types and descriptions only.

    It has at most so many properties, and their own properties as far as they fit.
    """
    outline, size = _skeleton(schema, 1)
    properties = dict(list(outline.get("properties", {}).items())[:most])
    if not properties:
        return outline
    for name in properties:
        part, count = _skeleton(schema["properties"][name], 1)
        larger = size + count - 1  # the property itself is counted already
        if larger <= most:
            properties[name] = part
            size = larger
    required = [name for name in outline.get("required", ()) if name in properties]
    return {**outline, "properties": properties, "required": required}


def _skeleton(schema: Mapping[str, Any], levels: int) -> _Sized:
    """Returns the types and descriptions of a schema and its properties down to some levels; a list adds no level."""
    result = {key: schema[key] for key in ("type", "description", "format") if key in schema}
    size = 1 + len(result.get("description", "")) // _SMALL
    properties = schema.get("properties")
    items = schema.get("items")
    if levels and isinstance(properties, dict):
        result["properties"] = {}
        for name, part in properties.items():
            result["properties"][name], count = _skeleton(part, levels - 1)
            size += count
        result["required"] = [name for name in schema.get("required", ()) if name in properties]
    elif levels and isinstance(items, dict) and items:
        result["items"], count = _skeleton(items, levels)
        size += count
    return result, size
