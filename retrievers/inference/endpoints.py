"""The inputs and outputs of tools: both ends of possible dependencies."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from callsheet.graphs import Tool, shown, split_name
from callsheet.graphs.text.json_schema import Field, fields_of
from callsheet.retrievers.index.node_texts import first_sentence
from callsheet.retrievers.inference.word_roles import (
    FREE,
    GENERIC,
    ID,
    IDENTIFIER,
    PAGE_ENDS,
    PAGING,
    RECORD_ID,
    VAGUE,
    Name,
    name_of,
    stems,
    stems_in,
)

Source = Literal["output", "name", "returns"]
_MAX_TEXT, _CLAUSE = 160, 16
_RETURNS = re.compile(r"\b(?:returns?|outputs?|yields?|provides?)\b:?\s+([^.;\n]{3,160})", re.IGNORECASE)
_LINK = re.compile(r"\[([^\]\[]{0,160})\]\([^)\s]{0,400}\)")
_NAMING = IDENTIFIER | stems("name")
_PLAIN = GENERIC | stems("address")
NUMBERS = frozenset({"number", "integer", "int", "float"})
"""Types of numbers in JSON Schema, and other common names."""


@dataclass(frozen=True, slots=True)
class Ask:
    """An argument of a tool.

    Attributes:
        tool: Row of the tool.
        parameter: Names from the root of the schema to the argument, joined by dots.
        words: The stems that name the value; if its own name is generic, with the stems of its parent.
        text: The name in plain words, with the description.
        types: As in ``Field``.
        required: As in ``Field``.
        identifier: Whether it is an identifier, which people rarely know.
        worth: Probability that its value comes from a tool, 0 to 1.
        head: The stem of the last specific word of its own name; empty if there is none.
    """

    tool: int
    parameter: str
    words: frozenset[str]
    text: str
    types: frozenset[str]
    required: bool
    identifier: bool
    worth: float
    head: str = ""

    @property
    def specific(self) -> frozenset[str]:
        """Its words that are not generic."""
        return frozenset(word for word in self.words - GENERIC if len(word) > 1)

    @property
    def elsewhere(self) -> float:
        """Probability that a tool of another agent can provide the value, 0 to 1; ids usually belong to one system."""
        if self.identifier:
            return 0.6 if self.head else 0.45
        return 0.8 if len(self.specific) > 1 else 0.45


@dataclass(frozen=True, slots=True)
class Give:
    """A value in the result of a tool.

    Attributes:
        tool: Row of the tool.
        field: Names from the root of the output schema to the value, joined by dots; empty if not from a schema.
        words: As in ``Ask``.
        text: As in ``Ask``.
        types: As in ``Field``; empty if not from a schema.
        many: As in ``Field``.
        record: For a generic name, the stem of the last word of its parent's: ``type`` of ``server_types.id``.
        borrowed: Words that may not belong to the value, if the field's own name is generic: those of the tool's name,
            or those before the last word of its parent's name, as ``production`` of ``production_companies.id``.
    """

    tool: int
    field: str
    words: frozenset[str]
    text: str
    types: frozenset[str]
    source: Source
    many: bool = False
    record: frozenset[str] = frozenset()
    borrowed: frozenset[str] = frozenset()

    def among(self, known: frozenset[str]) -> Give:
        """The same without unknown borrowed words, such as ``popular`` of ``list_popular_movies``."""
        return replace(self, words=self.words - (self.borrowed - known))


def asks_of(row: int, tool: Tool, records: Collection[frozenset[str]] = ()) -> tuple[Ask, ...]:
    """The inputs of a tool, without those that only its caller can choose; ``records`` as in ``Name.container``."""
    name, fields = name_of(tool.name), fields_of(tool.input_schema)
    ids = (stems(field.name) for field in fields if field.required and len(field.path) == 1)
    named = frozenset(word for words in ids if words & IDENTIFIER for word in words - GENERIC)
    holder = name.container(named, records)
    owner = replace(name, phrase=holder, object=stems(holder))
    return tuple(_ask(row, field, name, owner) for field in fields if not field.closed and not _steers(field))


def _steers(field: Field) -> bool:
    own = stems(field.name)
    return bool(own) and own <= PAGING


def _ask(row: int, field: Field, name: Name, owner: Name) -> Ask:
    bare = field.required and len(field.path) == 1 and stems(field.name) <= IDENTIFIER
    words, phrase = _qualified(field, owner if bare else name)
    if words & ID and "or" in split_name(field.name).split():
        words -= RECORD_ID - ID  # an id or a slug: either is enough
    ask = Ask(
        tool=row,
        parameter=".".join(field.path),
        words=words,
        text=": ".join(filter(None, (phrase, _description(field)))),
        types=field.types,
        required=field.required,
        identifier=bool(words & IDENTIFIER),
        worth=1.0,
        head=next((stem for word in reversed(split_name(field.name).split()) for stem in stems(word) - _PLAIN), ""),
    )
    return replace(ask, worth=_worth(ask, field, name))


def _worth(ask: Ask, field: Field, name: Name) -> float:
    """Probability that the value comes from a tool: lower for options, free text, quantities, defaults, new values."""
    worth = (1.0 if field.required else 0.8) * (0.7 if field.default else 1.0)
    if not ask.specific:
        return 0.3 * worth
    is_new = name.act == "store" and ask.specific <= name.object
    if is_new and not (ask.identifier and ask.required):
        worth *= 0.4  # the name of a new object cannot be looked up
    if ask.identifier and (field.required or ask.words & ID):
        return worth
    if stems(field.name) & FREE:
        worth *= 0.5
    if ask.types and ask.types <= NUMBERS:
        worth *= 0.65
    if not field.required and (name.act in ("store", "change") or len(field.path) > 1):
        worth *= 0.5  # what the caller wants it to be
    elif name.act == "store":
        worth *= 0.8
    return worth * (0.85 if len(ask.specific) == 1 else 0.95)


def gives_of(row: int, tool: Tool) -> tuple[Give, ...]:
    """The outputs of a tool, from its output schema, its name, and "returns" in its description."""
    return tuple(_gives(row, tool))


def _gives(row: int, tool: Tool) -> Iterator[Give]:
    name = name_of(tool.name)
    for field in fields_of(tool.output_schema or {}):
        words, phrase = _qualified(field, name)
        if (
            not field.closed
            and (words - GENERIC)
            and not _pages(field)
            and not (stems(field.name) <= GENERIC - _NAMING)
        ):
            text = ": ".join(filter(None, (phrase, _description(field))))
            holder = phrase.removesuffix(split_name(field.name)).strip()
            last = stems(holder.rpartition(" ")[2])
            certain = stems(field.name) | (frozenset() if holder == name.phrase else last)
            borrowed = words - certain if words != stems(field.name) else frozenset()
            record = last - stems(field.name) - VAGUE if words != stems(field.name) else frozenset()
            yield Give(row, ".".join(field.path), words, text, field.types, "output", field.many, record, borrowed)
    sentence = first_sentence(tool.description)[:_MAX_TEXT]
    yield Give(row, "", name.object, f"{split_name(tool.name)}: {sentence}", frozenset(), "name")
    if match := _RETURNS.search(shown(tool.description)):
        clause = " ".join(match.group(1).split()[:_CLAUSE])
        yield Give(row, "", stems_in(clause), clause, frozenset(), "returns")


def _pages(field: Field) -> bool:
    """Whether a value says where a page of the result begins or ends: ``last_id``."""
    own = stems(field.name)
    return bool(own & IDENTIFIER and own & PAGE_ENDS and own <= IDENTIFIER | PAGE_ENDS)


def _qualified(field: Field, name: Name) -> tuple[frozenset[str], str]:
    """The stems that name a value, and the name in plain words.

    A generic name (``id``, ``name``) follows that of its parent, or the object of the tool; of that, only the words in
    the description, if there are any.
    """
    own, plain = stems(field.name), split_name(field.name)
    if not own <= GENERIC or not own & _NAMING:
        return own, plain
    for holder in reversed(field.path[:-1]):
        if not (words := stems(holder)) <= GENERIC:
            return words | own, f"{split_name(holder)} {plain}"
    shared = (stems_in(_description(field)) & name.object) - GENERIC
    phrase = " ".join(word for word in name.phrase.split() if not shared or stems(word) & shared)
    return (shared or name.object) | own, f"{phrase} {plain}".strip()


def _description(field: Field) -> str:
    return _LINK.sub(r"\1", shown(field.description)).strip()[:_MAX_TEXT]
