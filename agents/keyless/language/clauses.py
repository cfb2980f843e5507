"""Splits a request into clauses: where one order ends and the next begins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from string import ascii_lowercase, digits

from callsheet.agents.keyless.language.lexicon import CONSUMING, NOT_VERBS, is_noun, is_verb, mask
from callsheet.agents.safety.tool_effects import ORDERS, RECORD_ORDERS, is_act


class Link(StrEnum):
    """How a clause is linked to the one before it."""

    NONE = ""
    THEN = "then"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Clause:
    """One order of a request, with protected spans blanked in ``masked``, and its link to the clause before.

    A verb that it shares with the clause before is repeated.
    """

    text: str
    masked: str
    link: Link = Link.NONE


_ITEM = re.compile(r"^[ \t]*(?:[-*•–]|\d{1,2}[.)])[ \t]+", re.MULTILINE)
_INLINE_ITEM = re.compile(r"(?:(?<=\s)|^)\(?([a-z]|\d)[.)]\s+(?=\S)")
_HEADING = re.compile(r"^(.*):[ \t]*$", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])\s*|;\s*|\n+")
_THEN = r"(?:then|next|after(?:\s+(?:that|this)|wards?))\b"
_LAST = r"(?:finally|lastly)\b"
_ALSO = r"(?:also|as\s+well\s+as|and|plus|first)\b"
_JOINT = re.compile(
    rf"(?:\s*,)?\s+(?!next\b|first\b)(?:{_THEN}|{_LAST}|{_ALSO})\s*|\s*[,，、]\s*|\s+[-–—&]\s+", re.IGNORECASE
)
"""What may join two orders; "next" and "first" only after "and" or a comma: "send the first email"."""
_LEAD = re.compile(
    rf"(?:[\s,;:.…]+|(?:{_THEN}|{_LAST}|{_ALSO}|but|so|please|pl[sz]|kindly|just|now|go\s+ahead\s+and"
    r"|(?:can|could|would|will)\s+(?:you|u)|i(?:'d|\s+would)\s+like\s+you\s+to|i\s+(?:want|need)\s+you\s+to)(?=[\s,]|$)"
    r"|(?:hi|hello|hey|ok(?:ay)?|yes|sure)(?=[,!.]))*",
    re.IGNORECASE,
)
_THEN_WORD, _LAST_WORD = (re.compile(rf"\b{word}", re.IGNORECASE) for word in (_THEN, _LAST))
_AHEAD = 300
"""How many characters after a connective are examined."""
_TAIL = " \t\n\r,;:.…。；，、-–—"
_THANKS = re.compile(
    r"(?<=[\s,.!])(?:please|pl[sz]|(?:many )?thank(?:s| you)(?: in advance)?)[^\w¤]{0,9}$", re.IGNORECASE
)
_GREETING = re.compile(
    r"(?:(?:hi|hello|hey|dear)\b(?: (?:there|all|everyone|(?-i:[A-Z]\w*)))?|good (?:morning|evening)|cheers|ok(?:ay)?"
    r"|(?:many )?thank(?:s| you)(?: (?:so|very) much| a lot| in advance)?)\W*",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_](?:[\w'’-]*\w)?")
_QUESTION = re.compile(
    r"(?!when\s+it\b)(?:what|which|who|whom|whose|where|when|why|how)(?:'s\b|\s+(?:\w+\s+)?(?:is|are|was|were|am|do|does|did|can|could"
    r"|will|would|should|shall|has|have|had|may|might|must)\b)"
    r"|how\s+(?:many|much|far|long|old|tall|big|often|high|deep|heavy|fast)\b",
    re.IGNORECASE,
)
_OBJECT = re.compile(
    r"\s+(?:up|down|out|off|back|over|away)\b|\s*(?:(?:the|a|an|its?|them|this|that|these|those|all|both|each|every"
    r"|any|some|my|our|your|me|us|him|her|what|which|who|how|when|where|if|everyone|everything|one|two|three)\b"
    r"|[¤\d#@$€£A-Z]|\w{3,}s\b|[.!?;]|$)"
)
_PROPERTY = re.compile(r"\s*[:=]?\s+(?:\d[\d.]*|¤+)\s*(?:[,;.!?]|$|(?:and|in|on|to|for)\b)")
"""A value and nothing more after a noun: "limit 5", "subject 'Hi'"."""
_RECORD = re.compile(r"\s+(?:#?\d[\d.]*|¤+|[A-Z]+-\d+)\s*(?:[,;.!?]|$|and\b)")
"""An identifier and nothing more after a noun."""
_AIMED = re.compile(
    r"-?[\d¤]+(?:\s*[^\W\d_]+)?\s+(?:to|into)\s+(?:¤+|[^\W\d_][\w/]*)\s*(?=[,;.!?]|and\b|then\b|$)", re.IGNORECASE
)
"""A value and where it goes, and nothing more: "20 C to F"."""
_TO = re.compile(r"\s*(?:to|into|as|in|on|at|for|from|with)\b", re.IGNORECASE)


def clauses(request: str) -> tuple[Clause, ...]:
    """The orders of a request, in text order; empty if it has no words."""
    masked = mask(request)
    found = (c for start, end in _blocks(masked) for c in _sentences(request, masked, start, end))
    return tuple(c for c in found if re.search(r"\w|¤", c.text) and not _GREETING.fullmatch(c.text))


def words(text: str) -> list[str]:
    """The words of a text, in order, with their case."""
    return _WORD.findall(text)


def is_question(text: str) -> bool:
    """Whether a text opens with a question word and its verb or noun."""
    return bool(_QUESTION.match(text.lstrip()) or re.match(r"when\b.*,\s*what\b", text.strip(), re.IGNORECASE))


def headings(masked: str) -> list[str]:
    """The lines that end with a colon, and what stands with a colon before a list, without the colons."""
    found = [match[1] for match in _HEADING.finditer(masked)]
    items = _items(masked)
    lead = masked[: items[0].start()].rstrip() if items else ""
    return [text.strip() for text in dict.fromkeys([*found, lead[:-1].rpartition("\n")[2] if lead[-1:] == ":" else ""])]


def _items(masked: str) -> list[re.Match[str]]:
    """The marks of a list, ``- ...`` or ``(a) ... (b) ...``."""
    items = list(_ITEM.finditer(masked))
    if len(items) < 2:
        items = list(_INLINE_ITEM.finditer(masked))
        marks = "".join(item[1] for item in items)
        if len(items) < 2 or not (ascii_lowercase.startswith(marks) or digits[1:].startswith(marks)):
            return []
    return items


def _blocks(masked: str) -> Iterator[tuple[int, int]]:
    """The items of a list, and the text before it; the whole text without a list."""
    items = _items(masked)
    lead = masked[: items[0].start()] if items else ""
    if not items or (lead.rstrip().endswith(":") and _opens_order(without_lead(lead))):
        yield 0, len(masked)
        return
    if not lead.rstrip().endswith(":"):
        yield 0, len(lead)
    yield from zip((i.end() for i in items), [*(i.start() for i in items[1:]), len(masked)], strict=True)


def _sentences(request: str, masked: str, start: int, end: int) -> Iterator[Clause]:
    for stop, after in [*(m.span() for m in _SENTENCE.finditer(masked, start, end)), (end, end)]:
        yield from _orders(request, masked, start, stop)
        start = after


def _orders(request: str, masked: str, start: int, end: int) -> Iterator[Clause]:
    """The orders within one sentence."""
    begin, link = _after_lead(masked, start, end)
    verb = ""
    for match in _JOINT.finditer(masked, start, end):
        body, after = _after_lead(masked, match.start(), min(end, match.end() + _AHEAD))
        left, right = verb + masked[begin : match.start()], masked[body : body + _AHEAD]
        shared = _shared_verb(left, right)
        if match.start() > begin and (shared or _parts(left, after, right)):
            yield from _clause(request, masked, begin, match.start(), link, verb)
            begin, link, verb = body, after, shared
    yield from _clause(request, masked, begin, end, link, verb)


def _clause(request: str, masked: str, start: int, end: int, link: Link, verb: str) -> Iterator[Clause]:
    if thanks := _THANKS.search(masked, start, end):
        end = thanks.start()
    while end > start and request[end - 1] in _TAIL and masked[end - 1] != "¤":
        end -= 1
    if start < end:
        yield Clause(verb + request[start:end], verb + masked[start:end], link)


def _shared_verb(left: str, right: str) -> str:
    """The verb that the next order leaves out, with a space: "Convert 3 miles to km and 20 C to F"."""
    first = _WORD.match(left)
    if first is None or not _opens_order(left) or not _AIMED.match(left, first.end() + 1) or not _AIMED.match(right):
        return ""
    return f"{first.group()} "


def _after_lead(masked: str, start: int, end: int) -> tuple[int, Link]:
    """Where a span begins after connectives and politeness, and the link that these express."""
    match = _LEAD.match(masked, start, end)
    lead = match.group() if match else ""
    link = Link.LAST if _LAST_WORD.search(lead) else Link.THEN if _THEN_WORD.search(lead) else Link.NONE
    return start + len(lead), link


def _parts(left: str, link: Link, right: str) -> bool:
    """Whether a connective between two spans separates two orders; "download and unzip x" shares an object."""
    if len(left.split()) < 2 or (re.search(r"\b(?:to|and|or)\s+\w+$", left) and is_verb(words(left)[-1])):
        return False
    if link is not Link.NONE:
        first = words(right)[:1]
        return bool(first) and right.startswith(first[0]) and first[0].lower() not in NOT_VERBS
    noun = _WORD.match(right)
    if noun and _RECORD.match(right, noun.end()) and noun.group().lower() in map(str.lower, words(left)[1:]):
        return False  # "cancel order 5 and order 6"
    return _opens_order(left) and _opens_order(right, beside_name=left.endswith("¤"), strict=True)


def _opens_order(text: str, *, strict: bool = False, beside_name: bool = False) -> bool:
    """Whether a text opens with an order or a question.

    Args:
        text: A span without its connective.
        strict: Whether a word that can also be a noun counts only before an object.
        beside_name: Whether the span follows a file name or quotation, after which a noun is unlikely.
    """
    first = _WORD.match(text)
    if is_question(text) or first is None:
        return first is not None
    word, rest = first.group(), text[first.end() :]
    if not is_verb(word) or re.match(r"\s+of\b", rest) or (strict and word[0].isupper() and not word.isupper()):
        return False
    ordered = is_act(word.lower()) or word.lower() in ORDERS or word.lower() in RECORD_ORDERS
    if strict and is_noun(word) and not ordered and _PROPERTY.match(rest):
        return False
    if not strict or not is_noun(word) or beside_name:
        return True
    return bool(_OBJECT.match(rest)) or (word.lower() in CONSUMING and bool(_TO.match(rest)))


def without_lead(text: str) -> str:
    """A text without connectives and politeness at its start."""
    return text[_after_lead(text, 0, len(text))[0] :]
