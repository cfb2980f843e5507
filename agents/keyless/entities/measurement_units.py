"""Units of measurement and currencies by the ways people write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

_SPELLINGS = {
    "c": "degC", "f": "degF", "k": "kelvin", "centigrade": "degC", "st": "stone", "kph": "km/hour", "kmh": "km/hour",
    "fps": "foot/second", "btu": "Btu", "sqft": "foot**2", "sqm": "meter**2", "cc": "cm**3", "sec": "second",
    "secs": "second", "mins": "minute", "hrs": "hour", "kb": "kilobyte", "mb": "megabyte", "gb": "gigabyte",
    "tb": "terabyte", "pb": "petabyte", "kilo": "kilogram", "kilos": "kilogram", "kcal": "kilocalorie", "t": "tonne",
    '"': "inch", "nmi": "nautical_mile", "turns": "turn", "gons": "grade", "arcmin": "arcminute", "arcsec": "arcsecond",
    "fl oz": "fluid_ounce",
}  # fmt: skip
"""Spellings that pint reads as something else, or not at all."""
_AMBIGUOUS = frozenset({"ton", "tons"})
"""Names of several units of which nobody can know the one that is meant."""
_REWRITTEN = (
    (re.compile(r"\b(?:square|sq)\.? +([\w-]+)"), r"\1**2"),
    (re.compile(r"\b(?:cubic|cu)\.? +([\w-]+)"), r"\1**3"),
    (re.compile(r" +per +"), "/"),
    (re.compile(r"^([kcm]?m|ft)([23])$"), r"\1**\2"),
    (re.compile(r"²"), "**2"),
    (re.compile(r"³"), "**3"),
    (re.compile(r"^(?:degrees? +|° ?)(?=[a-z])"), ""),
    (re.compile(r"[ ‑-]+"), "_"),
)
_FAVOURED = ("USD", "EUR", "GBP", "JPY", "CHF", "CNY", "INR", "SEK")
"""Which currency a name means that several share: "dollars"."""


@cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry()


@cache
def unit_of(said: str) -> tuple[str, float] | None:
    """What a spelling measures and how large it is, in base units; equal for spellings of the same unit.

    Args:
        said: Such as ``km``, ``square feet``, ``degrees Celsius``, ``miles per hour``.
    """
    plain = re.sub(r"\s+", " ", said.strip())
    lower = plain.lower()
    if lower in _AMBIGUOUS:
        return None
    for spelling in dict.fromkeys((_SPELLINGS.get(lower, ""), plain, lower, _SPELLINGS.get(_shortened(lower), ""))):
        if spelling and (unit := _parsed(spelling)) is not None:
            return unit
    return None


def _shortened(lower: str) -> str:
    return re.sub(r"^(?:degrees? +|° ?)", "", lower)


def _parsed(spelling: str) -> tuple[str, float] | None:
    for pattern, into in _REWRITTEN:
        spelling = pattern.sub(into, spelling)
    if not re.fullmatch(r"[A-Za-zµΩ_]+(?:\*\*[23])?(?:/[A-Za-zµ_]+(?:\*\*[23])?)*", spelling):
        return None
    import pint

    try:
        unit = _registry().parse_units(spelling)
        one = _registry().Quantity(1, unit)
        kind = str(one.dimensionality) if one.dimensionality else str(unit)
        return kind, round(float(one.to_base_units().magnitude), 12)
    except (pint.errors.PintError, AttributeError, ValueError, TypeError):
        return None


def spelled_in(said: str, values: Sequence[str]) -> str | None:
    """The one of a tool's values that a text's spelling means; the spelling itself where the tool lists none.

    Args:
        said: As the text writes it.
        values: The units that a parameter accepts.
    """
    wanted = unit_of(said)
    if not values:
        return said if wanted else None
    named = [value for value in values if _plain(value) == _plain(said)]
    same = [value for value in values if wanted and unit_of(value) == wanted]
    bare = [value for value in values if wanted and unit_of(re.sub(r"\s*\(.*?\)", "", value)) == wanted]
    return next((found[0] for found in (named, same, bare) if len(found) == 1), None)


@cache
def _plain(name: str) -> str:
    words = re.sub(r"[\s‑_-]+", " ", name.lower()).strip().split()
    return " ".join(word if word.endswith("ss") or len(word) < 4 else word.removesuffix("s") for word in words)


@cache
def currency_of(said: str) -> str | None:
    """The ISO code of a currency that a text names by code, sign or name."""
    from babel.numbers import get_currency_name, get_currency_symbol, list_currencies

    plain, codes = said.strip(), list_currencies()
    if plain.upper() in codes and (plain.isupper() or len(plain) == 3):
        return plain.upper()
    named = [c for c in (*_FAVOURED, *sorted(codes)) if plain == get_currency_symbol(c, "en")]
    for code in (*_FAVOURED, *sorted(codes)):
        names = {get_currency_name(code, count, "en").lower() for count in (1, 2)}
        if plain.lower() in names or plain.lower() in {name.split()[-1] for name in names if code in _FAVOURED}:
            named.append(code)
    return named[0] if named else None
