"""Whether the words before a value say that it is for its parameter: "to", "of", "from" and nouns carry content."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from callsheet.agents.keyless.entities.currencies import MONEY, currencies_in
from callsheet.agents.keyless.entities.evidence import Evidence, Kind, Pool, with_digits
from callsheet.agents.keyless.entities.measurement_units import unit_of
from callsheet.agents.keyless.language.lexicon import FUNCTION_WORDS, is_plural, may_be_noun
from callsheet.agents.keyless.language.references import opening
from callsheet.agents.keyless.slots.number_rules import COUNTS, counted
from callsheet.agents.keyless.slots.slot import ANY, CONTENT, IDENTIFIERS, Slot, stem, words_of
from callsheet.agents.safety.tool_effects import alike

_BEFORE = re.compile(
    r"\b(?:(?P<place>(?i:to|into|onto|for|with|in|on|from|at|of|by|via|as|using|under))\s+\W?)?"
    r"(?:(?i:the|an?|my|our|your|another|this|that)\s+)?(?:(?P<noun>[a-z]+)(?:\s+(?:id|number|no\.|key))?\s*[:=]?\s*)?\W?$"
)
"""The preposition and the noun before a value: "of" and "email" in "the body of email 'm_17'"."""
_BEFORE_VALUE = re.compile(
    r"\b((?i:to|into|for|with|in|on|from|at|of|by))\s+(?:(?i:the|an?|my|our|your|another|one|some)\s+)?(?:[a-z]+\s+)?$"
)
_FREE = frozenset({"", "to", "into", "onto"})
"""Prepositions that any parameter takes."""
_ORIGINS = frozenset("as by from using via".split())
"""Prepositions that tell where something comes from, or how."""
PREPOSITIONS = frozenset(
    "about as at between by for from in into of on onto over to under via with within without".split()
)
_CLAUSE_END = re.compile(r"[,.:;\n]|(?<=[a-z]{3}) and (?=[a-z]+ (?:an?|the|its|all|their)\b)")
_CHANGING = frozenset("change edit modify update".split())
_CENTS = frozenset({"cent", "cents", "smallest", "minor"})
_ADJECTIVE = re.compile(r"^\s+[a-z]+(?=\s)")
_SUMS = frozenset({"amount", "total", "size", "number"})
_AMOUNTS = frozenset({"amount", "value"})
_TEXTS = (Kind.QUOTED, Kind.IDENTIFIER, Kind.NAME, Kind.EMAIL)


def kin(text: str) -> set[str]:
    """The stems of the words of a text, or of a tool's name, and of their synonyms."""
    return {stem(other) for word in words_of(text) for other in alike(word)}


def preposition(before: str) -> str:
    """The preposition before a value, or before the noun that stands before it; empty without one."""
    match = _BEFORE_VALUE.search(before)
    return match[1].lower().replace("into", "to") if match else ""


def _noun_places(slot: Slot) -> dict[str, str]:
    """The prepositions before the words of the first sentence of the tool's description, by their stems."""
    sentence = slot.about.partition("\n")[2].split(". ")[0].split("\n")[0]
    return {stem(m.group()): preposition(sentence[: m.start()]) for m in re.finditer(r"[A-Za-z]+", sentence)}


def place_of(slot: Slot, slots: Sequence[Slot]) -> str:
    """The preposition before a parameter's noun in the first sentence of the tool's description.

    A parameter for no text in general takes the place of the only noun that no parameter is for: "Assign a ticket to a
    person" for ``assignee``.
    """
    found = _noun_places(slot)
    own = (stem(word) for word in reversed(slot.words) if word not in IDENTIFIERS)
    if place := next((found[word] for word in own if found.get(word)), ""):
        return place
    named = {stem(word) for other in slots for word in other.words}
    others = {place for noun, place in found.items() if place and noun not in named | FUNCTION_WORDS}
    return others.pop() if len(others) == 1 and not slot.says(*CONTENT, *ANY) else ""


