"""Closed vocabularies and flags: the values that a schema lists, found in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from callsheet.agents.keyless.entities.evidence import Pool
from callsheet.agents.keyless.slots.slot import Slot, stem, words_of

_SYNONYMS: dict[str, tuple[str, ...]] = {
    "mean": ("average",),
    "average": ("mean",),
    "std_dev": ("standard deviation",),
    "stdev": ("standard deviation",),
    "std": ("standard deviation",),
    "max": ("maximum", "largest", "highest"),
    "min": ("minimum", "smallest", "lowest"),
    "sum": ("total",),
    "asc": ("ascending",),
    "desc": ("descending",),
}
"""Synonyms of values that tools often list."""
_NEGATION = re.compile(
    r"\b(?:without|no|not|don't|never|skip|omit|exclude|disable|non|un)\b[\s-]*(?:(?:any|the|an?|to|its)\s+)?$", re.I
)
_FLAG_FILLERS = frozenset("is has have include includes use with enable enabled should do allow show only flag".split())


def fill_closed(slot: Slot, pool: Pool) -> Any:
    """The listed value in the text, or None: a value next to the parameter's name first, then the longest."""
    text = pool.rest
    found = [
        ((near, end - start, -start), value, (start, end))
        for value in slot.vocabulary
        for start, end in _places(value, text)
        for near in (_near_name(slot, text, start, end),)
        if slot.required or near or end - start > 3
    ]
    if not found:
        return None
    _, value, place = max(found, key=lambda one: one[0])
    pool.used.append(place)
    return value


def mentions(slot: Slot, pool: Pool) -> list[tuple[int, int]]:
    """The spans of listed values in the text, without overlaps, in text order."""
    found = {place for value in slot.vocabulary for place in _places(value, pool.rest)}
    ordered = sorted(found, key=lambda place: (place[0], -place[1]))
    return [place for i, place in enumerate(ordered) if not any(a <= place[0] < b for a, b in ordered[:i])]


def fill_flag(slot: Slot, pool: Pool) -> bool | None:
    """The value of a flag, from the words of its name in the text; None without them."""
    wanted = [stem(w) for w in slot.words if w not in _FLAG_FILLERS] or [stem(w) for w in slot.words]
    spoken = list(re.finditer(r"[A-Za-z]+", pool.bare))
    for index in range(len(spoken) - len(wanted) + 1):
        window = spoken[index : index + len(wanted)]
        if all(_same(stem(said.group()), want) for said, want in zip(window, wanted, strict=True)):
            inverse = bool({"no", "not", "disable", "skip", "exclude", "without"} & set(slot.words))
            return inverse or not _NEGATION.search(pool.bare[: window[0].start()])
    return None


def _same(said: str, wanted: str) -> bool:
    shorter, longer = sorted((said, wanted), key=len)
    return said == wanted or (len(shorter) > 4 and longer.startswith(shorter))


def _places(value: Any, text: str) -> Iterator[tuple[int, int]]:
    """The spans of a value in a text, in any of its spellings; for one or two letters the case counts."""
    said = str(value)
    plain = " ".join(words_of(re.sub(r"\(.*?\)", "", said))) or said
    for form in () if isinstance(value, bool) else (plain, *_SYNONYMS.get(plain.replace(" ", "_"), ())):
        short = len(said) <= 2 and form == plain
        joined = re.escape(said) if short else r"[\s_‑-]*".join(map(re.escape, form.split()))
        plural = r"(?:s|es|d|ed)?" if form[-1:].isalpha() and not short else ""
        pattern = re.compile(rf"(?<!\w){joined}{plural}(?!\w)", re.NOFLAG if short else re.IGNORECASE)
        yield from (match.span() for match in pattern.finditer(text))


def _near_name(slot: Slot, text: str, start: int, end: int) -> bool:
    around = re.findall(r"[a-z]+", text[max(0, start - 15) : start].lower())[-2:]
    around += re.findall(r"[a-z]+", text[end : end + 15].lower())[:2]
    return bool({stem(w) for w in around} & {stem(w) for w in slot.words})
