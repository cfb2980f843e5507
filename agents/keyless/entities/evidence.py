"""Evidence in a text: quotations, addresses, paths, numbers; each is used at most once."""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from callsheet.agents.keyless.entities.measurement_units import unit_of
from callsheet.agents.keyless.language.lexicon import (
    CLOCK,
    EMAIL,
    GLOB,
    NEUTRAL,
    NOT_VERBS,
    PATH,
    QUESTION_WORDS,
    QUOTED,
    SQL,
    URL,
    kinds_of,
    mask,
)


class Kind(StrEnum):
    """Kind of evidence."""

    QUOTED = "quoted"
    SQL = "sql"
    URL = "url"
    EMAIL = "email"
    PATH = "path"
    DATE = "date"
    CLOCK = "clock"
    PHONE = "phone"
    GLOB = "glob"
    IDENTIFIER = "identifier"
    NUMBER = "number"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Named:
    """A value that a text names, as a tool spells it; start and end are offsets in the text."""

    value: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """A span of a text that has a value, ready for an argument; start and end are offsets."""

    kind: Kind
    value: Any
    start: int
    end: int


_MONTH = "|".join([*calendar.month_name[1:], *calendar.month_abbr[1:]])
_ABBREVIATED = frozenset(map(str.lower, (*calendar.month_abbr[1:], *calendar.day_abbr)))
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_NUMBER = re.compile(
    r"(?<![\w.])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?:\s*(?P<times>k|thousand|million|billion)\b)?"
)
_DECIMAL_COMMA = re.compile(r"(?<![\d,.])\d+,\d{1,2}(?![\d,])")
"""Two numbers, or one with a decimal comma: it is not guessed which."""
_GROUPED_BY_DOTS = re.compile(
    r"(?<![\d.,])[1-9]\d{0,2}\.\d{3}(?![\d.,])(?=\s?(?:€|[Ee]uros?\b|[A-Z]{3}\b))|(?<=[€$£])[1-9]\d{0,2}\.\d{3}(?![\d.,])"
)
"""An amount of money with three digits after a dot: thousands, or not."""
_ORDINAL = re.compile(r"(?<![\w.])\d*(?:(?<!1)1st|(?<!1)2nd|(?<!1)3rd|(?:1[123]|[04-9])th)\b", re.IGNORECASE)
_RELATIVE = re.compile(
    r"\bin\s+\d+\s+(?P<ahead>[a-z]+)\b|\d+\s+(?P<span>[a-z]+)\s+(?:ago|later|hence|from)\b", re.IGNORECASE
)
"""A point in time that is counted from now; "how many minutes are in 3 hours" has an amount."""
_HOW_MANY = re.compile(r"\bhow\s+many\b", re.IGNORECASE)
_EXACT = 2**53
"""Whole numbers below are exact as floating-point numbers, and can be stored in a state."""
_TIMES = {"k": 1_000, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (Kind.QUOTED, QUOTED),
    (Kind.SQL, SQL),
    (Kind.URL, URL),
    (Kind.EMAIL, EMAIL),
    (Kind.GLOB, GLOB),
    (Kind.PATH, PATH),
    (
        Kind.DATE,
        re.compile(
            r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b"
            rf"|(?<![\d:.]){_DAY}\s+(?:of\s+)?(?:{_MONTH})\b(?:,?\s+\d{{4}}\b)?|\b(?:{_MONTH})\.?\s+{_DAY}\b(?:,?\s+\d{{4}}\b)?",
            re.IGNORECASE,
        ),
    ),
    (Kind.CLOCK, CLOCK),
    (Kind.PHONE, re.compile(r"\+\d[\d ()-]{6,}\d")),
    (
        Kind.IDENTIFIER,
        re.compile(
            r"\b[A-Z]{1,3}\d+:[A-Z]{1,3}\d+\b|(?<=\b[Cc]ell )[A-Z]{1,3}\d{1,7}\b"
            r"|\b[A-Za-z][A-Z0-9]{0,9}[-_]\d[\w-]*\b|\b[A-Z]{2,}-?[A-Z]*\d[A-Z\d]*\b|#\d+\b"
            r"|\b(?=[\da-f-]*[a-f])(?=[\da-f-]*\d)[\da-f-]{7,40}\b|\b[a-z]+-\d+\b"
        ),
    ),
    (Kind.NUMBER, _NUMBER),
    (
        Kind.NAME,
        re.compile(
            r"(?<=[\w,:¤] )(?:(?:(?:Dr|Mrs?|Ms|St)\.? )?[A-Z][\w’-]{0,40}(?: [A-Z][\w’-]{0,40}){0,5}"
            r"|[a-z][a-z-]{0,40}[_\d][\w-]{0,40})"
            r"(?=\s*(?:[,;.!?¤]|$|(?:and|as|at|by|for|from|in|into|of|on|saying|to|with)\b))"
        ),
    ),
)
_ID_RANGE = re.compile(r"\b([A-Za-z]+[-_])\d+\s?[-–/]\s?(?:\1)?\d+\b(?!-)")
"""Several records: "ENG-1-ENG-5"."""
_NO_PATH = re.compile(r"(?i)and/or|n/a|s?he/she|his/her|either/or|w/o|yes/no|true/false|on/off|\d+/\d+")