def misplaced(text: str, name: str, description: str, slots: Sequence[Slot], filled: Mapping[str, Any]) -> str:
    """The first words before a value of an order that do not fit its parameter; empty if all do.

    Args:
        text: The step.
        name: The words of the tool's name.
        description: Its description.
        slots: Its parameters.
        filled: The values of the parameters by name.
    """
    named = kin(name)
    objects = named | direct_objects(description)
    told = {word.lower() for word in re.findall(r"[A-Za-z]+", description)}
    creates = opening(text) in alike("create") | alike("add")
    for slot in (slot for slot in slots if slot.name in filled and slot.textual | ("array" in slot.types)):
        befores = list(_befores(text, slot, filled[slot.name]))
        wrong = [
            before
            for before in befores
            if not _fits(slot, slots, objects if slot.identifies else named, told, before, creates=creates)
        ]
        if wrong and (len(wrong) == len(befores) or "array" in slot.types):
            return " ".join(filter(None, (wrong[0]["place"], wrong[0]["noun"])))
        if slot.vocabulary and opening(text) in _CHANGING and befores and not any(b["place"] for b in befores):
            return str(filled[slot.name])  # "change the student plan of account 9" tells the old one
        if slot.vocabulary and befores and all(_describes(slot, text, before) for before in befores):
            return f"{befores[0].group().strip()} {filled[slot.name]}"
        if slot.identifies and _TIME.fullmatch(str(filled[slot.name])):
            return str(filled[slot.name])
    for flag in (slot for slot in slots if filled.get(slot.name) is True):
        found = [m for m in map(_BEFORE.search, _heads(text, flag)) if m]
        if found and all(_describes(flag, text, before) for before in found):
            return " ".join(flag.words)
    return ""


def _heads(text: str, flag: Slot) -> list[str]:
    """The text before each place where the first word of a flag is said."""
    bare = Pool.of(text).bare
    return [bare[: match.start()] for match in re.finditer(rf"\b{re.escape(flag.words[0])}\b", bare, re.IGNORECASE)]


def direct_objects(description: str) -> set[str]:
    """The stems of the words between the verb that opens a description and the first preposition or comma."""
    first = _CLAUSE_END.split(description.strip(), maxsplit=1)[0]
    said = takewhile(lambda word: word.lower() not in PREPOSITIONS, first.split()[1:])
    return kin(" ".join(said))


def miscounted(text: str, name: str, description: str, slots: Sequence[Slot], filled: Mapping[str, Any]) -> str:
    """The first number of an order that says what another thing costs, counts or measures; empty if all fit."""
    named = {stem(word) for word in words_of(name)}
    told = {stem(word) for word in re.findall(r"[A-Za-z]+", description)}
    pool = Pool.of(with_digits(text))
    for slot in (slot for slot in slots if slot.name in filled and slot.numeric):
        items = [item for item in pool.free(Kind.NUMBER) if item.value == filled[slot.name]]
        if items and all(_is_other_amount(slot, pool, item, named, told) for item in items):
            return pool.text[items[0].start : items[0].end]
    return ""


def _is_other_amount(slot: Slot, pool: Pool, item: Evidence, named: set[str], told: set[str]) -> bool:
    """Whether a number is an amount of money, a count or a fraction that a parameter does not take."""
    after, before = pool.bare[item.end :], pool.bare[: item.start]
    about = {*slot.words, *words_of(slot.description)}
    if any(
        not after[: money.start - item.end].strip() if money.start >= item.end else not before[money.end :].strip()
        for money in currencies_in(pool.bare)
    ):
        return bool(about & _CENTS) or not (MONEY & about or slot.head in _AMOUNTS)
    if "integer" in slot.types and "." in pool.text[item.start : item.end]:
        return True
    noun = counted(after) or counted(_ADJECTIVE.sub("", after))
    if noun and stem(noun) in named and slot.head not in COUNTS - _SUMS and not is_plural(slot.head):
        return True  # "two bonuses" is no amount
    if noun is None or slot.says(*COUNTS) or unit_of(noun) is not None:
        return False
    if stem(noun) in map(stem, slot.words):
        return not is_plural(slot.head)  # "2 tables" is not table 2
    return stem(noun) in named or stem(noun) not in told | {stem(word) for word in about}


