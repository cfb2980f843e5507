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
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from itertools import count
from typing import Any

from callsheet.graphs.text.json_schema import NAMED, keywords, pointed, shown_schema
from callsheet.graphs.text.sanitizing import DEEPEST, shown

_KNOWN, _MOST_PARTS = 4_096, 10_000
_FIT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_LONGEST_NAME, _DIGEST, _LONGEST_QUOTE = 64, 8, 100
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
        plain: The same with the tool's own names.
        names: Name of a property for the model -> the tool's own, where they differ.
        forms: The alternatives of the root, as text for the tool's description; empty without any.
        changes: What was changed, in a few words each.
    """

    schema: dict[str, Any]
    plain: dict[str, Any]
    names: Mapping[str, str]
    forms: str
    changes: tuple[str, ...]

    def own(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments with the tool's own names; names that are the tool's own already stay."""
        own: dict[str, Any] = self._own(arguments, [self.schema]) if self.names else dict(arguments)
        return own

    def _own(self, value: Any, schemas: list[Any]) -> Any:
        forms = [form for schema in schemas for form in _forms(schema)]
        match value:
            case list():
                return [self._own(item, [form.get("items") for form in forms]) for item in value]
            case dict():
                own = {}
                for name, item in value.items():
                    parts = [form["properties"][name] for form in forms if name in form.get("properties", ())]
                    others = [form.get("additionalProperties") for form in forms]
                    own[self.names.get(name, name) if parts else name] = self._own(item, parts or others)
                return own
            case _:
                return value


def _forms(schema: Any) -> Iterator[Mapping[str, Any]]:
    """The schema and its alternatives."""
    if isinstance(schema, Mapping):
        yield schema
        for key in _UNIONS:
            for part in schema.get(key, ()):
                yield from _forms(part)


def model_schema(schema: Mapping[str, Any]) -> ModelSchema:
    """The input schema of a tool, as ``shown_schema`` shows it, in the form that every provider takes.

    References are resolved, and the alternatives of the root are merged into one object. A schema that is of no object
    has no properties.
    """
    return _model_schema(json.dumps(schema, default=str))


@lru_cache(maxsize=_KNOWN)
def _model_schema(schema: str) -> ModelSchema:
    original = shown_schema(json.loads(schema))
    whole, own = inlined(original), names_of(original)
    changing = _Changing(own, original)
    root, forms = changing.root(whole)
    plain = _Changing({}, original).root(whole)[0] if own else root
    names = {name: known for known, name in own.items()}
    return ModelSchema(root, plain, names, forms, tuple(dict.fromkeys(changing.changes)))


