"""The input schema of a tool in the form that every provider of chat models takes.

One schema that a provider refuses makes each request with it fail. The rules are those that the providers publish, or
give as the reason of a refusal; where they differ, the strictest holds:

* Anthropic: the root is an object without ``anyOf``, ``oneOf`` and ``allOf``; keys match ``^[a-zA-Z0-9_.-]{1,64}$``;
  the schema is valid by JSON Schema 2020-12.
* OpenAI: the root is an object without ``anyOf``, ``oneOf``, ``allOf``, ``enum`` and ``not``; an array has ``items``.
* Gemini: keys are letters, digits and underscores, at most 64, and do not begin with a digit; a type is one of seven
  words, and not a list; there is no ``const``; an array has ``items``; what is required is a property.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import count
from typing import Any

from callsheet.graphs.text.hidden import shown
from callsheet.graphs.text.json_schema import NAMED, JsonObject, keywords, resolve_pointer, shown_schema
from callsheet.graphs.text.unicode import DEEPEST

_KNOWN = 4_096
"""Schemas whose changed form is remembered."""
_MOST_PARTS = 10_000
"""Parts of a schema whose references are resolved."""
_FIT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_LONGEST_NAME = 64
_DIGEST = 8
_LONGEST_QUOTE = 100
_UNIONS = ("anyOf", "oneOf")
_TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
_OTHER_TYPES = {"bool": "boolean", "double": "number", "float": "number", "int": "integer", "list": "array"}
"""Names of types in other languages; any other name allows any value."""
_VALUES: Mapping[str, tuple[type, ...]] = {
    keyword: types
    for types, names in (
        ((str,), "$comment contentEncoding contentMediaType description format pattern title"),
        ((int, float), "exclusiveMaximum exclusiveMinimum maximum minimum multipleOf"),
        ((int,), "maxContains maxItems maxLength maxProperties minContains minItems minLength minProperties"),
        ((bool,), "deprecated readOnly uniqueItems writeOnly"),
        ((list,), "allOf anyOf enum examples oneOf prefixItems required"),
        ((dict,), "dependentRequired dependentSchemas patternProperties properties"),
        ((bool, dict), "additionalProperties contains contentSchema else if not propertyNames then"),
        ((bool, dict), "unevaluatedItems unevaluatedProperties"),
        ((bool, dict, list), "items"),
    )
    for keyword in names.split()
}
"""The types of the values of keywords, by JSON Schema 2020-12."""
_OF_ARRAYS = frozenset(("items", "maxItems", "minItems", "prefixItems", "uniqueItems"))
_OF_OBJECTS = frozenset(("additionalProperties", "patternProperties", "properties", "required"))
_UNSEEN = frozenset(
    "$anchor $defs $dynamicAnchor $dynamicRef $id $ref $schema $vocabulary definitions dependencies id".split()
)


@dataclass(frozen=True, slots=True)
class ModelSchema:
    """An input schema for a model.

    Attributes:
        schema: The schema, an object with properties; not to be changed.
        plain: The same schema with the tool's own names.
        names: Name of a property for the model -> the tool's own, where they differ.
        forms: The alternatives of the root schema, as text for the tool's description; empty if there are none.
        changes: What was changed, in a few words each.
    """

    schema: JsonObject
    plain: JsonObject
    names: Mapping[str, str]
    forms: str
    changes: tuple[str, ...]

    def own(self, arguments: Mapping[str, Any]) -> JsonObject:
        """Returns the arguments with the tool's own names in place of those for the model."""
        if not self.names:
            return dict(arguments)
        own: JsonObject = self._own(arguments, [self.schema])
        return own

    def _own(self, value: Any, schemas: list[Any]) -> Any:
        """Returns a value with the tool's own names, by the schemas that may describe it."""
        forms = [form for schema in schemas for form in _forms(schema)]
        match value:
            case list():
                return [self._own(item, [form.get("items") for form in forms]) for item in value]
            case dict():
                own = {}
                for name, item in value.items():
                    parts = [form["properties"][name] for form in forms if name in form.get("properties", ())]
                    if parts:
                        own[self.names.get(name, name)] = self._own(item, parts)
                    else:
                        # What no schema describes keeps its name.
                        own[name] = self._own(item, [form.get("additionalProperties") for form in forms])
                return own
            case _:
                return value


