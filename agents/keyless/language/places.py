"""Whether the words before a value say that it is for its parameter: "to", "of", "from" and nouns carry content."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from callsheet.agents.keyless.entities.evidence import Kind, Pool
from callsheet.agents.keyless.language.lexicon import FUNCTION_WORDS, is_noun, is_plural
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
_TEXTS = (Kind.QUOTED, Kind.IDENTIFIER, Kind.NAME, Kind.EMAIL)


def preposition(before: str) -> str:
    """The preposition before a value, or before the noun that stands before it; empty without one."""
    match = _BEFORE_VALUE.search(before)
    return match[1].lower().replace("into", "to") if match else ""


def place_of(slot: Slot, slots: Sequence[Slot]) -> str:
    """The preposition before a parameter's noun in the first sentence of the tool's description.

    A parameter for no text in general takes the place of the only noun that no parameter is for: "Assign a ticket to a
    person" for ``assignee``.
    """
    sentence = slot.about.partition("\n")[2].split(". ")[0].split("\n")[0]
    found = {stem(m.group()): preposition(sentence[: m.start()]) for m in re.finditer(r"[A-Za-z]+", sentence)}
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
    named = {stem(other) for word in words_of(name) for other in alike(word)}
    told = {word.lower() for word in re.findall(r"[A-Za-z]+", description)}
    for slot in (slot for slot in slots if slot.name in filled and slot.textual | ("array" in slot.types)):
        befores = list(_befores(text, slot, filled[slot.name]))
        if befores and not any(_fits(slot, slots, named, told, before) for before in befores):
            return " ".join(filter(None, (befores[0]["place"], befores[0]["noun"])))
    return ""


def _befores(text: str, slot: Slot, value: Any) -> Iterator[re.Match[str]]:
    """What stands before each place where a value is said; for a list, before each of its values."""
    values = {str(one) for one in (value if isinstance(value, list) else [value])}
    pool = Pool.of(text)
    if slot.vocabulary:
        spans = (m.span() for one in values for m in re.finditer(rf"(?<!\w){re.escape(one)}(?!\w)", text, re.I))
    else:
        spans = ((item.start, item.end) for item in pool.items if item.kind in _TEXTS and str(item.value) in values)
    yield from (match for start, _ in spans if (match := _BEFORE.search(pool.bare[:start])))


def _fits(slot: Slot, slots: Sequence[Slot], named: set[str], told: set[str], before: re.Match[str]) -> bool:
    place, noun = (before["place"] or "").lower(), before["noun"] or ""
    if before.start("noun") == 0 or noun in FUNCTION_WORDS | {"saying"} or not (is_noun(noun) or is_plural(noun)):
        noun = ""
    own = {stem(word) for word in slot.words}
    about = told | {word.lower() for word in re.findall(r"[A-Za-z]+", slot.description)}
    if noun and stem(noun) in own:
        return place not in _ORIGINS or place in about or place == slot.direction
    others = {stem(word) for other in slots if other is not slot for word in other.words} - named
    if noun and (stem(noun) in others or place == "of"):
        return False
    if noun and stem(noun) not in named and noun not in (*ANY, *CONTENT):
        return noun in about
    if place and place in (slot.direction, place_of(slot, slots)):
        return True
    if place in _FREE or slot.vocabulary:
        return place not in _ORIGINS or place in about
    return not slot.identifies and place not in ("of", *_ORIGINS) and (place == "with" or place in about)
