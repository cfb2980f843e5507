"""Reads values that a text gives to parameters by their names: ``name=value``, ``name: value``, ``name value``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from callsheet.agents.no_model.parameters import fits, value_kind
from callsheet.agents.no_model.values import Kind, StepValue
from callsheet.graphs.catalog.model import Parameter, Tool
from callsheet.graphs.text.words import split_name, tokens

_SEPARATOR = r"(?:\s*(?P<sign>[:=])\s*|\s+)"
_END = r"(?=$|[\s,;)]|[.!?](?:\s|$))"
"""Where a value that is not in quotation marks may end."""
_ENDS = re.compile(_END)
_WORD = re.compile(rf"[^\s,;\"“”]{{1,400}}?{_END}")
_NEXT = re.compile(r"\s+(\w+)")
# "and" and "with" spelled backwards: matched from the end of a text, in time that grows with its length only.
_LINKS_REVERSED = re.compile(r"(?:\s|[,;]|\bdna\b|\bhtiw\b)+", re.IGNORECASE)
_QUOTES = "\"“”'`"


@dataclass(frozen=True, slots=True)
class _Mention:
    """The name of a parameter in a text.

    Attributes:
        start: Where the name begins; ``end`` is where its value begins.
        signed: Whether a colon or an equals sign follows it.
    """

    parameter: Parameter
    start: int
    end: int
    signed: bool


def named_values(tool: Tool, text: str, values: Sequence[StepValue], *, harmless: bool) -> dict[str, StepValue]:
    """Returns the values that a text gives to parameters of a tool by name, each with its position in the text.

    A value is a typed value, a text in quotation marks, or a word; after a colon or an equals sign also a list or an
    object in JSON. A plain word without such a sign counts only for a tool that is known to be harmless, because
    "delete the title only" names no title. A parameter that is named twice gets no value. ``values`` are the typed
    values of the text.
    """
    found: dict[str, StepValue] = {}
    repeated: set[str] = set()
    end = 0
    mentions = _mentions(tool, text, values)
    starts = {mention.start for mention in mentions}
    for mention in mentions:
        # A name is no value of the name before it, unless a sign is between them.
        if mention.start < end or (mention.end in starts and not mention.signed):
            continue
        value = _value_of(tool, mention, text, values, harmless=harmless)
        if value is None:
            continue
        name = mention.parameter.name
        if name in found:
            repeated.add(name)
        found[name] = value
        end = value.end
    return {name: value for name, value in found.items() if name not in repeated}


def texts_by_name(tool: Tool, text: str, values: Sequence[StepValue]) -> dict[str, str]:
    """Returns the texts between names that are followed by a sign, as in ``title: Groceries, text: buy milk``.

    It is uncertain where such a text ends, so it is only proposed to a person.
    """
    mentions = [mention for mention in _mentions(tool, text, values) if mention.signed]
    pieces: dict[str, str] = {}
    for number, mention in enumerate(mentions, start=1):
        end = mentions[number].start if number < len(mentions) else len(text)
        piece = _without_links(text[mention.end : end].strip()).strip(_QUOTES).rstrip(".!?")
        if piece:
            pieces[mention.parameter.name] = piece
    return pieces


def _without_links(text: str) -> str:
    """Returns a text without blanks, commas, semicolons, "and" and "with" at its end."""
    links = _LINKS_REVERSED.match(text[::-1])
    return text[: len(text) - links.end()] if links else text


def _mentions(tool: Tool, text: str, values: Sequence[StepValue]) -> list[_Mention]:
    """Returns where a text names parameters, by name or title, in text order; not inside of quotation marks."""
    quoted = [value for value in values if text[value.start] in _QUOTES]
    found: list[_Mention] = []
    for parameter in tool.parameters:
        # The question of a tool is the whole step.
        if value_kind(parameter) == Kind.QUESTION:
            continue
        for match in _pattern_of(tool, parameter).finditer(text):
            if not any(value.start < match.start() < value.end for value in quoted):
                signed = match["sign"] is not None
                found.append(_Mention(parameter, match.start(), match.end(), signed))
    # Of names that begin at the same place, the longest is meant.
    return sorted(found, key=lambda mention: (mention.start, -mention.end))


def _pattern_of(tool: Tool, parameter: Parameter) -> re.Pattern[str]:
    """Returns the expression for the names of a parameter: ``noteTitle`` is also ``note_title`` and ``note title``."""
    title = tool.input_schema["properties"][parameter.name].get("title")
    spellings = [re.escape(parameter.name)]
    for name in (parameter.name, str(title or "")):
        words = [re.escape(word) for word in split_name(name).split()]
        if words:
            spellings.append(r"[\s_-]*".join(words))
    return re.compile(rf"(?<![\w.@/-])(?:{'|'.join(dict.fromkeys(spellings))}){_SEPARATOR}", re.IGNORECASE)


def _value_of(
    tool: Tool, mention: _Mention, text: str, values: Sequence[StepValue], *, harmless: bool
) -> StepValue | None:
    """Returns the value behind a name; None if there is none that fits."""
    parameter = mention.parameter
    for said, end, value in _candidates(mention, text, values, harmless=harmless):
        for form in _forms(parameter, said, value):
            if fits(tool, parameter, form):
                return StepValue(frozenset(), form, mention.start, end)
    literal = _json_at(text, mention.end) if mention.signed else None
    if literal is not None and fits(tool, parameter, literal[0]):
        return StepValue(frozenset(), literal[0], mention.start, literal[1])
    return None


def _candidates(
    mention: _Mention, text: str, values: Sequence[StepValue], *, harmless: bool
) -> Iterator[tuple[str, int, StepValue | None]]:
    """Yields what may be the value behind a name: its text, where it ends, and the typed value if it is one."""
    at = mention.end
    kind = value_kind(mention.parameter)
    for value in values:
        typed = mention.signed or kind in value.kinds or (kind == Kind.TEXT and not is_count(value, text))
        if value.start == at and typed and _ENDS.match(text, value.end):
            yield text[at : value.end], value.end, value
    word = _WORD.match(text, at)
    if word is None:
        return
    # A name such as "a" or "to" is a word like any other unless a sign or a typed value follows it.
    names = harmless and kind == Kind.TEXT and bool(tokens(text[mention.start : at]))
    if mention.signed or (names and word.group().isalpha() and tokens(word.group())):
        yield word.group(), word.end(), None


def _forms(parameter: Parameter, said: str, value: StepValue | None) -> Iterator[object]:
    """Yields what a text may be as the value of a parameter, the best first."""
    if value is not None and (value_kind(parameter) in value.kinds or said[0] in _QUOTES):
        yield value.value
        return
    yield said
    with suppress(ValueError, RecursionError):
        yield _read_json(said)


def is_count(value: StepValue, text: str) -> bool:
    """Returns whether a value is a number before a word that it counts: "5 notes"."""
    after = _NEXT.match(text, value.end)
    return Kind.NUMBER in value.kinds and after is not None and bool(tokens(after[1]))


def _json_at(text: str, at: int) -> tuple[object, int] | None:
    """Returns the list or the object that begins at a place, and its end; None if there is none."""
    if text[at : at + 1] not in ("[", "{"):
        return None
    try:
        _, end = json.JSONDecoder().raw_decode(text, at)
        return _read_json(text[at:end]), end
    except (ValueError, RecursionError):
        return None


def _read_json(text: str) -> object:
    value: object = json.loads(text, parse_constant=_refuse_constant)
    return value


def _refuse_constant(name: str) -> object:
    raise ValueError(f"the value of {name} is not valid JSON")
