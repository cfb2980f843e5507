"""Rules for numbers: which of a text's numbers a slot takes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from callsheet.agents.keyless.entities.evidence import Evidence, Kind, Pool
from callsheet.agents.keyless.entities.measurement_units import unit_of
from callsheet.agents.keyless.language.lexicon import is_noun, is_plural
from callsheet.agents.keyless.slots.context import Context
from callsheet.agents.keyless.slots.slot import FIRST, LAST, Slot, stem, words_of

_OPERANDS = re.compile(
    r"[\s,;x×/*+]*(?:(?:and|to|by|with|plus|minus|times|divided\s+by|to\s+the\s+power\s+of)\b)?\s*", re.IGNORECASE
)
"""Between two numbers in the order of the parameters; not "subtract 3 from 10", nor "5 songs of 2020"."""
_NOUN_AFTER = re.compile(r"\s+([a-z]+)\b")
_ONE_OF = re.compile(r"\s+(?:of\s+(?:the|my|our|its|their)\s+)?([a-z]+)\b")
_NOUN_BEFORE = re.compile(r"\b([a-z]+)\s+(?:(?:number|no\.?|id)\s+)?#?$", re.IGNORECASE)
_OF = re.compile(r"(?<!\ban\s)(?<!\ba\s)\b(\w+)\s+of\s+$", re.IGNORECASE)
"""Not "a bonus of 500"."""
GROUPED = re.compile(r"0\d|\d+,\d")
"""Numbers that are no plain identifiers: with zeros before them, or commas."""
COUNTS = frozenset("amount count k limit max maximum n num number qty quantity size top total".split())
"""Names of parameters that count what the tool is about."""
_POSITIONS = frozenset("at begin column end first from index last line offset page position row start".split())
"""Words in the names of parameters that take a position: "2 rows" is not row 2."""
_RANGE = re.compile(r"\bfrom\s+[-+]?\d[\d.,]*\s+to\s+[-+]?\d", re.IGNORECASE)
_BETWEEN = re.compile(r"\s*(?:[,;]|,?\s*(?:and|&)\s)?\s*", re.IGNORECASE)
_PERCENT = re.compile(r"\s*(?:%|per\s?cent\b)", re.IGNORECASE)
_TIMES_A_YEAR = {
    "yearly": 1,
    "annually": 1,
    "semiannually": 2,
    "quarterly": 4,
    "monthly": 12,
    "weekly": 52,
    "daily": 365,
}
_OFTEN = re.compile(rf"\b(?:{'|'.join(_TIMES_A_YEAR)})\b", re.IGNORECASE)


def frequency(slot: Slot, context: Context) -> int | None:
    """Times per year, for a parameter with "per year" in its name."""
    found = _OFTEN.search(context.pool.rest) if slot.numeric and {"per", "year"} <= set(slot.words) else None
    if found is None:
        return None
    context.pool.used.append(found.span())
    return _TIMES_A_YEAR[found.group().lower()]


def listed(pool: Pool) -> list[Evidence]:
    """The first numbers with nothing but commas, "and" or spaces between them: "1 to 5" and "3/4" are no lists."""
    listed: list[Evidence] = []
    for item in pool.free(Kind.NUMBER):
        if listed and not _BETWEEN.fullmatch(pool.text, listed[-1].end, item.start):
            break
        listed.append(item)
    joints = [pool.text[one.end : other.start] for one, other in pairwise(listed)]
    grouped = any("," in pool.text[item.start : item.end] for item in listed)
    return [] if grouped and (len(listed) == 1 or "," in joints) else listed


def number(slot: Slot, context: Context) -> Any:
    """The remaining numbers, in order, if there are as many as slots; otherwise the only remaining one."""
    rivals = [s for s in context.open if s.numeric]
    if slot not in rivals:
        return None
    left = [i for i in context.pool.free(Kind.NUMBER) if not _counts_other(context.pool.bare[i.end :], rivals)]
    given = context.numbers
    if any(s.identifies for s in rivals):
        left, given = [i for i in left if not counts_record(slot, context.pool.bare[i.end :])], []
    if any(GROUPED.match(context.pool.text, item.start) for item in left if slot.identifies):
        return None
    if not slot.identifies:
        left = [item for item in left if not names_record(context.slots, slot, context.pool.bare[: item.start])]
    shares = [item for item in left if _PERCENT.match(context.pool.text, item.end)]
    if [s for s in rivals if s.takes_percentage] == [slot] and len(shares) == 1:
        return taken(slot, context.pool, shares[0])
    joints = (context.pool.text[one.end : other.start] for one, other in pairwise(left))
    in_order = _is_named(context) and all(joint.strip() and _OPERANDS.fullmatch(joint) for joint in joints)
    ranged = _RANGE.search(context.pool.bare) and not all((FIRST | LAST).intersection(s.words) for s in rivals)
    in_order = in_order and not ranged and not any(s.direction for s in rivals)
    in_order = in_order and sum(s.identifies for s in rivals) < 2  # which of two records is which is not said
    if len(given) + len(left) == len(rivals) and (len(rivals) == 1 or in_order):
        found = [*given, *(taken(s, context.pool, item) for s, item in zip(rivals[len(given) :], left, strict=True))]
        context.pool.uses_results |= bool(given)
        context.filled.update(zip((s.name for s in rivals), found, strict=True))
        return context.filled[slot.name]
    if len(rivals) == 1 and len(left) == 1:
        return taken(slot, context.pool, left[0])
    return None


def counted(after: str) -> str | None:
    """The plural noun that a number counts: "3 orders" is not order 3."""
    match = _NOUN_AFTER.match(after)
    return match[1] if match and is_plural(match[1]) else None


def counts_record(slot: Slot, after: str) -> bool:
    """Whether a number counts records: "3 orders", and "1 reminder" for the tool ``delete_reminder``."""
    match = _ONE_OF.match(after)
    own = {stem(word) for word in (*slot.words, *words_of(slot.about.partition("\n")[0]))}
    return counted(after) is not None or bool(
        match and stem(match[1]) in own and (is_noun(match[1]) or is_plural(match[1]))
    )


def names_record(slots: Sequence[Slot], slot: Slot, before: str) -> bool:
    """Whether the words before a number say that it identifies a record: no price is "room 102", or "of 102"."""
    if any(other.identifies for other in slots) and not slot.identifies and _OF.search(before):
        return True
    nouns = {stem(word) for other in slots if other.identifies for word in other.words[:-1]}
    match = _NOUN_BEFORE.search(before)
    return match is not None and stem(match[1]) in nouns - set(map(stem, slot.words))


def _counts_other(after: str, slots: Sequence[Slot]) -> bool:
    """Whether a number counts something that no parameter counts: "2 plants" for litres, "2 rows" for a row."""
    noun = counted(after)
    if noun is None or any(slot.says(*COUNTS) for slot in slots):
        return False
    if any(not _POSITIONS.isdisjoint(slot.words) for slot in slots):
        return True
    said = {stem(word) for slot in slots for word in (*slot.words, *re.findall(r"[a-z]+", slot.note.lower()))}
    return stem(noun) not in said and unit_of(noun) is None


def _is_named(context: Context) -> bool:
    """Whether the text names the tool, or the tool's name is unknown; otherwise its numbers may be unrelated."""
    name = context.slots[0].about.partition("\n")[0]
    said = {stem(word) for word in re.findall(r"[a-z]+", context.pool.bare.lower())}
    return not name.strip() or any(stem(word) in said for word in words_of(name))


def taken(slot: Slot, pool: Pool, item: Evidence) -> Any:
    """The value of a piece of evidence as a parameter takes it: 5 % as .05 for a share."""
    value, percent = pool.take(item), _PERCENT.match(pool.text, item.end) if item.kind is Kind.NUMBER else None
    if percent and slot.takes_percentage:
        pool.used.append(percent.span())
        return round(value / 100, 12) if slot.is_share else value
    return value