_VERB_ALONE = re.compile(r"\W*(\w+)\s+")
_DETERMINED = re.compile(r"\b(?:of|and|the|this|that|these|those|my|our|its)\s+(?:the\s+)?$", re.IGNORECASE)
_OF_THE = re.compile(r"\b(?:of|and)\s+(?:the\s+)?$", re.IGNORECASE)
_RECORD_AFTER = re.compile(r"\w{0,40}(?: \w{1,40})?['\"]?\s+([a-z]+)\s+\W?[A-Z\d]")
_TIME = re.compile(r"\d{1,2}:\d\d(?::\d\d)?|\d{4}-\d\d-\d\d.*")
_NOUN_AFTER = re.compile(r"\w*\s+([a-z]+)\b")


def _describes(slot: Slot, text: str, before: re.Match[str]) -> bool:
    """Whether a word tells which record is meant, and is no new value: "the closed issue 45"."""
    first = _VERB_ALONE.fullmatch(before.string)
    if not (_DETERMINED.search(before.string) or (first and first[1].lower() not in alike("create") | alike("add"))):
        return False
    after = (_RECORD_AFTER if slot.required else _NOUN_AFTER).match(text, before.end())
    noun = after is not None and after[1] not in FUNCTION_WORDS and stem(after[1]) not in map(stem, slot.words)
    return noun or (not slot.required and bool(_OF_THE.search(before.string)))


def _befores(text: str, slot: Slot, value: Any) -> Iterator[re.Match[str]]:
    """What stands before each place where a value is said; for a list, before each of its values."""
    values = {str(one) for one in (value if isinstance(value, list) else [value])}
    pool = Pool.of(text)
    if slot.vocabulary:
        spans = (m.span() for one in values for m in re.finditer(rf"(?<!\w){re.escape(one)}(?!\w)", text, re.I))
    else:
        spans = ((item.start, item.end) for item in pool.items if item.kind in _TEXTS and str(item.value) in values)
    yield from (match for start, _ in spans if (match := _BEFORE.search(pool.bare[:start])))


def _fits(
    slot: Slot, slots: Sequence[Slot], named: set[str], told: set[str], before: re.Match[str], *, creates: bool
) -> bool:
    place, noun = (before["place"] or "").lower(), before["noun"] or ""
    if before.start("noun") == 0 or noun in FUNCTION_WORDS | {"saying"} or not may_be_noun(noun):
        noun = ""
    own = {stem(word) for word in slot.words}
    about = told | {word.lower() for word in re.findall(r"[A-Za-z]+", slot.description)}
    if noun and stem(noun) in own:
        return place not in _ORIGINS or place in about or place == slot.direction
    others = {stem(word) for other in slots if other is not slot for word in other.words} - named
    if noun and (stem(noun) in others or place == "of"):
        return False
    if noun and stem(noun) not in named and noun not in (*ANY, *CONTENT):
        told_so = stem(noun) in map(stem, words_of(slot.description))
        return told_so or (bool(place) and _noun_places(slot).get(stem(noun)) == place)
    if noun and creates and noun not in (*ANY, *CONTENT) and not (slot.identifies or slot.says(*ANY, *CONTENT)):
        return False  # the name of what is made: "create invoice 'x'" is no customer
    if place and place in (slot.direction, place_of(slot, slots)):
        return True
    if place in _FREE or slot.vocabulary:
        return place not in _ORIGINS or place in about
    return not slot.identifies and place not in ("of", *_ORIGINS) and (place == "with" or place in about)
