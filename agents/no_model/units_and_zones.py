"""Units of measurement and time zones by their names."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any
from zoneinfo import available_timezones

from callsheet.graphs.text.words import tokens

_UNIT = re.compile(r"[A-Za-zµΩ°²³/ ‑-]{1,60}")
_DEGREES = re.compile(r"^(?:degrees? |° ?)(?=[A-Za-z])")
_ROUNDING = 1e-6
_REGIONS = ("Africa/", "America/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")


def unit_in(said: str, choices: Sequence[str]) -> str | None:
    """The only one of a tool's units that a name means: by its words, else by pint's unit, else by its size."""
    words = tokens(said)
    named = [choice for choice in choices if words and tokens(choice) == words]
    if named:
        return named[0] if len(named) == 1 else None
    meant = _unit(said)
    known = [(choice, unit) for choice in choices if meant and (unit := _unit(choice)) is not None]
    equal = [choice for choice, unit in known if unit == meant]
    equal = equal or [choice for choice, unit in known if meant and unit[1:] == meant[1:]]
    return equal[0] if len(equal) == 1 else None


def total(parts: Sequence[tuple[float, str]]) -> float | None:
    """A quantity in several units, in the last of them; None unless each unit is a fraction of the one before."""
    units = [_unit(name) for _, name in parts]
    known = [unit for unit in units if unit is not None]
    sizes = [unit[2] for unit in known]
    if len(known) < len(parts) or len({unit[1] for unit in known}) > 1 or sizes != sorted(set(sizes), reverse=True):
        return None
    found = sum(amount * size for (amount, _), size in zip(parts, sizes, strict=True)) / sizes[-1]
    return round(found) if abs(found - round(found)) < _ROUNDING else round(found, 9)


@lru_cache(maxsize=4096)
def _unit(said: str) -> tuple[str, str, float] | None:
    """Name, dimension and size of a unit; None if pint does not know it."""
    import pint

    if not _UNIT.fullmatch(said):
        return None
    for spelling in dict.fromkeys((_DEGREES.sub("", said), _DEGREES.sub("", said).lower())):
        try:
            unit = _registry().parse_units(spelling)
            size = _registry().Quantity(2, unit).to_base_units()  # a scale with an offset, as Celsius, is itself alone
        except (pint.errors.PintError, AttributeError, ValueError, TypeError, RecursionError):
            continue
        return str(unit), str(size.dimensionality), round(float(size.magnitude), 9)
    return None


@cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry()


def zone_of(said: str) -> str | None:
    """The time zone of a place: an IANA name, a city, or a country in one zone; None for others."""
    return _zones().get(said.lower())


@cache
def _zones() -> dict[str, str]:
    import airportsdata
    from babel import Locale

    cities, countries = defaultdict(set), defaultdict(set)
    names = Locale("en").territories
    for airport in airportsdata.load("IATA").values():
        cities[airport["city"].lower()].add(airport["tz"])
        countries[names.get(airport["country"], "").lower()].add(airport["tz"])
    found = {place: next(iter(zones)) for place, zones in (*cities.items(), *countries.items()) if len(zones) == 1}
    for zone in sorted(available_timezones()):
        found[zone.lower()] = zone
        if zone.startswith(_REGIONS):
            found[zone.rsplit("/", 1)[1].replace("_", " ").lower()] = zone
    return found