@dataclass(slots=True)
class Pool:
    """The evidence in one text, in text order, the spans that arguments have used, and whether they used results."""

    text: str
    items: tuple[Evidence, ...] = ()
    used: list[tuple[int, int]] = field(default_factory=list)
    uses_results: bool = False

    @classmethod
    def of(cls, text: str) -> Pool:
        """All evidence in a text."""
        return cls(text, tuple(sorted(_found(text), key=lambda item: item.start)))

    def free(self, *kinds: Kind) -> list[Evidence]:
        """The unused evidence of these kinds, in order."""
        return [i for i in self.items if i.kind in kinds and not self.is_used(i.start, i.end)]

    def is_used(self, start: int, end: int) -> bool:
        """Whether any part of a span is used."""
        return any(start < taken_end and taken_start < end for taken_start, taken_end in self.used)

    def is_covered(self, start: int, end: int) -> bool:
        """Whether the whole span is used."""
        taken = {at for taken_start, taken_end in self.used for at in range(taken_start, taken_end)}
        return taken.issuperset(range(start, end))

    def take(self, item: Evidence) -> Any:
        """The value of a piece of evidence, which is then used."""
        self.used.append((item.start, item.end))
        return item.value

    def first(self, *kinds: Kind) -> Any:
        """The value of the first unused evidence of these kinds, which is then used; None without any."""
        found = self.free(*kinds)
        return self.take(found[0]) if found else None

    @property
    def bare(self) -> str:
        """The text at its own length, with quotations, addresses and paths blanked."""
        kinds = {Kind.QUOTED, Kind.URL, Kind.EMAIL, Kind.GLOB, Kind.PATH, Kind.SQL}
        return _blanked(self.text, [(i.start, i.end) for i in self.items if i.kind in kinds])

    @property
    def rest(self) -> str:
        """The text at its own length, with used and quoted spans blanked."""
        return _blanked(self.bare, self.used)