def _forms(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yields the schema and its alternatives."""
    if not isinstance(schema, Mapping):
        return
    yield schema
    for key in _UNIONS:
        for part in schema.get(key, ()):
            yield from _forms(part)


def model_schema(schema: Mapping[str, Any]) -> ModelSchema:
    """Converts the input schema of a tool, as ``shown_schema`` returns it, to a form that every provider accepts.

    References are resolved, and the alternatives of the root are merged into one object. A schema that describes no
    object gets no properties.
    """
    # As text, so that equal schemas are changed once.
    return _model_schema(json.dumps(schema, default=str))


@lru_cache(maxsize=_KNOWN)
def _model_schema(schema: str) -> ModelSchema:
    original = shown_schema(json.loads(schema))
    whole = inline_references(original)
    new_names = property_names(original)
    changing = _Changing(new_names, original)
    root, forms = changing.root(whole)
    plain = root
    if new_names:
        plain, _ = _Changing({}, original).root(whole)
    own_names = {new: own for own, new in new_names.items()}
    return ModelSchema(root, plain, own_names, forms, tuple(dict.fromkeys(changing.changes)))


class _Changing:
    """Changes one schema, and collects in words what was changed."""

    def __init__(self, names: Mapping[str, str], original: Mapping[str, Any]) -> None:
        self.names = names
        self.changes = ["the reference at its root is resolved"] if "$ref" in original else []
        self.changes += [f"{_quoted(own)} is shown as {name}" for own, name in names.items()]

    def root(self, schema: JsonObject) -> tuple[JsonObject, str]:
        """Returns the schema of an object without alternatives, and these as text."""
        declared = schema.get("type", "object")
        types = _types(declared)
        if types and "object" not in types:
            self.changes.append(f"its type is {_quoted(declared)}, so no arguments are shown")
            return {"type": "object", "properties": {}}, ""
        if declared != "object":
            self.changes.append(f"type {_quoted(declared)} at its root is shown as object")
        whole = self.node({**schema, "type": "object"}, member=True)
        for key in ("enum", "not"):
            if whole.pop(key, None) is not None:
                self.changes.append(f"{key} at its root is left out")
        forms = any(key in whole for key in _UNIONS)
        if forms:
            self.changes.append("the alternatives at its root are merged into one object")
        merged = {**_merged(whole)}
        merged.setdefault("properties", {})
        self._required(merged)
        return merged, str(merged.get("description", "")) if forms else ""

    def node(self, schema: Any, *, member: bool = False) -> JsonObject:
        """Returns a schema with what is below it, changed.

        A ``member`` of alternatives may require what another part describes.
        """
        if not isinstance(schema, dict):
            return {}
        plain = self._flat(schema)
        for key, value in list(plain.items()):
            plain[key] = self._value(key, value)
        if not member and not any(key in plain for key in _UNIONS):
            self._required(plain)
        self._items(plain)
        return plain

    def _value(self, key: str, value: Any) -> Any:
        """Returns the value of a keyword, with the names and the schemas in it changed."""
        if key == "properties":
            return {self.names.get(name, name): self._named(name, part) for name, part in value.items()}
        if key in NAMED:
            return {self.names.get(name, name): self.node(part, member=True) for name, part in value.items()}
        if key == "dependentRequired":
            return {self.names.get(name, name): self._renamed(required) for name, required in value.items()}
        if key == "required":
            return self._renamed(value)
        if key in (*_UNIONS, "prefixItems"):
            return [self.node(part, member=True) for part in value]
        if isinstance(value, dict) and bool in _VALUES.get(key, ()):
            # True and False are schemas, so a keyword that takes either holds a schema.
            return self.node(value, member=key != "items")
        return value

    def _flat(self, schema: JsonObject) -> JsonObject:
        """Returns the schema with valid keywords, one type, and the parts of ``allOf`` in it."""
        plain = self._typed(self._valid(schema))
        for part in plain.pop("allOf", ()):
            self.changes.append("allOf is merged")
            plain = self._both(plain, self._flat(_object(part)))
        return plain

    def _both(self, one: JsonObject, other: JsonObject) -> JsonObject:
        """Returns a schema that says what both say; of what only one of them can say, the first's stays."""
        both = {**other, **one}
        for key in one.keys() & other.keys():
            if key in (*_UNIONS, "required"):
                both[key] = _distinct([*one[key], *other[key]])
            elif key in ("properties", "patternProperties"):
                parts = {**one[key], **other[key]}
                for name in one[key]:
                    if name in other[key]:
                        first = self._flat(_object(one[key][name]))
                        second = self._flat(_object(other[key][name]))
                        parts[name] = self._both(first, second)
                both[key] = parts
        return both

    def _valid(self, schema: JsonObject) -> JsonObject:
        """Returns the keywords whose values have the type that JSON Schema says; older forms in today's."""
        plain = {key: value for key, value in schema.items() if key not in _UNSEEN}
        for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            # In draft 4, it is true, and the number is that of the bound.
            if plain.get(exclusive) is True and bound in plain:
                plain[exclusive] = plain.pop(bound)
        if "const" in plain:
            plain["enum"] = [plain.pop("const")]
        for key, value in list(plain.items()):
            if not _fits(key, value):
                self.changes.append(f"{key} {_quoted(value)} is left out")
                del plain[key]
            elif key in ("enum", "allOf", "prefixItems", *_UNIONS) and not value:
                del plain[key]
        return plain

    def _typed(self, plain: JsonObject) -> JsonObject:
        """Returns the schema with one type that JSON Schema knows; of several, each is an alternative."""
        if "type" not in plain:
            return plain
        declared = plain["type"]
        types = _types(declared)
        if types != [declared]:
            self.changes.append(f"type {_quoted(declared)} is shown as {' or '.join(types) or 'any'}")
        if len(types) == 1:
            return {**plain, "type": types[0]}
        del plain["type"]
        if not types or "anyOf" in plain:
            return plain
        about: JsonObject = {key: plain.pop(key) for key in ("title", "description", "default") if key in plain}
        # Each alternative has the keywords that mean something for its type.
        excluded = {"array": _OF_OBJECTS, "object": _OF_ARRAYS, "null": plain.keys()}
        alternatives = []
        for word in types:
            others = excluded.get(word, _OF_ARRAYS | _OF_OBJECTS)
            alternatives.append({"type": word, **{key: plain[key] for key in plain if key not in others}})
        return {**about, "anyOf": alternatives}

    def _named(self, name: str, part: Any) -> JsonObject:
        """Returns the schema of a property; one that has another name for the model says its own."""
        plain = self.node(part)
        if name in self.names:
            plain["description"] = f"{plain.get('description', '')} (sent as {_quoted(name)})".strip()
        return plain

    def _renamed(self, names: Any) -> list[str]:
        """Returns names of properties as they are for the model; what is not a list of names is left out."""
        if not isinstance(names, list):
            return []
        return list(dict.fromkeys(self.names.get(name, name) for name in names if isinstance(name, str)))

    def _required(self, plain: JsonObject) -> None:
        """Adds a property of any value for each name that is required and not described."""
        known = plain.get("properties", {})
        missing = [name for name in plain.get("required", ()) if name not in known]
        if missing:
            self.changes.append(f"{', '.join(missing)} is required and not described: any value is shown")
            plain["properties"] = {**known, **{name: {} for name in missing}}

    def _items(self, plain: JsonObject) -> None:
        """Gives an array items: those of a tuple are the alternatives of its places."""
        items = plain.get("items")
        lacks_items = plain.get("type") == "array" and not isinstance(items, dict)
        if not isinstance(items, list) and not lacks_items:
            return
        self.changes.append("an array gets items")
        # Before JSON Schema 2020-12, a list of items was a tuple.
        places = map(self.node, items) if isinstance(items, list) else plain.get("prefixItems", ())
        kinds = _distinct(places)
        plain["items"] = _either(kinds) if kinds else {}


def _merged(schema: JsonObject) -> JsonObject:
    """Merges the alternatives of an object into it, and lists them in its description."""
    for key in _UNIONS:
        objects = [part for part in schema.pop(key, ()) if part.get("type", "object") == "object"]
        if objects:
            _merge_alternatives(schema, [_merged(part) for part in objects])
    return schema


def _merge_alternatives(schema: JsonObject, parts: list[JsonObject]) -> None:
    """Adds the properties of the alternatives to an object; it requires what all of them require."""
    properties: dict[str, list[Any]] = {name: [part] for name, part in schema.get("properties", {}).items()}
    for part in parts:
        for name, spec in part.get("properties", {}).items():
            properties.setdefault(name, []).append(spec)
    for part in parts:
        for name in part.get("required", ()):
            properties.setdefault(name, [{}])  # required and not described: any value
    required = list(schema.get("required", ()))
    first, *others = (part.get("required", ()) for part in parts)
    required += [name for name in first if all(name in other for other in others)]
    lines = [f"- {_form(part, known=bool(properties))}" for part in parts]
    about = "\n".join(filter(None, (schema.get("description"), "Arguments, in one of these forms:", *lines)))
    schema["description"] = shown(about)
    schema["properties"] = {name: _either(specs) for name, specs in properties.items()}
    schema["required"] = list(dict.fromkeys(required))
    if all(part.get("additionalProperties") is False for part in parts):
        schema.setdefault("additionalProperties", False)


def _form(part: Mapping[str, Any], *, known: bool) -> str:
    """Returns one alternative in a line: what it requires, with fixed values, and what else it may have.

    For example ``Move: kind="move", target (optional: speed)``; ``known``: whether any alternative has properties.
    """
    properties = part.get("properties", {})
    required = part.get("required", ())
    needs = []
    for name in required:
        values = properties.get(name, {}).get("enum", ())
        needs.append(f"{name}={json.dumps(values[0])}" if len(values) == 1 else name)
    optional = [name for name in properties if name not in required]
    line = ", ".join(needs) or ("any" if known else "none")
    about = " ".join(str(part.get("title") or part.get("description") or "").split())
    if about:
        line = f"{about}: {line}"
    if optional:
        line += f" (optional: {', '.join(optional)})"
    return line


def _either(specs: Iterable[Any]) -> JsonObject:
    """Returns a schema for whatever fits one of these; of lists of values, one list of all values."""
    kinds = _distinct(specs)
    if len(kinds) == 1:
        only: JsonObject = kinds[0]
        return only
    if all(set(kind) <= {"enum", "type", "title"} and "enum" in kind for kind in kinds):
        return {**kinds[0], "enum": _distinct(value for kind in kinds for value in kind["enum"])}
    return {"anyOf": kinds}


def _distinct(values: Iterable[Any]) -> list[Any]:
    """Returns the values without duplicates; 1, 1.0 and true are three."""
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())


