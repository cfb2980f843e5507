"""Where something comes from and where it goes: "from 3 to 5", "into the south warehouse"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from callsheet.agents.keyless.entities.evidence import Evidence, Kind
from callsheet.agents.keyless.slots.context import Context
from callsheet.agents.keyless.slots.slot import Direction, Slot, stem
from callsheet.agents.keyless.slots.value_formats import is_mail

_BEFORE = re.compile(
    r"\b(?:(from|out\s+of|old|previous)|to|into|onto|new)\s+(?:(?:the|an?|my|our)\s+)?(?:[a-z]+\s+)?$", re.IGNORECASE
)


def direction_before(text: str) -> Direction:
    """The direction that the words before a value name; empty without such words."""
    match = _BEFORE.search(text)
    return "" if match is None else "from" if match[1] else "to"


def directed(slot: Slot, context: Context) -> Any:
    """One of two values for a pair of parameters: "link 3 to 5", "merge 7 into 2", "from 'a' to 'b'"."""
    numbers = context.pool.free(Kind.NUMBER), [s for s in context.open if s.numeric]
    addresses = context.pool.free(Kind.EMAIL), [s for s in context.open if is_mail(s)]
    for items, mine in (numbers, (context.texts, context.loose), addresses):
        pair = [s for s in mine if s.direction]
        if slot in pair and {s.direction for s in pair} == {"from", "to"} and len(pair) == 2:
            return _pair(slot, pair, context, items, alone=mine == pair)
    return None


def _pair(slot: Slot, pair: Sequence[Slot], context: Context, items: Sequence[Evidence], *, alone: bool) -> Any:
    """The value of one of two parameters; a value without a direction is the other side's if no other takes it."""
    by_side: dict[Direction, list[Any]] = {"from": [], "to": [], "": []}
    for item in items:
        by_side[direction_before(context.pool.bare[: item.start])].append(item)
    others = by_side[""] if alone else []
    if not by_side["from"] + by_side["to"]:
        return None
    for side in ("from", "to"):
        if not by_side[side] and len(others) == 1:
            by_side[side] = others
    if len(by_side["from"]) != 1 or len(by_side["to"]) != 1:
        return None
    context.filled.update({s.name: context.pool.take(by_side[s.direction][0]) for s in pair})
    return context.filled[slot.name]


_LABEL = re.compile(r"((?:[A-Za-z]+\s+){0,3}[A-Za-z]+)[\s:=]*$")
_INTO = {"into": "to", "onto": "to"}


def is_labelled(slot: Slot, before: str, slots: Sequence[Slot]) -> bool:
    """Whether the words before a value name a parameter better than any other: "new password" is no ``old_password``.

    Words that fit two parameters equally well name none of them, and "from" names nothing that something goes to.
    """
    direction = direction_before(before)
    if slot.direction and direction not in ("", slot.direction):
        return False
    if direction and slot.direction != direction and any(other.direction == direction for other in slots):
        return False
    match = _LABEL.search(before)
    said = {stem(_INTO.get(word.lower(), word)) for word in match[1].split()} if match else set()

    def fit(other: Slot) -> tuple[int, float]:
        named = {stem(word) for word in other.words}
        words = len(named & said) + (other.direction == direction != "")
        return words, words / max(len(named), 1)

    rivals = [
        other for other in slots if other is not slot and {stem(w) for w in other.words} & {stem(w) for w in slot.words}
    ]
    mine = fit(slot)
    return not mine[0] or all(fit(other) < mine for other in rivals)
