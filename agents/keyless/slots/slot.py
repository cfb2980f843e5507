"""A tool's parameters as slots to fill: name in words, kind of value, vocabulary."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import Stemmer

from callsheet.graphs.text.regex import linear

_DEEPEST = 6
_MOST = 2_000  # characters of a server's description that are searched for a list of values
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[^A-Za-z0-9]+")
_LISTED = linear(
    r"(?i)(?:one of|any of|either|allowed|valid|available|supported|possible|options?|choices|values)\b"
    r"[^:.\n(]{0,40}?[:(]?\s*"
    r"((?:['\"`]?[\w-]+(?: [\w-]+){0,2}['\"`]?"
    r"(?:\s*(?:,|\||/|\bor\b)\s*(?:or\s+)?))+['\"`]?[\w-]+(?: [\w-]+){0,2}['\"`]?)"
)
_SHARE = re.compile(
    r"\bas\s+(?:an?\s+)?(?:decimal|fraction)\b|\bdecimal\s+(?:form|fraction|rate)\b|\b0(?:\.0)?\s*(?:to|and|-|–)\s*1(?:\.0)?\b(?!\.\d)"
    r"|\be\.?g\.?,?\s*0?\.\d",
    re.IGNORECASE,
)
_STEMMER = Stemmer.Stemmer("english")


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """The stem of an English word, lower case."""
    return str(_STEMMER.stemWord(word.lower()))


def words_of(name: str) -> tuple[str, ...]:
    """The words of an identifier, lower case: ``entityType`` -> entity, type."""
    return tuple(word.lower() for word in _CAMEL.split(name) if word)


@dataclass(frozen=True, slots=True)
class Slot:
    """One parameter to fill.

    Attributes:
        name: The property's name.
        words: Its words, lower case.
        types: JSON Schema's types it may have, ``null`` left out.
        spec: Its schema, references resolved.
        required: Whether a call must give it.
        about: The tool's name and description in one string.
        parent: Name of the parameter that holds it, if it is nested.
    """

    name: str
    words: tuple[str, ...]
    types: frozenset[str]
    spec: Mapping[str, Any] = field(hash=False)
    required: bool
    about: str = ""
    parent: str = ""

    @property
    def description(self) -> str:
        """The author's words on the parameter."""
        return str(self.spec.get("description") or "")

    @property
    def note(self) -> str:
        """What is said of a number: the words of its description and of the tool's lines about it."""
        if not self.numeric:
            return ""
        letter = self.name[:1].lower()
        lines = (
            line for line in self.about.splitlines()[1:] if re.match(rf"\W*(?:{letter}|{self.name})\b", line, re.I)
        )
        return " ".join((self.description, *lines))

    @property
    def head(self) -> str:
        """The last word of the name, which says what it is."""
        return self.words[-1] if self.words else ""

    @property
    def textual(self) -> bool:
        """Whether it takes a string."""
        return "string" in self.types or not self.types

    @property
    def numeric(self) -> bool:
        """Whether it takes a number."""
        return bool(self.types & {"number", "integer"})

    @property
    def is_share(self) -> bool:
        """Whether a percentage is given to it as a share of 1, by its own description or the tool's line about it."""
        lines = (line for line in self.about.splitlines() if self.head in map(str.lower, re.findall(r"\w+", line)))
        return any(map(_SHARE.search, (self.description, *lines))) or self.spec.get("maximum") == 1

    @property
    def items(self) -> Mapping[str, Any]:
        """The schema of an array's elements."""
        items = self.spec.get("items")
        return items if isinstance(items, Mapping) else {}

    @property
    def vocabulary(self) -> tuple[Any, ...]:
        """The closed set of values: an enum, or a list that the description gives."""
        for key in ("enum", "const"):
            if key in self.spec:
                values = self.spec[key]
                return tuple(values) if isinstance(values, list) else (values,) if key == "const" else ()
        if not self.textual or self.types & {"array", "object"}:
            return ()
        return _listed(self.description) or _listed(_line_about(self.about, self.words))

    def says(self, *some: str) -> bool:
        """Whether the name holds one of these words, in the singular or the plural."""
        return any(word in some or word.removesuffix("s") in some for word in self.words)


def slots_of(schema: Mapping[str, Any], *, about: str = "", parent: str = "") -> tuple[Slot, ...]:
    """The parameters of an object schema, required ones first, references resolved."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping):
        return ()
    needed = set(map(str, required)) if isinstance(required, list) else set()
    found = [
        Slot(str(name), words_of(str(name)), _types(spec), spec, str(name) in needed, about, parent)
        for name, raw in properties.items()
        for spec in (resolve(raw, schema),)
    ]
    return tuple(sorted(found, key=lambda slot: not slot.required))


def resolve(spec: Any, root: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """A property's schema with local references followed and a union with null opened."""
    if not isinstance(spec, Mapping) or depth > _DEEPEST:
        return {}
    reference = spec.get("$ref")
    if isinstance(reference, str):
        rest = {key: value for key, value in spec.items() if key != "$ref"}
        return {**resolve(_at(root, reference), root, depth + 1), **rest}
    for key in ("anyOf", "oneOf", "allOf"):
        options = spec.get(key)
        if isinstance(options, list):
            real = [o for o in options if isinstance(o, Mapping) and o.get("type") != "null"]
            rest = {k: v for k, v in spec.items() if k != key}
            return {**(resolve(real[0], root, depth + 1) if real else {}), **rest}
    found = dict(spec)
    if isinstance(found.get("items"), Mapping):
        found["items"] = resolve(found["items"], root, depth + 1)
    if isinstance(found.get("properties"), Mapping):
        found["properties"] = {k: resolve(v, root, depth + 1) for k, v in found["properties"].items()}
    return found


def _at(root: Mapping[str, Any], reference: str) -> Any:
    here: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        here = here.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(here, Mapping) else None
    return here


def _types(spec: Mapping[str, Any]) -> frozenset[str]:
    declared = spec.get("type")
    found = (
        {declared} if isinstance(declared, str) else set(map(str, declared)) if isinstance(declared, list) else set()
    )
    if not found and "properties" in spec:
        found = {"object"}
    return frozenset(found - {"null"})


def _listed(description: str) -> tuple[str, ...]:
    match = _LISTED.search(" ".join(description[:_MOST].split()).encode("utf-8", "replace").decode())
    if match is None:
        return ()
    parts = re.split(r"\s*(?:,|\||/|\bor\b)\s*", match.group(1))
    return tuple(dict.fromkeys(part.strip("'\"` ") for part in parts if part.strip("'\"` ")))


def _line_about(about: str, names: tuple[str, ...]) -> str:
    """The line of a tool's description that speaks of a parameter in the plural: "Available operations: ..."."""
    for line in about.splitlines():
        start = line.split(":")[0].lower()
        if ":" in line and names and f"{names[-1]}s" in start.split():
            return line
    return ""