def property_names(schema: Mapping[str, Any]) -> dict[str, str]:
    """Maps each property name that a provider refuses to a unique name that every provider accepts."""
    own: dict[str, None] = {}  # in order, without duplicates
    for key, value in keywords(schema):
        is_list_of_names = isinstance(value, {"properties": dict, "required": list}.get(key, ()))
        if is_list_of_names:
            own.update((name, None) for name in value if isinstance(name, str))
    names: dict[str, str] = {}
    taken = {name for name in own if _FIT.fullmatch(name)}
    for name in own:
        if name not in taken:
            names[name] = _fit_name(name, taken)
            taken.add(names[name])
    return names


def _fit_name(name: str, taken: Collection[str]) -> str:
    """Returns a name that every provider takes: ``filter_title`` for ``filter[title]``, or a hash if that is taken."""
    fit = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
    if fit[:1].isdigit():
        fit = f"_{fit}"
    if fit and len(fit) <= _LONGEST_NAME and fit not in taken:
        return fit
    digest = sha256(name.encode("utf-8", "replace")).hexdigest()[:_DIGEST]
    return f"{fit[: _LONGEST_NAME - _DIGEST - 1] or 'p'}_{digest}"


def _fits(key: str, value: Any) -> bool:
    """Returns whether a keyword may have a value."""
    types = _VALUES.get(key)
    if types is None:
        return True  # a keyword that JSON Schema does not define
    if type(value) not in types:  # not isinstance: True is no number
        return False
    if types == (int,):
        return bool(value >= 0)
    if key == "multipleOf":
        return bool(value > 0)
    return True


