"""Time zones by common names, and their side in a conversion."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from zoneinfo import available_timezones

from callsheet.agents.keyless.entities.evidence import Evidence, Kind, Named, Pool
from callsheet.agents.keyless.slots.slot import Slot

_ABBREVIATIONS = {
    "utc": "UTC", "gmt": "GMT", "cet": "CET", "cest": "CET", "eet": "EET", "est": "America/New_York",
    "edt": "America/New_York", "mst": "America/Denver", "pst": "America/Los_Angeles", "pdt": "America/Los_Angeles",
    "jst": "Asia/Tokyo", "uk": "Europe/London", "nyc": "America/New_York",
}  # fmt: skip
_REGIONS = ("Africa/", "America/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")
_NAME = re.compile(r"[^\W\d_]+(?:[/_][^\W\d_]+)*")
_BEFORE = re.compile(r"\b(?:in|from|to|into|of|for|at|and)\s+$|[\d:]\s*(?:am|pm)?\s+$")
_SOURCE = frozenset({"source", "from", "src", "origin", "base", "input", "start"})
_TARGET = frozenset({"target", "to", "dest", "destination", "output", "end"})
_MOST = 0.8
"""Share of a country's airports in one time zone from which the country's name means that zone."""


@cache
def _known() -> dict[str, str]:
    """Names in lower case -> zone: IANA names, cities with an airport, countries with one zone."""
    import airportsdata
    from babel import Locale

    cities, countries = defaultdict(set), defaultdict(list)
    for airport in airportsdata.load("IATA").values():
        cities[airport["city"].lower()].add(airport["tz"])
        countries[airport["country"]].append(airport["tz"])
    found = {city: next(iter(zones)) for city, zones in cities.items() if len(zones) == 1}
    names = Locale("en").territories
    for code, zones in countries.items():
        zone, count = Counter(zones).most_common(1)[0]
        if count >= _MOST * len(zones) and code in names:
            found[names[code].lower()] = zone
    for zone in sorted(available_timezones()):
        found[zone.lower()] = zone
        if zone.startswith(_REGIONS):
            found[zone.rsplit("/", 1)[1].replace("_", " ").lower()] = zone
    return found | _ABBREVIATIONS


def is_zone(slot: Slot) -> bool:
    """Whether a slot takes a time zone."""
    joined = "".join(slot.words)
    return slot.textual and (
        "timezone" in joined or (slot.head in {"tz", "zone"} and "zone" in slot.description.lower())
    )


def zones_in(text: str) -> list[Named]:
    """The time zones in a text, in order; a name in lower case counts only after a preposition."""
    tokens = list(_NAME.finditer(text))
    found: list[Named] = []
    for index, token in enumerate(tokens):
        for last in reversed(tokens[index : index + 3]):
            said = text[token.start() : last.end()]
            zone = _known().get(" ".join(said.lower().split()))
            named = said[0].isupper() or (len(said) > 2 and _BEFORE.search(text[: token.start()]))
            if zone and named and (not found or found[-1].end <= token.start()):
                found.append(Named(zone, token.start(), last.end()))
                break
    return found


def fill_zones(slots: Sequence[Slot], pool: Pool) -> dict[str, str]:
    """Values for the time zone parameters: the zone of the given clock time, and the zone that is asked for."""
    wanted = [slot for slot in slots if is_zone(slot)]
    if not wanted:
        return {}
    found = zones_in(pool.text)
    source = _source(found, next(iter(pool.free(Kind.CLOCK)), None), pool.text)
    target = next((zone for zone in found if zone is not source), None)
    args: dict[str, str] = {}
    for slot in wanted:
        chosen = source if set(slot.words) & _SOURCE else target if set(slot.words) & _TARGET else target or source
        if chosen:
            args[slot.name] = chosen.value
            pool.used.append((chosen.start, chosen.end))
    return args


def _source(found: Sequence[Named], clock: Evidence | None, text: str) -> Named | None:
    """The zone of a given clock time: "from X", "9:30 in X", "X at 9:30"."""
    for zone in found:
        if re.search(r"\bfrom\s+$", text[: zone.start]):
            return zone
    if clock is None:
        return None
    for zone in found:
        after, before = text[clock.end : zone.start], text[zone.end : clock.start]
        if zone.start >= clock.end and re.fullmatch(r"\s*,?\s*(?:o'?clock\s*)?(?:in|at)?\s*(?:the\s+)?", after, re.I):
            return zone
        if zone.end <= clock.start and re.fullmatch(r"\s*(?:it\s+is|it's|time)?\s*(?:is|at|,)?\s*", before):
            return zone
    return None