def _blanked(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in spans:
        text = text[:start] + "¤" * (end - start) + text[end:]
    return text


def _found(text: str) -> Iterator[Evidence]:
    rest = text
    for kind, pattern in _PATTERNS:
        if kind is Kind.NUMBER:
            rest = _blanked(rest, [match.span() for match in _not_amounts(rest)])
        found = [
            Evidence(kind, value, *match.span())
            for match in pattern.finditer(rest)
            if (value := _value(kind, match, text[match.start() : match.end()])) is not None
        ]
        yield from found
        rest = _blanked(rest, [(item.start, item.end) for item in found])


def _not_amounts(text: str) -> Iterator[re.Match[str]]:
    """What has digits and is no amount: ordinals, points in time, and what may be one or two numbers."""
    yield from _DECIMAL_COMMA.finditer(text)
    yield from _GROUPED_BY_DOTS.finditer(text)
    yield from _ORDINAL.finditer(text)
    for match in () if _HOW_MANY.search(text) else _RELATIVE.finditer(text):
        if (unit_of(match["ahead"] or match["span"]) or ("", 0))[0] == "[time]":
            yield match


def _value(kind: Kind, match: re.Match[str], said: str) -> Any:
    """The value of a match; None if it is not of this kind."""
    match kind:
        case Kind.QUOTED:
            fenced = re.sub(r"^```(?:\w*\n)?|```$", "", said)
            return None if _cut_short(said[1:-1]) else said[1:-1] if fenced == said else fenced
        case Kind.PATH:
            return None if _NO_PATH.fullmatch(said) or ("/" in said and unit_of(said)) else said
        case Kind.CLOCK:
            return _clock(match)
        case Kind.IDENTIFIER if _ID_RANGE.search(said):
            return None
        case Kind.NUMBER:
            return _number(match)
        case Kind.NAME:
            return said if _may_be_name(said.split()) else None
    return said.strip()


def _may_be_name(words: list[str]) -> bool:
    """Whether capitalised words may be a name: no weekday, no "Please", and not "NOW"."""
    last = words[-1].lower()
    common = last in NOT_VERBS | NEUTRAL | QUESTION_WORDS | _ABBREVIATED or "ADV" in kinds_of(last)
    return not common and not any(word.isupper() and len(word) > 1 and word.isalpha() for word in words)


def _cut_short(inner: str) -> bool:
    """Whether a quotation has an unpaired quotation mark: it may end at the wrong one, and is not read."""
    singles = len(re.findall(r"(?<![^\W_])'|'(?![^\W_])", inner))
    return inner.count('"') % 2 == 1 or inner.count("“") != inner.count("”") or (singles % 2 == 1 and '"' in inner)


def _clock(match: re.Match[str]) -> str | None:
    if word := match["word"]:
        return "12:00" if word.lower() == "noon" else "00:00"
    hour = int(match["hour"] or match["hour24"])
    if half := match["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half.lower() == "p" else 0)
    return f"{hour:02}:{match['minute'] or match['minute24'] or '00'}"


def _number(match: re.Match[str]) -> float | int | None:
    times = match["times"] or ""
    digits = match.group().removesuffix(times).strip().replace(",", "").replace("−", "-")
    value = float(digits) * _TIMES.get(times.lower(), 1)
    return exact_number(value, whole="." not in digits) if math.isfinite(value) else None


def exact_number(value: float, *, whole: bool) -> float | int:
    """A number that was written as a whole one as an integer, if it is exact."""
    return int(value) if whole and abs(value) < _EXACT and value.is_integer() else value


_KEPT = re.compile(
    r"(¤+|\b(?:all|both|the|these|those|other)\s+\w+|\b(?!thousand\b|and\b)\w+(?:st|nd|rd|th)\b"
    r"|(?<!and )\bone\b(?!\s+(?:hundred|thousand|million|billion)\b))",
    re.IGNORECASE,
)
"""Words that look like numbers and are none: ordinals, "all three", "the old one"."""


def with_digits(text: str) -> str:
    """The text with spelled-out numbers as digits, except in quotations and file names: "five miles", "5 miles"."""
    from text_to_num import alpha2digit

    said, start = "", 0
    for piece in _KEPT.split(mask(text)):
        own = text[start : start + len(piece)]
        start += len(piece)
        said += own if _KEPT.fullmatch(piece) or not re.search(r"[a-z]", piece, re.I) else alpha2digit(own, "en", 0.0)
    return re.sub(r"(^|[a-z] |, )(?:minus|negative) (?=\d)", r"\1-", said, flags=re.I)
