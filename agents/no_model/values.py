"""Finds typed values in a text: numbers, times, dates, quotations, paths, addresses, identifiers, results."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any
from zoneinfo import available_timezones

from callsheet.agents.calls.plan import StepResult
from callsheet.agents.work.context import head_result, join_results
from callsheet.graphs.text.words import tokens


class Kind(StrEnum):
    """The kind of a value, and of what a parameter takes."""

    NUMBER = "number"
    CHOICE = "choice"
    CLOCK = "time of day"
    ZONE = "time zone"
    DATE = "date"
    FILE = "file"
    FOLDER = "folder"
    URL = "URL"
    EMAIL = "e-mail address"
    EXPRESSION = "arithmetic expression"
    TEXT = "text in quotation marks"
    QUESTION = "question"


@dataclass(frozen=True, slots=True)
class StepValue:
    """A value between ``start`` and ``end`` of a text, in the form for a tool, with its possible kinds."""

    kinds: frozenset[Kind]
    value: Any
    start: int
    end: int


_PATTERN = re.compile(
    r"""
      (?P<text>"[^"]{1,4000}"|“[^”]{1,4000}”|(?<!\w)'[^'\n]{1,400}'(?!\w)|`[^`]{1,400}`)
    | (?P<url>\bhttps?://[^\s<>"]{1,2000}(?<![.,;:!?)]))
    | (?P<email>\b[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,5})
    | (?P<date>\b\d{4}-\d\d-\d\d\b|\b\d{1,2}\ [A-Z][a-z]{2,8}\ \d{4}\b|\b[A-Z][a-z]{2,8}\ \d{1,2},?\ \d{4}\b)
    | (?P<clock>\b\d{1,2}:\d\d(?![:\d])(?:\ ?[AaPp]\.?[Mm]\b)?|\b\d{1,2}\ ?[AaPp][Mm]\b)
    | (?P<file>(?<![\w/.@~-])(?:~?/|\.{1,2}/)?(?:[\w.-]{1,64}/){0,9}
        [\w-]{1,64}(?:\.[A-Za-z][A-Za-z0-9]{0,7}){1,2}(?![\w/@]|\.\w))
    | (?P<folder>(?<![\w/.@~-])(?:~/|\.{1,2}/|/)?(?:[\w.-]{1,64}/){1,9}(?:[\w-]{1,64})?(?![\w.@]))
    | (?P<expression>(?<![\w.,/:)-])(?:OPERAND(?:\ ?OPERATOR\ ?OPERAND){1,12}|[a-z]{2,6}\(\d{1,15}\))
        (?![\w:/°%]|[.,]\d))
    | (?P<number>(?<![\w.,/:-])[-−+]?(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,15})?(?:[eE][-+]?\d{1,3})?(?![\d:/_-]))
    | (?P<name>(?<![\w-])(?=[\w*-]{0,63}[\d*_])(?=[\w*.-]{0,63}[A-Za-z])[A-Za-z*][\w*.-]{1,63}(?<![.-]))
    """.replace("OPERATOR", r"(?:\*\*|[-+*/^×÷−]|\bplus\b|\bminus\b|\btimes\b|\bdivided\ by\b)").replace(
        "OPERAND", r"-?\({0,9}(?:[a-z]{2,6}\()?\d{1,15}(?:\.\d{1,15})?\){0,9}"
    ),
    re.VERBOSE,
)
_SIGNS = {"×": "*", "÷": "/", "−": "-", "^": "**", "plus": "+", "minus": "-", "times": "*", "divided by": "/"}
_KINDS = {kind.name.lower(): frozenset({kind}) for kind in Kind} | {
    "folder": frozenset({Kind.FOLDER, Kind.FILE}),
    "name": frozenset({Kind.TEXT}),
}
_TIMES = {
    "date": (("%Y-%m-%d", "%d %B %Y", "%d %b %Y", "%B %d %Y", "%b %d %Y"), slice(10)),
    "clock": (("%H:%M", "%I:%M%p", "%I%p"), slice(11, 16)),
}
_NUMERALS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_RESULTS = re.compile(rf"\b(?:the\s|all\s(?:the\s)?|both\s)?(?:({'|'.join(_NUMERALS)})\s)?results?\b", re.IGNORECASE)


def values_in(text: str, results: Sequence[StepResult] = ()) -> list[StepValue]:
    """Returns the typed values in a text, in text order.

    "the result" and "all three results" refer to results of earlier steps.
    """
    found = list(_typed(text))
    for match in _RESULTS.finditer(text):
        taken = any(value.start < match.end() and match.start() < value.end for value in found)
        meant = () if taken else _meant(match, results)
        if meant:
            found.append(StepValue(frozenset({Kind.TEXT}), text_of_results(meant), *match.span()))
    return sorted(found, key=lambda value: value.start)


def refers_to(text: str, results: Sequence[StepResult]) -> tuple[StepResult, ...]:
    """Returns the results of earlier steps to which a text refers."""
    return next(filter(None, (_meant(match, results) for match in _RESULTS.finditer(text))), ())


def _meant(match: re.Match[str], results: Sequence[StepResult]) -> tuple[StepResult, ...]:
    """Returns all results for a plural, the last one for a singular; none if their number is another."""
    if not match.group().lower().endswith("s"):
        return tuple(results[-1:]) if match[1] is None else ()
    counted = 2 + _NUMERALS.index(match[1].lower()) if match[1] else len(results)
    return tuple(results) if counted == len(results) else ()


def _typed(text: str) -> Iterator[StepValue]:
    for match in _PATTERN.finditer(text):
        kind = str(match.lastgroup)
        said = match.group()
        match kind:
            case "text":
                inner = said[1:-1]
                whole = _PATTERN.fullmatch(inner)
                named = _KINDS.get(str(whole.lastgroup), frozenset()) if whole else frozenset()
                yield StepValue(frozenset({Kind.TEXT}) | named & _PLACES, inner, *match.span())
            case "date" | "clock":
                plain = said.replace(",", "") if kind == "date" else said.lower().replace(" ", "").replace(".", "")
                value = _time(plain, *_TIMES[kind])
                if value:
                    yield StepValue(_KINDS[kind], value, *match.span())
            case "expression":
                for word, sign in _SIGNS.items():
                    said = said.replace(word, sign)
                yield StepValue(_KINDS[kind], said, *match.span())
            case "number":
                number = float(said.replace(",", "").replace("−", "-"))
                whole_number = said.lstrip("-−+").replace(",", "").isdigit()
                yield StepValue(_KINDS[kind], int(number) if whole_number else number, *match.span())
            case _:
                yield StepValue(_KINDS[kind], said, *match.span())


_PLACES = frozenset({Kind.FILE, Kind.FOLDER, Kind.URL, Kind.EMAIL})


def _time(said: str, forms: Sequence[str], part: slice) -> str:
    """Returns a part of ISO 8601, as a date or a time in one of the forms; empty if there is no such day or time."""
    for form in forms:
        with suppress(ValueError):
            return datetime.strptime(said, form).isoformat()[part]
    return ""


def in_words(output: str, given: Mapping[str, Any] | None = None) -> str:
    """Formats the output of a tool for people: text stays unchanged, JSON becomes fields and values.

    Args:
        output: What the tool returned.
        given: The arguments of the call, by parameter. A field that repeats one of them, with a word of its name, is
            left out, as long as another field is left: people know what they asked for.
    """
    try:
        value = json.loads(output)
    except (ValueError, RecursionError):
        return output.strip()
    fields = list(_fields("", value))
    asked = [*_fields("", dict(given or {}))]
    told: list[tuple[str, str]] = []
    for name, inner in fields:
        same = [one for one in asked if one[1] == inner and set(tokens(one[0])) & set(tokens(name))]
        if same:
            asked.remove(same[0])
        else:
            told.append((name, inner))
    return "; ".join(f"{name} {inner}".strip() for name, inner in told or fields)


def text_of_results(results: Sequence[StepResult]) -> str:
    """Returns the text of results to write to a file: of one result, or one line for each of several."""
    if len(results) == 1:
        return results[0].result
    return join_results([head_result(result.text, result.result) for result in results])


def _fields(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yields the plain values inside a value, each with the names that lead to it."""
    match value:
        case dict():
            for key, inner in value.items():
                yield from _fields(f"{name} {str(key).replace('_', ' ')}".strip(), inner)
        case list() if any(isinstance(inner, dict | list) for inner in value):
            for inner in value:
                yield from _fields(name, inner)
        case list():
            yield name, ", ".join(map(_plain, value))
        case _:
            yield name, _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, float):
        value = float(f"{value:.12g}")  # not 160.01999999999998
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_UNIT = re.compile(r"[A-Za-zµΩ°²³/ ‑-]{1,60}")
_DEGREES = re.compile(r"^(?:degrees? |° ?)(?=[A-Za-z])")
_REGIONS = ("Africa/", "America/", "Asia/", "Atlantic/", "Australia/", "Europe/", "Indian/", "Pacific/")