def _types(declared: Any) -> list[str]:
    """Returns the words of a type that are among the seven; empty if any value is allowed."""
    types: dict[str, None] = {}  # in order, without duplicates
    for word in declared if isinstance(declared, list) else [declared]:
        name = word.lower() if isinstance(word, str) else ""
        name = _OTHER_TYPES.get(name, name)
        if name in _TYPES:
            types[name] = None
    return list(types)


def _object(value: Any) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _quoted(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"


def inline_references(schema: Mapping[str, Any]) -> JsonObject:
    """Returns the schema with each reference replaced by its target.

    A reference in a cycle, or without a target, allows any value. All references allow any value if the result would
    have more than 10,000 parts, or more levels than a schema may have.
    """
    steps = count()

    def follow(value: Any, path: tuple[str, ...], depth: int = 0) -> Any:
        if next(steps) > _MOST_PARTS or depth > DEEPEST:
            raise RecursionError
        match value:
            case {"$ref": str() as reference, **beside}:
                target: Any = {}
                if reference not in path:
                    with suppress(LookupError):
                        target = follow(resolve_pointer(reference, schema), (*path, reference), depth + 1)
                return {**_object(target), **follow(beside, path, depth + 1)}
            case dict():
                return {key: follow(item, path, depth + 1) for key, item in value.items()}
            case list():
                return [follow(item, path, depth + 1) for item in value]
            case _:
                return value

    used = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
    try:
        result: JsonObject = follow(used, ())
    except RecursionError:
        result = _without_references(schema)
    return result


def _without_references(value: Any) -> Any:
    match value:
        case list():
            return [_without_references(item) for item in value]
        case dict():
            return {key: _without_references(item) for key, item in value.items() if key != "$ref"}
        case _:
            return value
