"""Dates and times in a text, and the parameters that take them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from typing import Any

from callsheet.agents.keyless.entities.evidence import Evidence, Kind, Pool
from callsheet.agents.keyless.slots.slot import LAST, Slot, stem

_ROLES = {
    "before": ({"before"}, {"before"}),
    "after": ({"after"}, {"after"}),
    "until": ({"until", "till", "through", "to", "by"}, {"until", "till", "to", "end", "latest", "max", "by"}),
    "since": ({"since", "from", "starting", "between"}, {"since", "from", "start", "begin", "earliest", "min"}),
}
"""Sides of a period: the words before a date, and the words of parameters."""
_WHEN = frozenset(map(stem, "at date datetime day deadline on scheduled time timestamp when".split()))
"""Words of parameters that take any date."""
_MOMENTS = frozenset("arrival begin birthday checkin checkout deadline departure due end start until".split())
_DUE = ("checkout", "deadline", "departure", "due", "expires", "expiry", "expiration", "return", "valid")
"""Words of parameters for the last moment of something."""
_CHECKS = (("check", "in"), ("check", "out"))
_DATE_ROLE = re.compile(r"\b(before|after|until|till|through|to|by|since|from|starting|between)\s+$", re.IGNORECASE)
_TIMED = re.compile(r"ISO[ -]?8601|RFC[ -]?3339|\bdate-?time\b|\btimestamp\b|DDT", re.IGNORECASE)
"""What the description of a parameter says that takes a date with a time."""
_WRITTEN = ("%d %B %Y", "%d %b %Y", "%B %d %Y", "%b %d %Y")
_AT, _ON = re.compile(r"\s*,?\s*(?:at\s+)?", re.IGNORECASE), re.compile(r"\s*,?\s*(?:on\s+(?:the\s+)?)?", re.IGNORECASE)
"""Between a date and a time, and between a time and a date."""


def iso_date(said: str) -> str:
    """A date in ISO 8601, with the time that it has: "3rd of May, 2027"; empty without a year, or if there is none."""
    if re.match(r"\d{4}-", said):
        try:
            date.fromisoformat(said[:10])
        except ValueError:
            return ""
        return said.replace(" ", "T")
    plain = re.sub(r"(?<=\d)(?:st|nd|rd|th)\b|\bof\b|[.,]", " ", said, flags=re.IGNORECASE)
    for form in _WRITTEN:
        try:
            return datetime.strptime(" ".join(plain.split()), form).date().isoformat()
        except ValueError:
            continue
    return ""


def _date(slot: Slot, pool: Pool) -> str | None:
    """A date in ISO 8601."""
    found = [item for item in pool.free(Kind.DATE) if len(iso_date(item.value)) == len("2027-05-01")]
    fitting = _in_role(slot, pool, found) if _is_meant(slot, pool) else []
    return iso_date(pool.take(fitting[0])) if fitting else None


def _timed(slot: Slot, pool: Pool) -> str | None:
    """A date with a time, in ISO 8601; a text with one date may give it several times."""
    fitting = _in_role(slot, pool, list(_timed_dates(pool))) if _is_meant(slot, pool) else []
    if not fitting:
        return None
    pool.used += [(i.start, i.end) for i in pool.free(Kind.DATE) if iso_date(i.value) == fitting[0].value[:10]]
    return str(pool.take(fitting[0]))


def _timed_dates(pool: Pool) -> Iterator[Evidence]:
    dates = [item for item in pool.items if item.kind is Kind.DATE and iso_date(item.value)]
    yield from (Evidence(i.kind, v, i.start, i.end) for i in pool.free(Kind.DATE) if "T" in (v := iso_date(i.value)))
    for clock in pool.free(Kind.CLOCK):
        for day in (day for day in dates if "T" not in iso_date(day.value)):
            first, last = sorted((day, clock), key=lambda item: item.start)
            beside = (_AT if first is day else _ON).fullmatch(pool.text, first.end, last.start)
            if beside or len(dates) == 1:
                start, end = (first.start, last.end) if beside else (clock.start, clock.end)
                yield Evidence(Kind.DATE, f"{iso_date(day.value)}T{clock.value}:00", start, end)


def _moment(slot: Slot, pool: Pool) -> Any:
    """A date or a time of day, for a parameter such as ``checkIn`` or ``end`` whose schema does not say which."""
    return _date(slot, pool) or _clock(slot, pool)


def _is_moment(slot: Slot) -> bool:
    return slot.words in _CHECKS or (len(slot.words) == 1 and slot.head in _MOMENTS)


def _clock(slot: Slot, pool: Pool) -> Any:
    """A time of day."""
    fitting = _in_role(slot, pool, pool.free(Kind.CLOCK))
    return pool.take(fitting[0]) if fitting else None


def _in_role(slot: Slot, pool: Pool, items: Sequence[Evidence]) -> list[Evidence]:
    """The dates or times for a parameter; of two parameters for a period, the first takes the one after "from"."""
    roles = {item.start: _role_before(pool.bare[: item.start]) for item in items}
    fitting = [item for item in items if _has_role(slot, roles[item.start])]
    if labelled := [item for item in fitting if _is_labelled(slot, pool.bare[: item.start])]:
        return labelled
    if "since" not in roles.values():
        return fitting
    return sorted(fitting, key=lambda item: roles[item.start] in ("until", "before"))


def _is_labelled(slot: Slot, before: str) -> bool:
    word = re.search(r"([A-Za-z]+)[\s:=]+$", before)
    return word is not None and stem(word[1]) in map(stem, slot.words) and stem(word[1]) not in _WHEN


def _is_meant(slot: Slot, pool: Pool) -> bool:
    """Whether a date may be for an optional parameter: one for a birthday needs that word."""
    about = {*map(stem, slot.words)} - _WHEN
    role = any(not named.isdisjoint(slot.words) for _, named in _ROLES.values())
    said = {stem(word) for word in re.findall(r"[a-z]+", pool.bare.lower())}
    return slot.required or role or not about or bool(about & said)


def _role_before(text: str) -> str:
    """The side of a period that the words before a date name: ``since`` for "from"; empty without such words."""
    match = _DATE_ROLE.search(text)
    word = match[1].lower() if match else ""
    return next((role for role, (said, _) in _ROLES.items() if word in said), "")


def _has_role(slot: Slot, said: str) -> bool:
    """Whether a date with these words before it is for a slot: "before 1 May" not for ``due_after``."""
    own = next((role for role, (_, named) in _ROLES.items() if not named.isdisjoint(slot.words)), "")
    if own:
        return said == own or (slot.required and not said)
    return said == "" or (said == "until" and slot.says(*_DUE, *LAST)) or (slot.required and said == "since")


def _is_clock(slot: Slot) -> bool:
    named = slot.spec.get("format") == "time" or "HH:MM" in slot.description
    return named or slot.name in {"time", "at", "start_time", "end_time"}


def _is_timed(slot: Slot) -> bool:
    return slot.spec.get("format") == "date-time" or bool(_TIMED.search(slot.description))


def _is_date(slot: Slot) -> bool:
    return slot.spec.get("format") == "date" or slot.says("date")


DATES: tuple[tuple[Callable[[Slot], bool], Callable[[Slot, Pool], Any]], ...] = (
    (_is_timed, _timed),
    (_is_date, _date),
    (_is_clock, _clock),
    (_is_moment, _moment),
)
"""Which parameters take dates and times, and how to find the value; the first match counts."""