def unit_in(said: str, choices: Sequence[str]) -> str | None:
    """Returns the only unit of a tool that a name means; None if there is none or more than one.

    Units are compared by their words, otherwise by the units of pint or by their size.
    """
    words = tokens(said)
    named = [choice for choice in choices if words and tokens(choice) == words]
    if named:
        return _lone(named)
    meant = _unit(said)
    if meant is None:
        return None
    units = [(choice, _unit(choice)) for choice in choices]
    equal = [choice for choice, unit in units if unit == meant]
    if not equal:
        equal = [choice for choice, unit in units if unit is not None and unit[1:] == meant[1:]]
    return _lone(equal)


def _lone(found: Sequence[str]) -> str | None:
    """Returns the only one of these; None if there are several, or none."""
    return found[0] if len(found) == 1 else None


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
    """Returns the time zone of a place: an IANA name, a city, or a country in one zone; None for others."""
    return _zones().get(said.lower())


@cache
def _zones() -> dict[str, str]:
    from babel import Locale
    from babel.core import get_global

    names = Locale("en").territories
    countries = defaultdict(set)
    for zone, country in get_global("zone_territories").items():
        countries[names.get(country, "").lower()].add(zone)
    found = {country: next(iter(zones)) for country, zones in countries.items() if len(zones) == 1}
    for zone in sorted(available_timezones()):
        found[zone.lower()] = zone
        if zone.startswith(_REGIONS):
            found[zone.rsplit("/", 1)[1].replace("_", " ").lower()] = zone
    return found
