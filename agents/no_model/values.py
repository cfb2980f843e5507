"""Typed values that stand in a text: numbers, times, dates, quotations, paths, addresses, identifiers, results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import Any

from callsheet.agents.no_model.result_text import joined
from callsheet.agents.planning.plan import StepResult


class Kind(StrEnum):
    """What a value is, and what a parameter takes."""

    NUMBER = "number"
    NUMBERS = "numbers"
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
class Value:
    """A value in a text.

    Attributes:
        kinds: What it may be.
        value: The value in the form for a tool.
        start: Its first character in the text.
        end: The character after it.
    """

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
    | (?P<clock>\b\d{1,2}:\d\d(?![:\d])(?:\ ?[AaPp]\.?[Mm]\b)?|\b\d{1,2}\ ?[AaPp][Mm]\b|\bnoon\b|\bmidnight\b)
    | (?P<file>(?<![\w/.@~-])(?:~?/|\.{1,2}/)?(?:[\w.-]{1,64}/){0,9}
        [\w-]{1,64}(?:\.[A-Za-z][A-Za-z0-9]{0,7}){1,2}(?![\w/@]|\.\w))
    | (?P<folder>(?<![\w/.@~-])(?:~/|\.{1,2}/|/)?(?:[\w.-]{1,64}/){1,9}(?:[\w-]{1,64})?(?![\w.@]))
    | (?P<expression>(?<![\w.,/:)-])(?:OPERAND(?:\ *(?:\*\*|[-+*/^×÷−])\ *OPERAND){1,50}|[a-z]{2,6}\(\d{1,15}\))
        (?![\w:/°%-]|[.,]\d))
    | (?P<number>(?<![\w.,/:-])[-−+]?(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,15})?(?:[eE][-+]?\d{1,3})?(?![\d:/_-]))
    | (?P<name>(?<![\w-])(?=[\w*-]{0,63}[\d*_])(?=[\w*.-]{0,63}[A-Za-z])[A-Za-z*][\w*.-]{1,63}(?<![.-]))
    """.replace("OPERAND", r"-?\(*(?:[a-z]{2,6}\()?\d{1,15}(?:\.\d{1,15})?\)*"),
    re.VERBOSE,
)
_SIGNS = str.maketrans({"×": "*", "÷": "/", "−": "-", "^": "**"})
_KINDS = {
    "url": frozenset({Kind.URL}),
    "email": frozenset({Kind.EMAIL}),
    "date": frozenset({Kind.DATE}),
    "clock": frozenset({Kind.CLOCK}),
    "file": frozenset({Kind.FILE}),
    "folder": frozenset({Kind.FOLDER, Kind.FILE}),
    "expression": frozenset({Kind.EXPRESSION}),
    "number": frozenset({Kind.NUMBER, Kind.NUMBERS}),
    "name": frozenset({Kind.TEXT}),
}
_DATES = ("%Y-%m-%d", "%d %B %Y", "%d %b %Y", "%B %d %Y", "%b %d %Y")
_NUMERALS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_RESULTS = re.compile(rf"\b(?:the\s|all\s(?:the\s)?|both\s)?(?:({'|'.join(_NUMERALS)})\s)?results?\b", re.IGNORECASE)


def values_in(text: str, results: Sequence[StepResult] = ()) -> list[Value]:
    """The values in a text, in text order.

    Args:
        text: The text of a step.
        results: The results of earlier steps, to which "the result" and "all three results" refer.
    """
    found = list(_typed(text))
    for match in _RESULTS.finditer(text):
        taken = any(value.start < match.end() and match.start() < value.end for value in found)
        if meant := () if taken else _meant(match, results):
            found.append(Value(frozenset({Kind.TEXT}), joined(meant), *match.span()))
    return sorted(found, key=lambda value: value.start)


def refers_to(text: str, results: Sequence[StepResult]) -> tuple[StepResult, ...]:
    """The results of earlier steps that a text refers to."""
    return next(filter(None, (_meant(match, results) for match in _RESULTS.finditer(text))), ())


def _meant(match: re.Match[str], results: Sequence[StepResult]) -> tuple[StepResult, ...]:
    """All results for a plural, the last one for a singular; none if their number is another."""
    if not match.group().lower().endswith("s"):
        return tuple(results[-1:]) if match[1] is None else ()
    counted = 2 + _NUMERALS.index(match[1].lower()) if match[1] else len(results)
    return tuple(results) if counted == len(results) else ()


def _typed(text: str) -> Iterator[Value]:
    for match in _PATTERN.finditer(text):
        kind, said = str(match.lastgroup), match.group()
        match kind:
            case "text":
                inner = said[1:-1]
                whole = _PATTERN.fullmatch(inner)
                named = _KINDS.get(str(whole.lastgroup), frozenset()) if whole else frozenset()
                yield Value(frozenset({Kind.TEXT}) | named & _PLACES, inner, *match.span())
            case "date" | "clock":
                if value := (_date if kind == "date" else _clock)(said):
                    yield Value(_KINDS[kind], value, *match.span())
            case "expression":
                yield Value(_KINDS[kind], said.translate(_SIGNS), *match.span())
            case "number":
                number = float(said.replace(",", "").replace("−", "-"))
                whole_number = said.lstrip("-−+").replace(",", "").isdigit()
                yield Value(_KINDS[kind], int(number) if whole_number else number, *match.span())
            case _:
                yield Value(_KINDS[kind], said, *match.span())


_PLACES = frozenset({Kind.FILE, Kind.FOLDER, Kind.URL, Kind.EMAIL})


def _date(said: str) -> str:
    """ISO 8601; empty if there is no such day."""
    for form in _DATES:
        try:
            return datetime.strptime(said.replace(",", ""), form).date().isoformat()
        except ValueError:
            continue
    return ""


def _clock(said: str) -> str:
    """``HH:MM``; empty if there is no such time."""
    plain = {"noon": "12:00", "midnight": "00:00"}.get(said, said).lower().replace(" ", "").replace(".", "")
    for form in ("%H:%M", "%I:%M%p", "%I%p"):
        try:
            return f"{datetime.strptime(plain, form):%H:%M}"
        except ValueError:
            continue
    return ""


def today() -> str:
    """The current date, as an example of one."""
    return date.today().isoformat()
