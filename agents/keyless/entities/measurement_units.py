"""Units of measurement in their common spellings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

_SPELLINGS = {
    "c": "degC", "f": "degF", "k": "kelvin", "centigrade": "degC", "st": "stone", "kph": "km/hour", "kmh": "km/hour",
    "sqft": "foot**2", "sqm": "meter**2", "cc": "cm**3", "sec": "second", "secs": "second", "mins": "minute",
    "hrs": "hour", "kb": "kilobyte", "mb": "megabyte", "gb": "gigabyte", "tb": "terabyte", "kilo": "kilogram",
    "kilos": "kilogram", "kcal": "kilocalorie", "t": "tonne", "fl oz": "fluid_ounce",
}  # fmt: skip
"""Spellings that pint does not know, or reads as another unit."""
_AMBIGUOUS = frozenset({"ton", "tons", "NM", "Kb", "Mb", "Gb", "Tb"})
"""Names that several units share: "Mb" is a megabit, and often written for a megabyte."""
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


@cache
def _registry() -> Any:
    import pint

    return pint.UnitRegistry()


def unit_of(said: str) -> tuple[str, float] | None:
    """Dimension and size in base units of a unit such as ``km`` or ``square feet``; None if it is unknown.

    Different spellings of one unit give equal results.
    """
    unit = _unit(said)
    return unit and unit[:2]


@cache
def _unit(said: str) -> tuple[str, float, str] | None:
    """As ``unit_of``, with pint's name of the unit: a millilitre is as large as a cubic centimetre."""
    plain = re.sub(r"\s+", " ", said.strip())
    lower = plain.lower()
    if {plain, lower} & _AMBIGUOUS:
        return None
    for spelling in dict.fromkeys(
        (_SPELLINGS.get(lower, ""), plain, lower, _SPELLINGS.get(re.sub(r"^(?:degrees? +|° ?)", "", lower), ""))
    ):
        if spelling and (unit := _parsed(spelling)) is not None:
            return unit
    return None


def _parsed(spelling: str) -> tuple[str, float, str] | None:
    for pattern, into in _REWRITTEN:
        spelling = pattern.sub(into, spelling)
    if not re.fullmatch(r"[A-Za-zµΩ_]+(?:\*\*[23])?(?:/[A-Za-zµ_]+(?:\*\*[23])?)*", spelling):
        return None
    import pint

    try:
        unit = _registry().parse_units(spelling)
        one = _registry().Quantity(1, unit)
        kind = str(one.dimensionality) if one.dimensionality else str(unit)
        return kind, round(float(one.to_base_units().magnitude), 12), str(unit)
    except (pint.errors.PintError, AttributeError, ValueError, TypeError):
        return None


def spelled_in(said: str, values: Sequence[str]) -> str | None:
    """The accepted value that a spelling means; the spelling itself if the tool accepts any unit."""
    wanted = unit_of(said)
    if not values:
        return said if wanted else None
    named = [value for value in values if _plain(value) == _plain(said)]
    own = [value for value in values if wanted and _unit(value) == _unit(said)]
    same = [value for value in values if wanted and unit_of(value) == wanted]
    bare = [value for value in values if wanted and unit_of(re.sub(r"\s*\(.*?\)", "", value)) == wanted]
    return next((found[0] for found in (named, own, same, bare) if len(found) == 1), None)


def meanings(said: str, values: Sequence[str]) -> tuple[str, ...]:
    """The accepted values that a name of several units may mean; none if it means one or is no such name."""
    if spelled_in(said, values):
        return ()
    name, bare = _plain(said), {value: _plain(re.sub(r"\s*\(.*?\)", "", value)) for value in values}
    same = tuple(value for value in values if bare[value] == name)
    if not {said, said.lower()} & _AMBIGUOUS:
        return same if len(same) > 1 else ()
    return tuple(value for value in values if bare[value].split()[-1:] == [name]) or tuple(values)


@cache
def _plain(name: str) -> str:
    words = re.sub(r"[\s‑_-]+", " ", name.lower()).strip().split()
    return " ".join(word if word.endswith("ss") or len(word) < 4 else word.removesuffix("s") for word in words)
