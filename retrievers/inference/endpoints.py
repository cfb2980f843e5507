"""Both ends of a possible edge: what a tool asks for, and what a tool gives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from callsheet.graphs import Tool, shown, split_name
from callsheet.retrievers.index.node_texts import first_sentence
from callsheet.retrievers.inference.schema_fields import Field, fields_of
from callsheet.retrievers.inference.word_roles import FREE, GENERIC, IDENTIFIER, PAGING, Name, name_of, stems, stems_in

Source = Literal["output", "name", "returns"]
_SAID, _CLAUSE = 160, 16
_RETURNS = re.compile(r"\b(?:returns?|outputs?|yields?|provides?)\b:?\s+([^.;\n]{3,160})", re.IGNORECASE)
_NAMING = IDENTIFIER | stems("name")
_PLAIN = GENERIC | stems("address")
NUMBERS = frozenset({"number", "integer", "int", "float"})
"""Types of numbers, as JSON Schema names them and as some do."""


@dataclass(frozen=True, slots=True)
class Ask:
    """An argument that a tool needs a value for.

    Attributes:
        tool: Row of the tool.
        parameter: Names from the root of its schema to it, joined by dots.
        words: The stems that name the value, with those of what it belongs to where its own name says nothing.
        text: The same in plain words, with its description.
        types: As in ``Field``.
        required: As in ``Field``.
        identifier: Whether it identifies something, so that a person hardly knows it.
        worth: How likely it is that any tool has to give it, 0 to 1.
        head: The stem of the last word of its own name that says of what it is; empty if none does.
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
        """Those of its words that say of what it is."""
        return frozenset(word for word in self.words - GENERIC if len(word) > 1)

    @property
    def elsewhere(self) -> float:
        """How likely the value of another agent's tool serves as well, 0 to 1; an id holds for one system as a rule."""
        if self.identifier:
            return 0.6 if self.head else 0.45
        return 0.8 if len(self.specific) > 1 else 0.45


@dataclass(frozen=True, slots=True)
class Give:
    """A value that a tool's result holds.

    Attributes:
        tool: Row of the tool.
        field: Names from the root of its output schema to it, joined by dots; empty where it is not from there.
        words: As in ``Ask``.
        text: As in ``Ask``.
        types: As in ``Field``; empty where it is not from a schema.
        source: Where that is said.
        many: As in ``Field``.
        borrowed: Those of its words that are from the tool's name, for the field's own say nothing.
    """

    tool: int
    field: str
    words: frozenset[str]
    text: str
    types: frozenset[str]
    source: Source
    many: bool = False
    borrowed: frozenset[str] = frozenset()

    def among(self, known: frozenset[str]) -> Give:
        """The same without borrowed words that are not known: ``popular`` of ``list_popular_movies``."""
        return replace(self, words=self.words - (self.borrowed - known))


def asks_of(row: int, tool: Tool) -> tuple[Ask, ...]:
    """What a tool asks for; what only its caller can choose is left out."""
    name = name_of(tool.name)
    return tuple(
        _ask(row, field, name) for field in fields_of(tool.input_schema) if not field.closed and not _steers(field)
    )


def _steers(field: Field) -> bool:
    own = stems(field.name)
    return bool(own) and own <= PAGING


def _ask(row: int, field: Field, name: Name) -> Ask:
    words, phrase = _qualified(field, name)
    said = _said(field)
    ask = Ask(
        tool=row,
        parameter=".".join(field.path),
        words=words,
        text=f"{phrase}: {said}" if said else phrase,
        types=field.types,
        required=field.required,
        identifier=bool(words & IDENTIFIER),
        worth=1.0,
        head=next((stem for word in reversed(split_name(field.name).split()) for stem in stems(word) - _PLAIN), ""),
    )
    return replace(ask, worth=_worth(ask, field, name))


def _worth(ask: Ask, field: Field, name: Name) -> float:
    """How likely any tool has to give it: what is optional, free text, a quantity or has a default is less so."""
    worth = (1.0 if field.required else 0.8) * (0.7 if field.default else 1.0)
    if not ask.specific:
        return 0.3 * worth
    made = name.act == "store" and ask.specific <= name.object
    if made and not (ask.identifier and ask.required):
        worth *= 0.4  # the name of what is only being made cannot be looked up
    if ask.identifier:
        return worth
    if stems(field.name) & FREE:
        worth *= 0.5
    if ask.types and ask.types <= NUMBERS:
        worth *= 0.65
    if name.act == "store":
        worth *= 0.8
    return worth * (0.85 if len(ask.specific) == 1 else 0.95)


def gives_of(row: int, tool: Tool) -> tuple[Give, ...]:
    """What a tool gives: its output fields, what its name says, and what its description says that it returns."""
    return tuple(_gives(row, tool))


def _gives(row: int, tool: Tool) -> Iterator[Give]:
    name = name_of(tool.name)
    for field in fields_of(tool.output_schema or {}):
        words, phrase = _qualified(field, name)
        if (words - GENERIC) and not (stems(field.name) <= GENERIC - _NAMING):
            said = _said(field)
            text = f"{phrase}: {said}" if said else phrase
            borrowed = words - stems(field.name) if phrase.startswith(name.phrase) else frozenset()
            yield Give(row, ".".join(field.path), words, text, field.types, "output", field.many, borrowed)
    sentence = first_sentence(tool.description)[:_SAID]
    yield Give(row, "", name.object, f"{split_name(tool.name)}: {sentence}", frozenset(), "name")
    if match := _RETURNS.search(shown(tool.description)):
        clause = " ".join(match.group(1).split()[:_CLAUSE])
        yield Give(row, "", stems_in(clause), clause, frozenset(), "returns")


def _qualified(field: Field, name: Name) -> tuple[frozenset[str], str]:
    """The stems that name a value, and the same in plain words.

    A name that says nothing by itself (``id``, ``name``) is put after what holds it, or after the object of the tool:
    of that only what the description says too, if it says any.
    """
    own, plain = stems(field.name), split_name(field.name)
    if not own <= GENERIC or not own & _NAMING:
        return own, plain
    for holder in reversed(field.path[:-1]):
        if not (held := stems(holder)) <= GENERIC:
            return held | own, f"{split_name(holder)} {plain}"
    said = stems_in(_said(field)) & name.object
    phrase = " ".join(word for word in name.phrase.split() if not said or stems(word) & said)
    return (said or name.object) | own, f"{phrase} {plain}".strip()


def _said(field: Field) -> str:
    return shown(field.description).strip()[:_SAID]
