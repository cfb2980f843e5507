"""A tool's parameters as slots to fill: words of the name, kind of value, vocabulary."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

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
IDENTIFIERS = frozenset("gid guid id oid sid uid uuid".split())
"""Last words of the names of identifiers."""
_OF_VALUE = frozenset("at by for in of per".split())
_RECORD_ACTS = frozenset(
    "add archive assign cancel close comment complete delete edit get label lock mark merge move open pin read remove"
    " reopen resolve set show start stop transfer unassign unlock unpin update view".split()
)
"""Verbs in the names of tools that take a record by its number."""
Direction = Literal["from", "to", ""]
_FROM = frozenset("base from input old origin source src".split())
_TO = frozenset("dest destination into new output target to".split())
FIRST = frozenset("begin earliest first from in low lower min minimum since start".split())
LAST = frozenset("end high higher highest last latest max maximum out stop to until upper".split())
"""Words in the names of parameters that take the beginning of a range, and its end."""
CONTENT = ("content", "text", "body", "data", "message", "note", "insight", "observation", "summary")
"""Names of parameters that take a result."""
ANY = (
    "description", "input", "keyword", "label", "name", "phrase", "pattern", "prompt", "query", "question", "string",
    "subject", "term", "title", "topic", "url", "value", "word",
)  # fmt: skip
"""Names of parameters that take any text."""
_PAIRED = frozenset((word,) for word in "a b 1 2 one two".split())
_MEASURES = frozenset(
    """
    age amount angle balance brightness capacity celsius count day degree depth discount distance dosage duration fee
    height hour index interval length level limit line maximum minimum minute month number offset page percent
    percentage port position price priority quantity rate rating retry score second size speed step temperature time
    timeout total value volume weight width year
    """.split()
)
"""Names of integers that identify no record."""
_BEFORE_RECORD = frozenset("at by for from in of on to with".split())
_SETTING = frozenset("adjust apply change decrease increase lower raise reduce set".split())
_NUMBERED = frozenset({"number", "no"})
_STEMMER = Stemmer.Stemmer("english")


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """The stem of an English word, lower case."""
    return str(_STEMMER.stemWord(word.lower()))


def words_of(name: str) -> tuple[str, ...]:
    """The words of an identifier, lower case: ``entityType`` -> entity, type."""
    return tuple(word.lower() for word in _CAMEL.split(name) if word)


def value_words(name: str) -> tuple[str, ...]:
    """The words of a value's name that people say: "price" for ``price_per_night``."""
    said = words_of(name)
    end = next((at for at, word in enumerate(said) if at and word in _OF_VALUE), len(said))
    return said[:end]


