"""The units of a query: the whole query, its clauses, and the steps that it implies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from callsheet.retrievers.index.lexical_index import tokens
from callsheet.retrievers.index.protocols import Span

UnitKind = Literal["query", "clause", "implied"]
MOST_CLAUSES = 8
_LEAST_WORDS = 2
_PREFIX = 4000  # characters that are cut into clauses: more than embedders of queries read
_BEFORE = 400  # characters before a path that are searched for the beginning of its sentence
_WEIGHT, _IMPLIED_WEIGHT = 0.9, 0.45  # how likely a unit is a step

_CONNECTIVE = (
    r"and then|then|after that|afterwards?|finally|lastly|as well as|next|in addition|additionally|also|furthermore"
    r"|moreover|meanwhile|besides|followed by|along with|plus"
)
_CUT = re.compile(
    r"[.!?;]\s+|[。！？；]|\n\s*(?:(?:\d+[.)]|[-*•])\s+)?|(?:^|\s)(?:\d+[.)]|[-*•])\s+"
    rf"|(?:,|(?<![\s,]))\s+(?:and\s+)?\b(?:{_CONNECTIVE})\b[,:]?\s+",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"]{1,200}\"|“[^”]{1,200}”|(?<=\s)'[^']{1,200}'(?=\W|$)|`[^`]{1,200}`")

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


def clause_spans(query: str, *, most: int = MOST_CLAUSES) -> list[Span]:
    """The places of the clauses of a query; empty if there is only one.

    The query is cut at ends of sentences, semicolons, line ends, list numbers and connectives, but not inside
    quotation marks. A piece with fewer than two content words is joined to the one before; if there are too many
    pieces, the shortest are joined.
    """
    pieces: list[Span] = []
    for start, end in _cut(query):
        if pieces and _words(query, start, end) < _LEAST_WORDS:
            pieces[-1] = (pieces[-1][0], end)
        else:
            pieces.append((start, end))
    if len(pieces) > 1 and _words(query, *pieces[0]) < _LEAST_WORDS:
        pieces[:2] = [(pieces[0][0], pieces[1][1])]
    while len(pieces) > most:
        shortest = min(range(len(pieces) - 1), key=lambda i: pieces[i + 1][1] - pieces[i][0])
        pieces[shortest : shortest + 2] = [(pieces[shortest][0], pieces[shortest + 1][1])]
    return pieces if len(pieces) > 1 else []


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


def _cut(query: str) -> Iterator[Span]:
    quoted = [match.span() for match in _QUOTED.finditer(query)]
    start = 0
    for match in _CUT.finditer(query, 0, _PREFIX):
        if any(left < match.start() < right for left, right in quoted):
            continue
        if query[start : match.start()].strip():
            yield start, match.start()
        start = match.end()
    if query[start:].strip():
        yield start, len(query)


def _words(query: str, start: int, end: int) -> int:
    return len(set(tokens(query[start:end])))


def spans_of(units: Sequence[Unit]) -> list[Span]:
    """The spans of the clauses among the units."""
    return [unit.span for unit in units if unit.kind == "clause" and unit.span]
