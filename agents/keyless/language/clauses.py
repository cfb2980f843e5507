"""Cutting a request into clauses: where one order ends and the next begins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from callsheet.agents.keyless.language.predicates import (
    is_bare_verb,
    is_context,
    is_gerund_order,
    is_pleasantry,
    is_statement,
    may_open_order,
    opens_order,
)
from callsheet.agents.keyless.language.spans import mask


class Link(StrEnum):
    """How a clause is joined to the one before it."""

    NONE = ""
    THEN = "then"
    LAST = "last"
    BEFORE = "before"


@dataclass(frozen=True, slots=True)
class Clause:
    """One order of a request.

    Attributes:
        text: The request's own words.
        masked: The same length, protected stretches blanked.
        link: How it is joined to the one before.
    """

    text: str
    masked: str
    link: Link = Link.NONE


_MARKER = r"(?:[-*•–]|\(?\d{1,2}[.)]|\([a-z]\)|[a-z]\))"
_LINE_ITEM = re.compile(rf"^[ \t]*{_MARKER}(?:[ \t]+|$)", re.MULTILINE)
_INLINE_ITEM = re.compile(r"(?:(?<=\s)|^)(?:\(([a-z]|\d{1,2})\)|(\d{1,2})[.)]|([a-z])\))\s+(?=\S)")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])\s*|;\s*|\n+")
_ORDER = (
    r"(?:and\s+)?(?:then|after\s+(?:that|this|which)|afterwards?|thereafter|subsequently|next|once\s+(?:that|this|it)(?:'s|\s+is)"
    r"\s+done|once\s+done|when\s+(?:that|this|it)(?:'s|\s+is)\s+(?:done|finished)|when\s+you(?:'re|\s+are)\s+done)\b"
)
_LAST = r"(?:and\s+)?(?:finally|lastly|last\s+of\s+all|at\s+the\s+end|in\s+the\s+end)\b"
_ALSO = (
    r"(?:and\s+also|as\s+well\s+as|also|plus|additionally|besides|in\s+addition|and"
    r"|first(?:ly)?|second(?:ly)?|third(?:ly)?)\b"
)
_JOINT = re.compile(
    rf"(?:\s*,)?\s+(?:{_ORDER}|{_LAST}|{_ALSO})\s*,?\s*|\s*[,，、]\s*|\s+[-–—]\s+|\s*&\s+", re.IGNORECASE
)
_LEAD = re.compile(
    rf"(?:[\s,;:.…]+|(?:{_ORDER}|{_LAST}|{_ALSO}|but|so|please|kindly|just|now|{_MARKER}(?=\s)"
    r"|(?:can|could|would|will)\s+you(?:\s+please)?|i(?:'d|\s+would)\s+like\s+you\s+to|i\s+(?:want|need)\s+you\s+to)(?=[\s,]|$))",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"\s*,?\s+before\s+(?=(?:you\s+)?\w+)", re.IGNORECASE)
_THEN_WORD = re.compile(rf"\b{_ORDER}", re.IGNORECASE)
_LAST_WORD = re.compile(rf"\b{_LAST}", re.IGNORECASE)
_AHEAD = 300
"""How many characters after a connective are looked at."""
_TAIL = " \t\n\r,;:.…。；，、-–—"


def clauses(request: str) -> tuple[Clause, ...]:
    """The orders of a request, in its order; empty when it holds no word at all."""
    masked = mask(request)
    found: list[Clause] = []
    for start, end in _blocks(request, masked):
        found += _sentences(request, masked, start, end)
    kept = [c for c in found if re.search(r"\w|¤", c.text) and not is_pleasantry(c.text)]
    return tuple(kept)


def _blocks(request: str, masked: str) -> Iterator[tuple[int, int]]:
    """The items of lists, and what stands between lists."""
    lines = [m.start() for m in _LINE_ITEM.finditer(masked)]
    cuts = lines if len(lines) > 1 else _inline_items(masked) or lines
    if not cuts:
        yield 0, len(request)
        return
    lead = masked[: cuts[0]]
    if not lead.rstrip().endswith(":"):
        yield 0, cuts[0]
    elif _keeps_whole(lead, masked[cuts[0] :]):
        yield 0, len(request)
        return
    yield from zip(cuts, [*cuts[1:], len(request)], strict=True)


def _inline_items(masked: str) -> list[int]:
    """Starts of ``(a) ... (b) ...`` or ``1) ... 2) ...`` when the marks count up from the first."""
    marks = [(m.start(), next(g for g in m.groups() if g)) for m in _INLINE_ITEM.finditer(masked)]
    for begin in ("a", "1"):
        expected, starts = begin, []
        for start, mark in marks:
            if mark == expected:
                starts.append(start)
                expected = str(int(mark) + 1) if mark.isdigit() else chr(ord(mark) + 1)
        if len(starts) > 1:
            return starts
    return []


def _keeps_whole(lead: str, items: str) -> bool:
    """Whether "Convert these to km:" needs its items: an order whose items are none."""
    body = _strip_lead(lead)[0]
    vague = re.match(r"(?:do|perform|complete|carry|execute|handle|solve|i\s|we\s|here\b)", body, re.IGNORECASE)
    return opens_order(body) and not vague and not opens_order(_strip_lead(items)[0])


def _sentences(request: str, masked: str, start: int, end: int) -> Iterator[Clause]:
    """The orders of each sentence; a sentence that only states a fact stays with the next one."""
    position = begin = start + len(masked[start:end]) - len(masked[start:end].lstrip())
    marker = _LINE_ITEM.match(masked[begin:end]) or _INLINE_ITEM.match(masked[begin:end])
    position = begin = begin + marker.end() if marker else begin
    for stop, after in [*(m.span() for m in _SENTENCE.finditer(masked, begin, end)), (end, end)]:
        if stop < end and after < end and is_statement(masked[position:stop]):
            continue
        yield from _orders(request, masked, begin, stop)
        position = begin = after


def _orders(request: str, masked: str, start: int, end: int) -> Iterator[Clause]:
    """The orders within one sentence."""
    begin, body = start, start + _strip_lead(masked[start:end])[1]
    link = _link_of_opening(masked[start:end])
    for match in _JOINT.finditer(masked, start, end):
        if match.start() <= body:
            continue
        joint, right = match.group(), masked[match.end() : min(end, match.end() + _AHEAD)]
        if not _cuts(masked[body : match.start()], joint, right):
            continue
        yield from _clause(request, masked, begin, match.start(), link)
        begin, link = match.end(), _link_of(joint + _lead_of(right))
        body = begin + _strip_lead(right)[1]
    yield from _clause(request, masked, begin, end, link)


def _clause(request: str, masked: str, start: int, end: int, link: Link) -> Iterator[Clause]:
    before = _BEFORE.search(masked, start, end)
    if (
        before
        and opens_order(_strip_lead(masked[start : before.start()])[0])
        and is_gerund_order(masked[before.end() : end])
    ):
        yield from _trimmed(request, masked, start, before.start(), link)
        yield from _trimmed(request, masked, before.end(), end, Link.THEN)
        return
    yield from _trimmed(request, masked, start, end, link)


def _trimmed(request: str, masked: str, start: int, end: int, link: Link) -> Iterator[Clause]:
    start += _strip_lead(masked[start:end])[1]
    while end > start and request[end - 1] in _TAIL and masked[end - 1] != "¤":
        end -= 1
    if start < end:
        yield Clause(request[start:end], masked[start:end], link)


def _cuts(left: str, joint: str, right: str) -> bool:
    """Whether a connective between two stretches parts two orders."""
    before, after = _strip_lead(left)[0], _strip_lead(right)[0]
    if not before.strip() or is_context(before) or is_bare_verb(before):
        return False
    lead = joint + _lead_of(right)
    if _link_of(lead) is not Link.NONE:
        return may_open_order(after)
    if joint.strip() in {",", "，", "、"} and is_gerund_order(after):
        return True
    return opens_order(after, strict=True, after_name=left.rstrip().endswith("¤"))


def _strip_lead(text: str) -> tuple[str, int]:
    """The text without connectives and politeness at its start, and how much was taken."""
    position = 0
    while match := _LEAD.match(text, position):
        position = match.end()
    while position < len(text) and text[position].isspace():
        position += 1
    return text[position:], position


def _lead_of(text: str) -> str:
    return " " + text[: _strip_lead(text)[1]]


def _link_of(joint: str) -> Link:
    if _LAST_WORD.search(joint):
        return Link.LAST
    return Link.THEN if _THEN_WORD.search(joint) else Link.NONE


def _link_of_opening(sentence: str) -> Link:
    return _link_of(_lead_of(sentence))
