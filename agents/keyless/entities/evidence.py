"""What a text gives in so many words: quotations, addresses, paths, numbers; each used at most once."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

from callsheet.agents.keyless.entities.measurement_units import unit_of
from callsheet.agents.keyless.language.spans import EMAIL, PATH, QUOTED, SQL, URL, mask


class Kind(StrEnum):
    """What sort of thing a stretch of text is."""

    QUOTED = "quoted"
    SQL = "sql"
    URL = "url"
    EMAIL = "email"
    PATH = "path"
    DATETIME = "datetime"
    DATE = "date"
    CLOCK = "clock"
    IDENTIFIER = "identifier"
    PHONE = "phone"
    NUMBER = "number"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One stretch of text with a meaning.

    Attributes:
        kind: What it is.
        value: What it means, ready for an argument.
        start: Where it begins in the text.
        end: Where it ends.
    """

    kind: Kind
    value: Any
    start: int
    end: int


_MONTHS = {
    name: number
    for number, names in enumerate(
        "jan january|feb february|mar march|apr april|may|jun june|jul july|aug august|sep sept september"
        "|oct october|nov november|dec december".split("|"),
        start=1,
    )
    for name in names.split()
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_ISO_STAMP = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_ISO_DATE = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?({_MONTH})\.?,?\s+(\d{{4}})\b", re.IGNORECASE)
_MONTH_FIRST = re.compile(rf"\b({_MONTH})\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})\b", re.IGNORECASE)
_CLOCK = re.compile(
    r"\b(?P<hour>\d{1,2})(?:[:.](?P<minute>[0-5]\d)(?::[0-5]\d)?)?\s*(?P<half>[ap])\.?m\b\.?"
    r"|\b(?P<hour24>[01]?\d|2[0-3]):(?P<minute24>[0-5]\d)(?::[0-5]\d)?\b|\b(?P<word>noon|midnight)\b",
    re.IGNORECASE,
)
_PHONE = re.compile(r"\+\d[\d ()-]{6,}\d")
_IDENTIFIER = re.compile(
    r"\b[A-Z]{1,3}\d+:[A-Z]{1,3}\d+\b|\b[A-Z][A-Z0-9]{0,9}[-_]\d[\w-]*\b|\b[A-Z]{2,}\d{2,}\b|(?<!\w)#\d+\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"
    r"|\b(?=[0-9a-f]*[a-f])(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b|\b[A-Z]{2,}-[A-Z0-9]+\b|\b[a-z]+-\d+\b"
)
_NUMBER = re.compile(
    r"(?<![\w.])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?:\s*(?P<times>k|thousand|million|billion)\b)?"
)
_TIMES = {"k": 1_000, "thousand": 1_000, "million": 1_000_000, "billion": 1_000_000_000}
_NO_PATHS = frozenset({"and/or", "n/a", "he/she", "his/her", "either/or", "w/o", "yes/no", "true/false", "on/off"})
_FENCE = re.compile(r"^```(?:\w*\n)?|```$")


@dataclass(slots=True)
class Pool:
    """The evidence of one text, and which of it is used up.

    Attributes:
        text: The step's words.
        items: What was found, in the text's order.
        used: Stretches that an argument already took.
    """

    text: str
    items: tuple[Evidence, ...] = ()
    used: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def of(cls, text: str) -> Pool:
        """Everything that a text gives."""
        return cls(text, tuple(sorted(_found(text), key=lambda item: item.start)))

    def free(self, *kinds: Kind) -> list[Evidence]:
        """What is not used yet of these kinds, in order."""
        return [i for i in self.items if i.kind in kinds and not self.is_used(i.start, i.end)]

    def is_used(self, start: int, end: int) -> bool:
        """Whether any of a stretch is used up."""
        return any(start < taken_end and taken_start < end for taken_start, taken_end in self.used)

    def take(self, item: Evidence) -> Any:
        """The value of a piece, which is used up by that."""
        self.used.append((item.start, item.end))
        return item.value

    def at(self, start: int) -> Evidence | None:
        """The unused piece that begins here."""
        return next((i for i in self.items if i.start == start and not self.is_used(i.start, i.end)), None)

    @property
    def bare(self) -> str:
        """The text at its length with quotations, addresses and paths blanked."""
        kinds = {Kind.QUOTED, Kind.URL, Kind.EMAIL, Kind.PATH, Kind.SQL, Kind.JSON}
        return _blanked(self.text, [(i.start, i.end) for i in self.items if i.kind in kinds])

    @property
    def rest(self) -> str:
        """The text at its length with what is used or quoted blanked."""
        return _blanked(self.bare, self.used)


def _blanked(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in spans:
        text = text[:start] + "¤" * (end - start) + text[end:]
    return text


def _found(text: str) -> Iterator[Evidence]:
    rest = text
    for kind, finder in _FINDERS:
        found = list(finder(rest, text))
        yield from (Evidence(kind, value, start, end) for value, start, end in found)
        rest = _blanked(rest, [(start, end) for _, start, end in found])


Found = Iterator[tuple[Any, int, int]]


def _quoted(rest: str, text: str) -> Found:
    for match in QUOTED.finditer(rest):
        if _cut_short(text[match.start() + 1 : match.end() - 1]):
            continue
        said = text[match.start() : match.end()]
        inner = _FENCE.sub("", said) if said.startswith("```") else said[1:-1]
        yield inner, match.start(), match.end()


def _cut_short(inner: str) -> bool:
    """Whether a quotation holds one of another's marks alone: it may be cut at the wrong mark, and is not read."""
    singles = len(re.findall(r"(?<![^\W_])'|'(?![^\W_])", inner))
    return inner.count('"') % 2 == 1 or inner.count("“") != inner.count("”") or (singles % 2 == 1 and '"' in inner)


def _plain(pattern: re.Pattern[str]) -> Callable[[str, str], Found]:
    def find(rest: str, text: str) -> Found:
        for match in pattern.finditer(rest):
            yield text[match.start() : match.end()].strip(), match.start(), match.end()

    return find


def _paths(rest: str, _text: str) -> Found:
    for match in PATH.finditer(rest):
        said = match.group().lower()
        if said not in _NO_PATHS and not ("/" in said and unit_of(said)) and not re.fullmatch(r"\d+/\d+", said):
            yield match.group(), match.start(), match.end()


def _json(rest: str, text: str) -> Found:
    decoder, position = json.JSONDecoder(), 0
    while match := re.compile(r"[\[{]").search(rest, position):
        position = match.end()
        try:
            value, end = decoder.raw_decode(text, match.start())
        except ValueError:
            continue
        yield value, match.start(), end
        position = end


def _dates(rest: str, _text: str) -> Found:
    for pattern, order in ((_ISO_DATE, (1, 2, 3)), (_DAY_FIRST, (3, 2, 1)), (_MONTH_FIRST, (3, 1, 2))):
        for match in pattern.finditer(rest):
            year, month, day = (match.group(i).lower() for i in order)
            number = _MONTHS.get(month) or int(month)
            if 1 <= number <= 12 and 1 <= int(day) <= 31:
                yield f"{int(year):04}-{number:02}-{int(day):02}", match.start(), match.end()


def _clocks(rest: str, _text: str) -> Found:
    for match in _CLOCK.finditer(rest):
        if word := match.group("word"):
            yield "12:00" if word.lower() == "noon" else "00:00", match.start(), match.end()
            continue
        hour = int(match.group("hour") or match.group("hour24"))
        minute = match.group("minute") or match.group("minute24") or "00"
        if half := match.group("half"):
            if not 1 <= hour <= 12:
                continue
            hour = hour % 12 + (12 if half.lower() == "p" else 0)
        yield f"{hour:02}:{minute}", match.start(), match.end()


def _numbers(rest: str, _text: str) -> Found:
    for match in _NUMBER.finditer(rest):
        times = match.group("times")
        digits = match.group().removesuffix(times or "").strip().replace(",", "").replace("−", "-")
        value = float(digits) * _TIMES.get((times or "").lower(), 1)
        if not math.isfinite(value):
            continue
        yield int(value) if value.is_integer() and "." not in digits else value, match.start(), match.end()


_FINDERS: tuple[tuple[Kind, Callable[[str, str], Found]], ...] = (
    (Kind.QUOTED, _quoted),
    (Kind.SQL, _plain(SQL)),
    (Kind.JSON, _json),
    (Kind.URL, _plain(URL)),
    (Kind.EMAIL, _plain(EMAIL)),
    (Kind.PATH, _paths),
    (Kind.DATETIME, _plain(_ISO_STAMP)),
    (Kind.DATE, _dates),
    (Kind.CLOCK, _clocks),
    (Kind.PHONE, _plain(_PHONE)),
    (Kind.IDENTIFIER, _plain(_IDENTIFIER)),
    (Kind.NUMBER, _numbers),
)


_SPELLED = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")
_MINUS = re.compile(r"(?:(?<=^)|(?<=[a-z] )|(?<=, ))(?:minus|negative) (?=\d)", re.IGNORECASE)
_COUNTS = re.compile(r"\b(?:all|both|the|these|those|other)\s+$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Word:
    """A word as ``find_numbers`` takes it, and whether a mark parts it from the word before."""

    said: str
    parted: bool

    def text(self) -> str:
        return self.said

    def nt_separated(self, _previous: _Word) -> bool:
        return self.parted

    def not_a_number_part(self) -> bool:
        return False


def with_digits(text: str) -> str:
    """The text with spelled-out numbers as digits, but in quotations and names of files: "five miles", "5 miles"."""
    from text_to_num import find_numbers

    masked = mask(text)
    words = list(_SPELLED.finditer(masked))
    gaps = ["" for _ in words[:1]] + [*(masked[one.end() : other.start()] for one, other in pairwise(words))]
    tokens = [_Word(word.group(), not re.fullmatch(r"[\s-]*", gap)) for word, gap in zip(words, gaps, strict=True)]
    for found in reversed(find_numbers(tokens, "en", 0.0)):
        start, end = words[found.start].start(), words[found.end - 1].end()
        said = text[start:end]
        if found.is_ordinal or any(c.isdigit() for c in said) or said.lower() == "one" or _COUNTS.search(text[:start]):
            continue
        text = text[:start] + found.text + text[end:]
    return _MINUS.sub("-", text)
