"""Whether an order means what a tool does: its particle, its object, its new value."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import takewhile
from typing import Any

from callsheet.agents.keyless.language.clauses import words
from callsheet.agents.keyless.language.lexicon import (
    FUNCTION_WORDS,
    RESULT_NOUNS,
    is_verb,
    mask,
    may_be_noun,
)
from callsheet.agents.keyless.language.mood import head_of
from callsheet.agents.keyless.language.places import (
    PREPOSITIONS,
    direct_objects,
    kin,
    miscounted,
    misplaced,
    preposition,
)
from callsheet.agents.keyless.slots.slot import FIRST, IDENTIFIERS, Slot, stem, words_of
from callsheet.agents.safety.tool_effects import alike

_PARTICLES = frozenset("down in off on out up".split())
_AS = re.compile(r"\A\s*(\w+)\b[^.\n]{0,80}?\bas\s+(?:an?\s+)?(\w+)", re.IGNORECASE)
_OF = re.compile(r"\A\W*\w+\s+(?:(?:the|an?|my|our|its|their)\s+)*([a-z]+)\s+of\b", re.IGNORECASE)
_OBJECT = re.compile(r"\A\W*([a-z]+)\s+(?:(?:the|an?|my|our)\s+)?([a-z]+)\s+#?\d", re.IGNORECASE)
_GIVES = re.compile(
    r"\W*(?:add|adjust|assign|change|create|decrease|edit|enter|give|increase|log|lower|make|mark|put|raise|record|reduce"
    r"|rename|set|store|update|write)\b",
    re.IGNORECASE,
)
"""Verbs whose object is a value of a record."""
_MOVES = re.compile(
    r"\W*(?:add|assign|attach|connect|copy|deploy|give|invite|lend|move|put|roll\s+back|send|ship|transfer|upload)\b",
    re.IGNORECASE,
)
_FROM = re.compile(r"\bfrom\s+(?:(?:the|an?|my|our)\s+)?(?:[a-z]+\s+)?(?=[\d¤#])", re.IGNORECASE)
_DETERMINERS = frozenset(
    "a all an another any both each every her his its me my our some that the their these this those us your".split()
)
_ENDS = re.compile(r"[¤\d#]|^[A-Z(]|^(?:and|or)$")
"""What ends the words for the object of an order: a value, a name, or another object."""
_SETS = frozenset("adjust change decrease edit increase lower modify raise reduce rename reset set update".split())
"""Verbs whose object may be any value of a record."""
_RECORD = re.compile(r"\b([a-z]+)\s+(?:(?:number|no\.?|id|key|code)\s+)?[#\"'“‘`]?$", re.IGNORECASE)
"""The noun before the identifier of a record."""
_QUOTES = "\"'“‘`«„"
_TYPES = frozenset("code hash id identifier key name no number ref reference sku".split())
"""Kinds of identifiers, which are no records."""
_SHIFTS = re.compile(r"\W*(?:adjust|cut|decrease|increase|lower|raise|reduce)\b", re.IGNORECASE)
"""Verbs of tools that take a difference."""
_TO = re.compile(r"\b(?:from|to)\s+[-+]?[\d.,]+", re.IGNORECASE)
_FROM_WORDS = re.compile(r"\bfrom\s+\S+", re.IGNORECASE)
_ITS = re.compile(r"\b(?:its|their)\s+(?!(?:contents?|results?|text)\b)[a-z]+", re.IGNORECASE)
"""Something of a record, which is not the record."""
_TWO_VERBS = re.compile(r"\W*(\w+)(?:\s*,)?\s+(?:and|&|then|or)\s+(?:then\s+)?([a-z]+)\s", re.IGNORECASE)
_GIVEN = re.compile(r"\b(?:to|as|with|by|from|of|into)\b|[=:]", re.IGNORECASE)
"""Before a new value."""
_TRUTH = re.compile(r"\b(?:true|false|on|off|yes|no|enabled?|disabled?)\b", re.IGNORECASE)
_SET = re.compile(r"\b(?:set|change|update)\s(?:[\w-]+\s+){0,3}?([a-z]+)\s+(?:of|for)\b.*\bto\b", re.IGNORECASE)


def misses(
    text: str, name: str, description: str, known: Collection[str], slots: Sequence[Slot], filled: Mapping[str, Any]
) -> str:
    """Why an order does not mean what a tool does; empty if it does.

    Args:
        text: The step.
        name: The words of the tool's name.
        description: Its description.
        known: The verbs that order what it does.
        slots: Its parameters.
        filled: The values of the parameters by name.
    """
    if lacking := _lacking(text, name, description):
        return f'the step does not say "{lacking}"'
    if other := _another(text, name, description, known, slots, filled) or other_record(
        text, name, description, slots, filled
    ):
        return f'"{other}" is not what it is for'
    if place := misplaced(text, name, description, slots, filled):
        return f'"{place}" is not where it takes that value'
    if amount := miscounted(text, name, description, slots, filled):
        return f'"{amount}" is not an amount that it takes'
    if part := _part(text, name, description, slots):
        return f'"{part}" is not what it is for'
    if other := _other_object(text, name, description, slots):
        return f'"{other}" is not what it is for'
    if words_ := _of_record(text) or _origin(text, description, slots, filled):
        return f'nothing would be done with "{words_}"'
    if other := _identifier_set(text, slots, filled):
        return f'it does not set "{other}"'
    return "it gives no new value" if _changes_nothing(head_of(text, known), text, slots, filled) else ""


def _lacking(text: str, name: str, description: str) -> str:
    """A word that the order needs: the "on" of ``turnOn``; if only the description has its verb, "as done" of that."""
    said, named = {word.lower() for word in words(mask(text))}, words_of(name)
    if "as" in named and (rest := named[named.index("as") + 1 :]) and not said.issuperset(rest):
        return f"as {' '.join(rest)}"
    first = _TWO_VERBS.match(text)
    if first and not {stem(first[1]), stem(first[2])} <= {stem(word) for word in (*named, *alike(named[0]))}:
        return "only one of the two orders"
    if len(named) > 1 and named[1] in _PARTICLES and is_verb(named[0]) and named[0] in said:
        return "" if named[1] in said else named[1]
    state = _AS.match(description)
    if state and state[1].lower() not in named and head_of(text, {state[1].lower()}) == state[1].lower():
        return "" if state[2].lower() in said else f"as {state[2]}"
    return ""


def _nouns(text: str) -> list[str]:
    """The nouns of the object of an order, lower case: "ticket" of "close the old ticket 5"."""
    masked = re.sub(r"\be-mail", "email", mask(text).lstrip(), flags=re.IGNORECASE)
    verb = re.match(r"\w+\s+(?:(?:up|down|off|on|out|back)\s+)?", masked)
    words_ = re.findall(r"[\w¤#(-]+", masked[verb.end() :] if verb else "")
    said = takewhile(lambda word: not _ENDS.search(word) and word not in PREPOSITIONS, words_)
    return [word.lower() for word in said if word not in _DETERMINERS and may_be_noun(word)]


def _another(
    text: str, name: str, description: str, known: Collection[str], slots: Sequence[Slot], filled: Collection[str]
) -> str:
    """The object of an order that a tool is not for: "account" for ``create_repository``."""
    named = kin(name)
    values = {stem(word) for slot in slots if slot.name in filled for word in slot.words}
    *before, noun = _nouns(text) or [""]
    if before and stem(noun) in values - named:
        noun = before[-1]  # a label: "move book title 'Dune'"
    if not noun or noun in FUNCTION_WORDS or stem(noun) in named:
        return ""
    verb = head_of(text, known)
    if len(words_of(name)) > 1 and stem(verb) not in named:
        return noun  # both the verb and the object are only in the description
    if noun in RESULT_NOUNS:
        return ""
    return "" if stem(noun) in (values if verb in _SETS else set()) | direct_objects(description) else noun


def other_record(text: str, name: str, description: str, slots: Sequence[Slot], filled: Mapping[str, Any]) -> str:
    """A record whose identifier went into the parameter for another one: "customer 5" for ``order_id``."""
    objects = kin(name) | direct_objects(description)
    told = {stem(word) for word in (*words_of(name), *words_of(description))}
    for slot in (slot for slot in slots if slot.name in filled and slot.identifies):
        own = {stem(word) for word in slot.words if len(word) > 1 and word not in _TYPES | IDENTIFIERS}
        given = filled[slot.name] if isinstance(filled[slot.name], list) else [filled[slot.name]]
        said_values = "|".join(re.escape(str(one)) for one in given)
        for value in re.finditer(rf"(?<![\w-])(?:{said_values})(?![\w-])", text):
            noun = _RECORD.search(text, 0, value.start())
            if slot.direction and preposition(text[: value.start()].rstrip(_QUOTES)) == slot.direction:
                continue
            if noun is None or noun.start() == 0 or not may_be_noun(noun[1]):
                continue
            said = {stem(other) for other in alike(noun[1].lower())}
            mine = bool(said & own) or (bool(said & objects) and not own & (told - said))
            if not mine and noun[1].lower() not in FUNCTION_WORDS | _TYPES:
                return f"{noun[1]} {value.group()}"
    return ""


def _part(text: str, name: str, description: str, slots: Sequence[Slot]) -> str:
    """The object of the order, if it is something of a record: "inventory" in "delete the inventory of room 5"."""
    match = _OF.match(mask(text))
    own = kin(name)
    if _GIVES.match(text):
        own |= {stem(word) for said in (words_of(description[:80]), *(slot.words for slot in slots)) for word in said}
    return match[1] if match and stem(match[1]) not in own and match[1] not in FUNCTION_WORDS | RESULT_NOUNS else ""


def _other_object(text: str, name: str, description: str, slots: Sequence[Slot]) -> str:
    """The object of an order, if it is another record of the call: "project" of "move project 1 to issue 4"."""
    match, named = _OBJECT.match(text), words_of(name)
    if match is None or match[1].lower() not in named or match[1].lower() in _SETS:
        return ""
    own = kin(name) | direct_objects(description)
    records = {stem(word) for slot in slots if slot.identifies for word in slot.words}
    return match[2] if stem(match[2]) in records - own else ""


def _of_record(text: str) -> str:
    """Something of a record that an order names instead of it: "its customer"."""
    found = _ITS.search(text) if head_of(text) not in _SETS else None
    return found.group() if found else ""


def _origin(text: str, description: str, slots: Sequence[Slot], filled: Collection[str]) -> str:
    """Where an order moves something from, or the value that it changes something to, if no parameter takes it."""
    moves = _FROM.search(mask(text)) if _MOVES.match(text) else None
    begins = [slot for slot in slots if slot.direction == "from" or FIRST & {*slot.words}]
    if moves and not any(slot.name in filled for slot in begins):
        return moves.group().strip()
    if (of := _FROM_WORDS.search(mask(text))) and not any(slot.name in filled for slot in begins):
        told = f"{description} {' '.join(slot.description for slot in slots if slot.name in filled)}".lower()
        return "" if "from" in told.split() else of.group()
    to = _TO.search(text) if _SHIFTS.match(text) else None
    return to.group().strip() if to and not any(slot.direction == "to" for slot in slots) else ""


def _identifier_set(text: str, slots: Sequence[Slot], filled: Collection[str]) -> str:
    """The word for a record's identifier that the order sets: "set the number of room 5 to 6"."""
    match = _SET.search(mask(text))
    values = {stem(word) for slot in slots if slot.name in filled and not slot.identifies for word in slot.words}
    own = {stem(word) for slot in slots if slot.identifies for word in slot.words}
    return match[1] if match and stem(match[1]) in own - values else ""


def _changes_nothing(verb: str, text: str, slots: Sequence[Slot], filled: Collection[str]) -> bool:
    """Whether an order to change a record names only the record: "update task 2"; a flag needs its value."""
    if verb not in _SETS:
        return False
    optional = [s for s in slots if s.name in filled and not s.required]
    if optional and all(s.types == {"boolean"} for s in optional) and not _TRUTH.search(text):
        return True
    if not optional and any(not s.required for s in slots) and not _GIVEN.search(mask(text)):
        return True
    if not any(slot.identifies and slot.name in filled for slot in slots):
        return False
    records = [s for s in slots if s.identifies and "array" not in s.types]
    values = [s for s in slots if s not in records and (s.types != {"boolean"} or _TRUTH.search(text))]
    return len(records) < len(slots) and not any(s.name in filled for s in values)