@dataclass(frozen=True, slots=True)
class Slot:
    """One parameter to fill.

    Attributes:
        words: The words of the name, lower case.
        types: Its types in JSON Schema, without ``null``.
        spec: Its schema, references resolved.
        about: Name and description of the tool.
    """

    name: str
    words: tuple[str, ...]
    types: frozenset[str]
    spec: Mapping[str, Any] = field(hash=False)
    required: bool
    about: str = ""

    @property
    def description(self) -> str:
        """The description of the parameter."""
        return str(self.spec.get("description") or "")

    @property
    def note(self) -> str:
        """For a number: the parameter's description, and the lines about it in the tool's description."""
        lines = (
            line
            for line in self.about.splitlines()[1:]
            if re.match(rf"\W*(?:{self.name[:1]}|{self.name})\b", line, re.IGNORECASE)
        )
        return " ".join((self.description, *lines)) if self.numeric else ""

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
    def identifies(self) -> bool:
        """Whether it takes the identifier of a record, or several: ``book_id``, ``issue_number``."""
        if self.words == ("number",):  # as of GitHub's issues: ``close_issue(number)``, not ``factorize(number)``
            named = words_of(self.about.partition("\n")[0])
            return len(named) > 1 and not _RECORD_ACTS.isdisjoint(named)
        if self.types == {"integer"} and (self.words[1:] in _PAIRED or self._is_record()):
            return True
        return self.head.removesuffix("s") in IDENTIFIERS or (len(self.words) > 1 and self.head in _NUMBERED)

    def _is_record(self) -> bool:
        """Whether the tool's description says that an integer is one of several records: "the bill of a table"."""
        if len(self.words) != 1 or self.head in _MEASURES:
            return False
        sentence = self.about.partition("\n")[2].split(". ")[0].lower()
        noun = rf"{re.escape(self.head)}(?=\s*(?:$|[.,;])|\s+(?:and|at|by|for|from|in|of|on|or|to|with)\b)"
        found = re.search(rf"([a-z]+)\s+(?:an?|the|another|one)\s+{noun}", sentence.strip())
        if found is None or found[1].removesuffix("s") in _SETTING:
            return False
        return found.start() == 0 or found[1] in _BEFORE_RECORD

    @property
    def direction(self) -> Direction:
        """Whether it takes where something comes from, or where it goes: ``from_account``, ``target``."""
        said = {*self.words}
        return "from" if said & _FROM else "to" if said & _TO else ""

    @property
    def is_share(self) -> bool:
        """Whether it takes a percentage as a share of 1, by its own description or the tool's line about it."""
        lines = (line for line in self.about.splitlines() if self.head in map(str.lower, re.findall(r"\w+", line)))
        return any(map(_SHARE.search, (self.description, *lines))) or self.spec.get("maximum") == 1

    @property
    def takes_percentage(self) -> bool:
        """Whether it takes a percentage, as a number or as a share of 1."""
        percent = "rate" in self.words or self.says("percent") or "percent" in self.description.lower()
        return self.numeric and (percent or self.is_share)

    @property
    def vocabulary(self) -> tuple[Any, ...]:
        """Its closed set of values: an enum, or a list in the description."""
        values = self.spec.get("enum", [self.spec["const"]] if "const" in self.spec else None)
        if values is not None:
            return tuple(values) if isinstance(values, list) else ()
        if not self.textual:
            return ()
        lines = (
            line
            for line in self.about.splitlines()
            if ":" in line and f"{self.head}s" in line.split(":")[0].lower().split()
        )
        return _listed(self.description) or _listed(next(lines, ""))

    def says(self, *some: str) -> bool:
        """Whether the name contains one of these words, singular or plural."""
        return any(word in some or word.removesuffix("s") in some for word in self.words)


def slots_of(schema: Mapping[str, Any], *, about: str = "") -> tuple[Slot, ...]:
    """The parameters of an object schema, required ones first, references resolved."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, Mapping):
        return ()
    needed = set(map(str, required)) if isinstance(required, list) else set()
    found = [
        Slot(str(name), words_of(str(name)), _types(spec), spec, str(name) in needed, about)
        for name, raw in properties.items()
        for spec in (_resolved(raw, schema),)
    ]
    return tuple(sorted(found, key=lambda slot: not slot.required))


def _resolved(spec: Any, root: Mapping[str, Any], depth: int = 0) -> dict[str, Any]:
    """A property's schema with local references resolved, and the first part of a union that is not null."""
    if not isinstance(spec, Mapping) or depth > _DEEPEST:
        return {}
    more: Any = None
    if isinstance(spec.get("$ref"), str):
        more = root
        for part in spec["$ref"].removeprefix("#/").split("/"):
            more = more.get(part) if isinstance(more, Mapping) else None
    for key in ("anyOf", "oneOf", "allOf"):
        if isinstance(options := spec.get(key), list):
            more = next((o for o in options if isinstance(o, Mapping) and o.get("type") != "null"), more)
    return {**(_resolved(more, root, depth + 1) if more else {}), **spec}


def _types(spec: Mapping[str, Any]) -> frozenset[str]:
    declared = spec.get("type", "object" if "properties" in spec else [])
    return frozenset(map(str, [declared] if isinstance(declared, str) else declared or [])) - {"null"}


def _listed(description: str) -> tuple[str, ...]:
    match = _LISTED.search(" ".join(description[:_MOST].split()).encode("utf-8", "replace").decode())
    parts = re.split(r"\s*(?:,|\||/|\bor\b)\s*", match.group(1)) if match else ()
    return tuple(dict.fromkeys(part.strip("'\"` ") for part in parts if part.strip("'\"` ")))
