"""The units of a query: the whole query, its clauses, and the steps that it implies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from callsheet.graphs.text.clauses import clause_spans
from callsheet.retrievers.index.protocols import Span

UnitKind = Literal["query", "clause", "implied"]
_BEFORE = 400  # characters before a path that are searched for the beginning of its sentence
_WEIGHT, _IMPLIED_WEIGHT = 0.9, 0.45  # how likely a unit is a step

_URL = re.compile(r"https?://\S+|\bwww\.\S+")
_EXTENSION = "md|txt|csv|tsv|json|pdf|xlsx?|docx?|pptx?|html?|png|jpe?g|gif|svg|xml|ya?ml|zip|wav|mp3|mp4|py|ts|js"
_PATH = re.compile(
    rf"(?<![\w:/.])(?:~|\.{{1,2}})?/[\w.~-]+(?:/[\w.~-]+)*|\b[\w-]{{1,100}}\.(?:{_EXTENSION})\b", re.IGNORECASE
)
_SENTENCE_END = re.compile(r"[.!?]\s")
_MAKING = re.compile(
    r"\b(?:sav(?:e|ed|ing)|writ(?:e|ing|ten)|stor(?:e|ed|ing)|export(?:ed|ing)?|output|put|generat(?:e|ed|ing)"
    r"|creat(?:e|ed|ing)|make|draft|record|download(?:ed)?|produc(?:e|ed|ing)|compile)\b",
    re.IGNORECASE,
)
_COPYING = re.compile(r"\b(?:cop(?:y|ied|ying)|mov(?:e|ed|ing)|append(?:ed|ing)?|add(?:ed|ing)?)\b", re.IGNORECASE)
_RELATIVE_DATE = re.compile(
    r"\b(?:today|tomorrow|tonight|yesterday|now|(?:next|this|last|past|coming)\s+(?:week|month|year|weekend"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday|\d+\s*\w+))\b",
    re.IGNORECASE,
)
IMPLIED: Mapping[str, str] = {
    "write": "write a file: save text content to a file at a path",
    "read": "read the content of a file at a path",
    "fetch": "fetch a web page from a url",
    "time": "get the current date and time",
}
"""Implied steps by name, with the words to search for."""


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit of a query.

    Attributes:
        text: Its text.
        kind: The whole query, a clause, or an implied step.
        weight: The probability that it is a step, 0 to 1.
        span: Its place in the query; None for an implied step.
    """

    text: str
    kind: UnitKind
    weight: float = _WEIGHT
    span: Span | None = None


def units_of(query: str, *, implied: bool = True) -> tuple[Unit, ...]:
    """The whole query, then its clauses if there are several, then the implied steps."""
    clauses = [Unit(query[a:b].strip(), "clause", span=(a, b)) for a, b in clause_spans(query)]
    steps = [Unit(IMPLIED[name], "implied", _IMPLIED_WEIGHT) for name in implied_steps(query)] if implied else []
    return (Unit(query, "query", span=(0, len(query))), *clauses, *steps)


def implied_steps(query: str) -> list[str]:
    """The steps that the query implies, as keys of ``IMPLIED``.

    A path is written if the sentence before it has a verb of making, or one of copying and then *to* before the path;
    otherwise it is read. A URL is fetched; a relative date needs the current date.
    """
    steps: dict[str, None] = {}
    addresses = [match.span() for match in _URL.finditer(query)]
    for path in _PATH.finditer(query):
        if not any(start <= path.start() < end for start, end in addresses):
            sentence = _SENTENCE_END.split(query[max(0, path.start() - _BEFORE) : path.start()])[-1]
            steps["write" if _makes(sentence) else "read"] = None
    if addresses:
        steps["fetch"] = None
    if _RELATIVE_DATE.search(query):
        steps["time"] = None
    return list(steps)


def _makes(before: str) -> bool:
    """Whether the words before a path say that it is written."""
    into = before.casefold().rstrip(" \"'“`").endswith((" to", " into"))
    return bool(_MAKING.search(before) or (into and _COPYING.search(before)))


def spans_of(units: Sequence[Unit]) -> list[Span]:
    """The spans of the clauses among the units."""
    return [unit.span for unit in units if unit.kind == "clause" and unit.span]
