"""Time zones by the names people use, and which side of a conversion each stands on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from zoneinfo import available_timezones

from callsheet.agents.keyless.evidence import Evidence, Kind, Pool
from callsheet.agents.keyless.slots import Slot

ALIASES = {
    "new york city": "America/New_York", "nyc": "America/New_York", "boston": "America/New_York",
    "washington": "America/New_York", "washington dc": "America/New_York", "miami": "America/New_York",
    "atlanta": "America/New_York", "philadelphia": "America/New_York", "montreal": "America/Toronto",
    "ottawa": "America/Toronto", "houston": "America/Chicago", "dallas": "America/Chicago", "austin": "America/Chicago",
    "san francisco": "America/Los_Angeles", "seattle": "America/Los_Angeles", "san diego": "America/Los_Angeles",
    "las vegas": "America/Los_Angeles", "la": "America/Los_Angeles", "rio": "America/Sao_Paulo",
    "rio de janeiro": "America/Sao_Paulo", "beijing": "Asia/Shanghai", "shenzhen": "Asia/Shanghai",
    "mumbai": "Asia/Kolkata", "delhi": "Asia/Kolkata", "new delhi": "Asia/Kolkata", "bangalore": "Asia/Kolkata",
    "bengaluru": "Asia/Kolkata", "chennai": "Asia/Kolkata", "osaka": "Asia/Tokyo", "kyoto": "Asia/Tokyo",
    "hanoi": "Asia/Bangkok", "tel aviv": "Asia/Jerusalem", "abu dhabi": "Asia/Dubai", "munich": "Europe/Berlin",
    "hamburg": "Europe/Berlin", "frankfurt": "Europe/Berlin", "cologne": "Europe/Berlin", "geneva": "Europe/Zurich",
    "bern": "Europe/Zurich", "milan": "Europe/Rome", "naples": "Europe/Rome", "barcelona": "Europe/Madrid",
    "lyon": "Europe/Paris", "edinburgh": "Europe/London", "manchester": "Europe/London", "kiev": "Europe/Kyiv",
    "cape town": "Africa/Johannesburg", "canberra": "Australia/Sydney", "wellington": "Pacific/Auckland",
    "japan": "Asia/Tokyo", "china": "Asia/Shanghai", "india": "Asia/Kolkata", "singapore": "Asia/Singapore",
    "south korea": "Asia/Seoul", "korea": "Asia/Seoul", "thailand": "Asia/Bangkok", "vietnam": "Asia/Ho_Chi_Minh",
    "philippines": "Asia/Manila", "pakistan": "Asia/Karachi", "iran": "Asia/Tehran", "israel": "Asia/Jerusalem",
    "turkey": "Europe/Istanbul", "egypt": "Africa/Cairo", "kenya": "Africa/Nairobi", "nigeria": "Africa/Lagos",
    "south africa": "Africa/Johannesburg", "morocco": "Africa/Casablanca", "germany": "Europe/Berlin",
    "france": "Europe/Paris", "italy": "Europe/Rome", "spain": "Europe/Madrid", "portugal": "Europe/Lisbon",
    "poland": "Europe/Warsaw", "austria": "Europe/Vienna", "switzerland": "Europe/Zurich", "belgium": "Europe/Brussels",
    "netherlands": "Europe/Amsterdam", "denmark": "Europe/Copenhagen", "sweden": "Europe/Stockholm",
    "norway": "Europe/Oslo", "finland": "Europe/Helsinki", "greece": "Europe/Athens", "ireland": "Europe/Dublin",
    "uk": "Europe/London", "england": "Europe/London", "britain": "Europe/London", "united kingdom": "Europe/London",
    "scotland": "Europe/London", "ukraine": "Europe/Kyiv", "romania": "Europe/Bucharest", "hungary": "Europe/Budapest",
    "czechia": "Europe/Prague", "iceland": "Atlantic/Reykjavik", "peru": "America/Lima", "colombia": "America/Bogota",
    "argentina": "America/Argentina/Buenos_Aires", "venezuela": "America/Caracas", "cuba": "America/Havana",
    "jamaica": "America/Jamaica", "new zealand": "Pacific/Auckland", "hawaii": "Pacific/Honolulu",
    "utc": "UTC", "gmt": "GMT", "cet": "CET", "cest": "CET", "eet": "EET", "est": "America/New_York",
    "edt": "America/New_York", "eastern time": "America/New_York", "cst": "America/Chicago",
    "central time": "America/Chicago", "mst": "America/Denver", "mountain time": "America/Denver",
    "pst": "America/Los_Angeles", "pdt": "America/Los_Angeles", "pacific time": "America/Los_Angeles",
    "jst": "Asia/Tokyo", "bst": "Europe/London",
}  # fmt: skip
"""Cities, countries of one zone and abbreviations that the zone database does not name itself."""

_REGIONS = ("Africa/", "America/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")
_NAME = re.compile(r"[A-Za-zÀ-ÿ]+(?:[/_][A-Za-zÀ-ÿ_-]+)*")
_SOURCE = frozenset({"source", "from", "src", "origin", "base", "input", "start"})
_TARGET = frozenset({"target", "to", "dest", "destination", "output", "end"})


@dataclass(frozen=True, slots=True)
class Zone:
    """A time zone that a text names.

    Attributes:
        name: Its IANA name.
        start: Where its name begins in the text.
        end: Where it ends.
    """

    name: str
    start: int
    end: int


@cache
def _known() -> dict[str, str]:
    found: dict[str, str] = {}
    for zone in sorted(available_timezones()):
        found[zone.lower()] = zone
        if zone.startswith(_REGIONS):
            found[zone.rsplit("/", 1)[1].replace("_", " ").lower()] = zone
    return found | ALIASES


def is_zone(slot: Slot) -> bool:
    """Whether a slot takes a time zone."""
    joined = "".join(slot.words)
    return slot.textual and (
        "timezone" in joined or (slot.head in {"tz", "zone"} and "zone" in slot.description.lower())
    )


def zones_in(text: str) -> list[Zone]:
    """The time zones that a text names, in order; a lower-case name counts only after a preposition."""
    tokens = list(_NAME.finditer(text))
    found: list[Zone] = []
    index = 0
    while index < len(tokens):
        for size in (3, 2, 1):
            if index + size > len(tokens):
                continue
            start, end = tokens[index].start(), tokens[index + size - 1].end()
            said = text[start:end]
            zone = _known().get(re.sub(r"\s+", " ", said.lower()))
            if zone and _is_name(said, text[:start]):
                found.append(Zone(zone, start, end))
                index += size - 1
                break
        index += 1
    return found


def _is_name(said: str, before: str) -> bool:
    if said[0].isupper():
        return True
    return len(said) > 2 and bool(re.search(r"\b(?:in|from|to|into|of|for|at|and)\s+$|[\d:]\s*(?:am|pm)?\s+$", before))


def fill_zones(slots: Sequence[Slot], pool: Pool) -> dict[str, str]:
    """Values for the time zone slots and the clock time that goes with them."""
    wanted = [slot for slot in slots if is_zone(slot)]
    if not wanted:
        return {}
    text = pool.text
    found = zones_in(text)
    clock = next(iter(pool.free(Kind.CLOCK)), None)
    source = _source(found, clock, text)
    targets = [z for z in found if z is not source]
    target = next(
        (z for z in targets if re.search(r"\b(?:to|into)\s+$", text[: z.start])), targets[0] if targets else None
    )
    args: dict[str, str] = {}
    for slot in wanted:
        chosen = source if set(slot.words) & _SOURCE else target if set(slot.words) & _TARGET else target or source
        if chosen:
            args[slot.name] = chosen.name
            pool.used.append((chosen.start, chosen.end))
    return args


def _source(found: Sequence[Zone], clock: Evidence | None, text: str) -> Zone | None:
    for zone in found:
        if re.search(r"\bfrom\s+$", text[: zone.start]):
            return zone
    if clock is None:
        return None
    for zone in found:
        between = text[clock.end : zone.start]
        if zone.start >= clock.end and re.fullmatch(
            r"\s*(?:,\s*)?(?:o'?clock\s*)?(?:in|at)?\s*(?:the\s+)?", between, re.IGNORECASE
        ):
            return zone
    before = [
        z
        for z in found
        if z.end <= clock.start
        and re.fullmatch(r"\s*(?:it\s+is|it's|time)?\s*(?:is|at|,)?\s*", text[z.end : clock.start])
    ]
    return before[0] if before else None