class _Changing:
    """The changes of one schema."""

    def __init__(self, names: Mapping[str, str], original: Mapping[str, Any]) -> None:
        self.names = names
        self.changes = ["the reference at its root is resolved"] if "$ref" in original else []
        self.changes += [f"{_quoted(own)} is shown as {name}" for own, name in names.items()]

    def root(self, schema: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """The schema of an object without alternatives, and these as text."""
        said = schema.get("type", "object")
        if (types := _types(said)) and "object" not in types:
            self.changes.append(f"its type is {_quoted(said)}, so no arguments are shown")
            return {"type": "object", "properties": {}}, ""
        if said != "object":
            self.changes.append(f"type {_quoted(said)} at its root is shown as object")
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

    def node(self, schema: Any, *, member: bool = False) -> dict[str, Any]:
        """A schema with what is below it; a ``member`` of alternatives may require what another part describes."""
        if not isinstance(schema, dict):
            return {}
        plain = self._flat(schema)
        for key, value in list(plain.items()):
            if key == "properties":
                plain[key] = {self.names.get(name, name): self._named(name, part) for name, part in value.items()}
            elif key in NAMED:
                plain[key] = {self.names.get(name, name): self.node(part, member=True) for name, part in value.items()}
            elif key == "dependentRequired":
                plain[key] = {self.names.get(name, name): self._renamed(few) for name, few in value.items()}
            elif key == "required":
                plain[key] = self._renamed(value)
            elif key in (*_UNIONS, "prefixItems"):
                plain[key] = [self.node(part, member=True) for part in value]
            elif _VALUES.get(key) in ((bool, dict), (bool, dict, list)) and isinstance(value, dict):
                plain[key] = self.node(value, member=key != "items")
        if not member and not any(key in plain for key in _UNIONS):
            self._required(plain)
        self._items(plain)
        return plain

    def _flat(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The schema with valid keywords, one type, and the parts of ``allOf`` in it."""
        plain = self._typed(self._valid(schema))
        for part in plain.pop("allOf", ()):
            self.changes.append("allOf is merged")
            plain = self._both(plain, self._flat(_object(part)))
        return plain

    def _both(self, one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
        """A schema that says what both say; of what only one of them can say, the first's stays."""
        both = {**other, **one}
        for key in one.keys() & other.keys():
            if key in (*_UNIONS, "required"):
                both[key] = _distinct([*one[key], *other[key]])
            elif key in ("properties", "patternProperties"):
                shared = {
                    n: [self._flat(_object(part[key][n])) for part in (one, other)] for n in one[key] if n in other[key]
                }
                both[key] = {**one[key], **other[key], **{name: self._both(*parts) for name, parts in shared.items()}}
        return both

    def _valid(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The keywords whose values have the type that JSON Schema says; older forms in today's."""
        plain = {key: value for key, value in schema.items() if key not in _UNSEEN}
        for edge in ("Minimum", "Maximum"):
            if plain.get(f"exclusive{edge}") is True and edge.lower() in plain:
                plain[f"exclusive{edge}"] = plain.pop(edge.lower())
        if "const" in plain:
            plain["enum"] = [plain.pop("const")]
        for key, value in list(plain.items()):
            if not _fits(key, value):
                self.changes.append(f"{key} {_quoted(value)} is left out")
                del plain[key]
            elif key in ("enum", "allOf", "prefixItems", *_UNIONS) and not value:
                del plain[key]
        return plain

    def _typed(self, plain: dict[str, Any]) -> dict[str, Any]:
        """The schema with one type that JSON Schema knows; of several, each is an alternative."""
        if "type" not in plain:
            return plain
        said = plain["type"]
        if (types := _types(said)) != [said]:
            self.changes.append(f"type {_quoted(said)} is shown as {' or '.join(types) or 'any'}")
        if len(types) == 1:
            return {**plain, "type": types[0]}
        del plain["type"]
        if not types or "anyOf" in plain:
            return plain
        about: dict[str, Any] = {key: plain.pop(key) for key in ("title", "description", "default") if key in plain}
        others = {"array": _OF_OBJECTS, "object": _OF_ARRAYS, "null": plain.keys()}
        left_out = {word: others.get(word, _OF_ARRAYS | _OF_OBJECTS) for word in types}
        return {
            **about,
            "anyOf": [{"type": w, **{k: v for k, v in plain.items() if k not in left_out[w]}} for w in types],
        }

    def _named(self, name: str, part: Any) -> dict[str, Any]:
        """The schema of a property; one that has another name for the model says its own."""
        plain = self.node(part)
        if name in self.names:
            plain["description"] = f"{plain.get('description', '')} (sent as {_quoted(name)})".strip()
        return plain

    def _renamed(self, names: Any) -> list[str]:
        found = names if isinstance(names, list) else ()
        return list(dict.fromkeys(self.names.get(name, name) for name in found if isinstance(name, str)))

    def _required(self, plain: dict[str, Any]) -> None:
        """Describes what is required and is no property."""
        known = plain.get("properties", {})
        if missing := [name for name in plain.get("required", ()) if name not in known]:
            self.changes.append(f"{', '.join(missing)} is required and not described: any value is shown")
            plain["properties"] = {**known, **{name: {} for name in missing}}

    def _items(self, plain: dict[str, Any]) -> None:
        """Gives an array items: those of a tuple are the alternatives of its places."""
        items = plain.get("items")
        if isinstance(items, list) or (plain.get("type") == "array" and not isinstance(items, dict)):
            self.changes.append("an array gets items")
            places = map(self.node, items) if isinstance(items, list) else plain.get("prefixItems", ())
            kinds = _distinct(places)
            plain["items"] = _either(kinds) if kinds else {}


def _merged(schema: dict[str, Any]) -> dict[str, Any]:
    """An object in place of its alternatives, which its description lists."""
    for key in _UNIONS:
        parts = [_merged(part) for part in schema.pop(key, ()) if part.get("type", "object") == "object"]
        if not parts:
            continue
        properties: dict[str, list[Any]] = {name: [part] for name, part in schema.get("properties", {}).items()}
        for part in parts:
            for name, spec in part.get("properties", {}).items():
                properties.setdefault(name, []).append(spec)
        properties |= {n: [{}] for part in parts for n in part.get("required", ()) if n not in properties}
        always = [n for n in parts[0].get("required", ()) if all(n in part.get("required", ()) for part in parts)]
        lines = (f"- {_described(part, properties)}" for part in parts)
        about = "\n".join(filter(None, (schema.get("description"), "Arguments, in one of these forms:", *lines)))
        schema |= {
            "description": shown(about),
            "properties": {name: _either(specs) for name, specs in properties.items()},
            "required": list(dict.fromkeys([*schema.get("required", ()), *always])),
        }
        if all(part.get("additionalProperties") is False for part in parts):
            schema.setdefault("additionalProperties", False)
    return schema


def _described(part: Mapping[str, Any], known: Mapping[str, list[Any]]) -> str:
    """One alternative in a line: what it requires, with fixed values, and what else it may have."""
    required, own = part.get("required", ()), part.get("properties", {})
    fixed = {name: own[name]["enum"][0] for name in own if len(own[name].get("enum", ())) == 1}
    needs = [f"{name}={json.dumps(fixed[name])}" if name in fixed else name for name in required]
    may = [name for name in own if name not in required]
    about = " ".join(str(part.get("title") or part.get("description") or "").split())
    said = ", ".join(needs) or ("any" if known else "none")
    return "".join((f"{about}: " if about else "", said, f" (optional: {', '.join(may)})" if may else ""))


def _either(specs: Iterable[Any]) -> dict[str, Any]:
    kinds = _distinct(specs)
    if len(kinds) > 1 and all(set(kind) <= {"enum", "type", "title"} and "enum" in kind for kind in kinds):
        return {**kinds[0], "enum": _distinct(value for kind in kinds for value in kind["enum"])}
    return {"anyOf": kinds} if len(kinds) > 1 else kinds[0]


def _distinct(values: Iterable[Any]) -> list[Any]:
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())


def names_of(schema: Mapping[str, Any]) -> dict[str, str]:
    """Name of a property -> a unique name that every provider takes, for the names that none takes."""
    names: dict[str, str] = {}
    holders = {"properties": dict, "required": list}
    found = [value for key, value in keywords(schema) if key in holders and isinstance(value, holders[key])]
    own = list(dict.fromkeys(name for value in found for name in value if isinstance(name, str)))
    taken = {name for name in own if _FIT.fullmatch(name)}
    for name in own:
        if name in taken:
            continue
        fit = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_")
        fit = f"_{fit}" if fit[:1].isdigit() else fit
        if not fit or len(fit) > _LONGEST_NAME or fit in taken:
            digest = sha256(name.encode("utf-8", "replace")).hexdigest()[:_DIGEST]
            fit = f"{fit[: _LONGEST_NAME - _DIGEST - 1] or 'p'}_{digest}"
        taken.add(fit)
        names[name] = fit
    return names


def _fits(key: str, value: Any) -> bool:
    """Whether a keyword may have a value."""
    types = _VALUES.get(key)
    if types is None or type(value) not in types:
        return types is None
    return value >= 0 if types == (int,) else value > 0 if key == "multipleOf" else True


def _types(said: Any) -> list[str]:
    """The words of a type that are among the seven; empty if any value is allowed."""
    names = [name.lower() if isinstance(name, str) else "" for name in (said if isinstance(said, list) else [said])]
    return [name for name in dict.fromkeys(_OTHER_TYPES.get(name, name) for name in names) if name in _TYPES]


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _quoted(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"


def inlined(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with what its references point to in their place.

    A reference in a cycle, or to nothing, allows any value; so do all if the result had more than 10,000 parts, or more
    levels than a schema may have.
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
                        target = follow(pointed(reference, schema), (*path, reference), depth + 1)
                return {**_object(target), **follow(beside, path, depth + 1)}
            case dict():
                return {key: follow(item, path, depth + 1) for key, item in value.items()}
            case list():
                return [follow(item, path, depth + 1) for item in value]
            case _:
                return value

    try:
        found: dict[str, Any] = follow({k: v for k, v in schema.items() if k not in ("$defs", "definitions")}, ())
    except RecursionError:
        found = _without_references(schema)
    return found


def _without_references(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_references(item) for item in value]
    return {k: _without_references(v) for k, v in value.items() if k != "$ref"} if isinstance(value, dict) else value
