"""The document of an OpenAPI specification, and its schemas without references, of bounded depth and size."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.manifests import read_yaml
from callsheet.graphs.text.json_schema import pointed
from callsheet.graphs.text.regex import linear

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
        return _VERSIONED.search(path.read_bytes().decode("utf-8", "replace")) is not None
    except OSError:
        return False  # whoever reads it next says why it cannot be read


def parsed(text: bytes, where: str) -> dict[str, Any]:
    """The document of a specification; ``CatalogError``: it is too large, malformed, or of another version."""
    if len(text) > LARGEST:
        raise CatalogError(f"{where}: larger than {LARGEST // 1_000_000} MB: leave out what is not needed")
    document = _json(text, where) if text.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else read_yaml(text, where)
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


def _json(text: bytes, where: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError as error:
        raise CatalogError(f"{where}: nested too deeply to be a specification") from error
    except ValueError as error:
        raise CatalogError(f"{where}: not valid JSON: {error}") from error


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
_MOST_NAMES = 12
_COMPOSED = frozenset("$ref properties items allOf oneOf anyOf additionalProperties".split())
_OPEN = frozenset(("discriminator", "patternProperties"))
"""Keywords by which a schema may have further properties, whatever its ``additionalProperties``."""
_SMALL = 100  # characters of texts that weigh as much as a subschema
_TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")
_TEXTS = ("title", "description", "format", "pattern")
_PLAIN = frozenset("default const uniqueItems readOnly writeOnly".split())
_NUMBERS = frozenset(
    "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems "
    "minProperties maxProperties".split()
)
_Sized = tuple[dict[str, Any], int]


class _Way(NamedTuple):
    """How a schema is resolved: at most ``depth`` references in a row; a ``part`` is extended by others."""

    depth: int
    without: Direction
    part: bool = False


class Document:
    """Resolves references and schemas; schemas that several operations use are resolved once and shared.

    References are followed up to a depth, beyond which, and so in every cycle, a schema is ``{}``: any value. Of a
    response, it still names its properties, as these tell which records it holds. A schema that is too large is
    resolved less deeply. As schemas are approximated, of ``oneOf`` several may fit: it becomes ``anyOf``. Of a request,
    a schema with a discriminator has the properties of its subtypes too.
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
        """A schema on its own, of at most so many subschemas; a hundred characters of texts count as one.

        Of a larger one, properties have their types only.

        Raises:
            CatalogError: A reference points to another document, or to nothing.
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
            return self._names(self._pointed(schema), depth - 1)
        names = [name for part in list_of(schema.get("allOf"))[:_MOST_NAMES] for name in self._names(part, depth - 1)]
        single = object_of(schema.get("properties")).items()
        names += [str(name) for name, part in single if isinstance(part, dict) and not part.keys() & _COMPOSED]
        return list(dict.fromkeys(names))[:_MOST_NAMES]

    def _object(self, schema: Mapping[str, Any], way: _Way, level: int) -> _Sized:
        found, unknown = _keywords(schema), False
        size = 1 + sum(len(found[key]) for key in _TEXTS if key in found) // _SMALL

        def inner(schema: Any, *, part: bool = False) -> dict[str, Any]:
            nonlocal size
            resolved, count = self._sized(schema, way._replace(part=part), level + 1)
            size += count
            return resolved

        properties = schema.get("properties")
        if isinstance(properties, dict):
            parts = {str(name): inner(part) for name, part in properties.items()}
            found["properties"] = {name: part for name, part in parts.items() if part.get(way.without) is not True}
        for key in ("items", "additionalProperties"):
            if isinstance(part := schema.get(key), dict | bool):
                found[key] = inner(part) if isinstance(part, dict) else part
        if alternatives := [*list_of(schema.get("oneOf")), *list_of(schema.get("anyOf"))]:
            found["anyOf"] = [inner(part) for part in alternatives]
        if isinstance(schema.get("allOf"), list):
            extends = "properties" in schema or len(schema["allOf"]) > 1
            merged = [inner(part, part=extends) for part in schema["allOf"]]
            found = _merged([*merged, found])
            unknown = {} in merged  # beyond the depth
        if "discriminator" in schema and not alternatives and not way.part and way.without == "readOnly":
            found, more = self._with_subtypes(found, schema, way, level)
            size += more
        if unknown or schema.keys() & _OPEN:
            found.pop("additionalProperties", None)
        if "required" in found:
            known = found.get("properties", {})
            found["required"] = [name for name in found["required"] if name in known or not known]
        return found, size

    def _with_subtypes(self, found: dict[str, Any], schema: Mapping[str, Any], way: _Way, level: int) -> _Sized:
        """A schema with the properties of its subtypes, which the property that tells them apart describes."""
        variants = {name: [part] for name, part in found.get("properties", {}).items()}
        size, kinds, subtypes = 0, list[str](), self._subtypes(schema) if way.depth else []
        family = {id(schema), *(id(subtype) for _, subtype in subtypes)}
        for value, subtype in subtypes:
            with suppress(CatalogError):  # the operation can be called without it
                own = [part for part in list_of(subtype.get("allOf")) if id(self._pointed(part)) not in family]
                alone = {**subtype, "allOf": own}
                part, count = self._object(alone, way._replace(depth=way.depth - 1, part=True), level + 1)
                size += count
                kinds.append(f"{value}: {', '.join(part.get('properties', {})) or 'nothing more'}")
                for name, spec in part.get("properties", {}).items():
                    if spec not in variants.setdefault(name, []):
                        variants[name].append(spec)
        properties = {name: specs[0] if len(specs) == 1 else {"anyOf": specs} for name, specs in variants.items()}
        name = object_of(schema["discriminator"]).get("propertyName")
        if isinstance(name, str) and kinds:
            about = variants.get(name, [{"type": "string"}])[0]
            text = "\n".join(filter(None, (about.get("description"), "; ".join(kinds))))
            properties[name] = {**about, "description": text}
            size += len(text) // _SMALL
        return {**found, "properties": properties} if properties else found, size

    def _subtypes(self, schema: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """The subtypes of a schema with a discriminator, and theirs, with the value that tells them apart."""
        mapping = object_of(object_of(schema["discriminator"]).get("mapping"))
        named = [(value, form) for value, to in mapping.items() for form in (to, f"#/components/schemas/{to}")]
        queue = [(value, self._pointed({"$ref": form})) for value, form in named]
        queue += self._extensions.get(id(schema), ())
        found, known = list[tuple[str, dict[str, Any]]](), {id(schema)}
        for value, subtype in queue:
            if isinstance(subtype, dict) and id(subtype) not in known:
                known.add(id(subtype))
                found.append((value, subtype))
                queue += self._extensions.get(id(subtype), ())
        return found

    @cached_property
    def _extensions(self) -> Mapping[int, list[tuple[str, Any]]]:
        """Names and schemas of those that extend a schema by ``allOf``, by its identity in the document."""
        found = defaultdict[int, list[tuple[str, Any]]](list)
        for name, schema in object_of(object_of(self._document.get("components")).get("schemas")).items():
            for part in list_of(object_of(schema).get("allOf")):
                found[id(self._pointed(part))].append((name, schema))
        return found

    def _pointed(self, part: Any) -> Any:
        """What a schema refers to; None if it is no reference, or a wrong one."""
        with suppress(CatalogError):
            return self.lookup(part["$ref"]) if isinstance(part, dict) and "$ref" in part else None
        return None


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
