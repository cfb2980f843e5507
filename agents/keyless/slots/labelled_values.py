"""Values that a text labels with a parameter's own words: "of type 'meeting'", "the customers table"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from callsheet.agents.keyless.entities.evidence import Evidence, Kind, Pool
from callsheet.agents.keyless.language.lexicon import FUNCTION_WORDS
from callsheet.agents.keyless.slots.slot import Slot, stem, words_of

LABELS: dict[str, tuple[str, ...]] = {
    "name": ("named", "called", "name"),
    "title": ("titled", "entitled", "called", "named", "title", "heading"),
    "event": ("called", "named", "titled", "event"),
    "branch": ("named", "called", "branch"),
    "message": ("message", "saying", "that says", "says"),
    "content": ("content", "contents", "saying", "that says", "containing", "text", "body", "line", "with the words"),
    "contents": ("contents", "content", "saying", "that says", "containing", "text", "line"),
    "text": ("text", "saying", "that says", "containing", "content", "line", "with the words"),
    "body": ("body", "saying", "that says", "text", "message"),
    "observation": ("observation", "observing", "noting"),
    "head": ("head", "first", "top"),
    "tail": ("tail", "last"),
    "variable": ("with respect to", "in terms of", "variable"),
    "count": ("count", "top", "first", "last", "at most"),
    "limit": ("limit", "top", "first", "at most", "up to"),
    "results": ("results", "top", "first", "at most"),
    "quantity": ("quantity", "qty", "amount"),
    "from": ("from", "of"),
    "to": ("to", "with", "into"),
}
"""Other words that label a value of a parameter of this name."""

COUNTED = frozenset({"quantity", "qty", "count", "amount", "copies", "number"})
_PIECES = r"(?:pieces?|items?|units?|copies|times|pcs)"
_BARE_WELCOME = frozenset(
    """
    type table branch column sheet user username tag label category status color colour database schema channel group
    role ssid password style variable symbol client customer name title module service server host topic project
    industry currency method strategy
    """.split()
)
_WEAK = frozenset({"id", "value", "path", "number", "string", "key", "name", "type", "text", "names"})
_BRIDGE = (
    r"\s*(?:\([^)]*\)\s*)?(?::|=|is\b|are\b|of\b|as\b|set\s+to\b|named\b|called\b|should\s+be\b|being\b)?"
    r"\s*(?:the\b\s*|an?\b\s*)?"
)
_TELLING = frozenset({"type", "message", "title", "text", "description", "status", "kind", "role"})
"""Last words that say what a value is whatever stands before them."""
_ADJECTIVES = frozenset(
    """
    new old whole entire same other big small main first second third last next previous current full complete empty
    temporary big given following open high low my your our the this that each every all any some data
    """.split()
)
_PERCENT = re.compile(r"\s*(?:%|per\s?cent\b)", re.IGNORECASE)


def labels_of(slot: Slot) -> tuple[str, ...]:
    """The words and phrases that may label a slot's value, the most telling first."""
    head = slot.head.removesuffix("s")
    whole = [" ".join(slot.words)] if len(slot.words) > 1 else []
    if slot.head in _TELLING:
        return tuple(dict.fromkeys([*whole, slot.head, *LABELS.get(head, ())]))
    words = slot.words[: slot.words.index("per")] if "per" in slot.words[1:] else slot.words
    strong = [w for w in words if w not in _WEAK] or list(words)
    extra = [other for word in (slot.head, head, *strong) for other in LABELS.get(word, ())]
    held = (
        [words_of(slot.parent)[-1].removesuffix("s").replace("entitie", "entity")]
        if slot.parent and head == "name"
        else []
    )
    return tuple(dict.fromkeys([*whole, *strong, *(w.removesuffix("s") for w in strong), *extra, *held]))


def find_labelled(slot: Slot, pool: Pool) -> Any:
    """The value that stands beside one of a slot's labels, or None."""
    for label in labels_of(slot):
        for found in _beside(slot, pool, label):
            return found
    return None


def _beside(slot: Slot, pool: Pool, label: str) -> Iterator[Any]:
    words = r"[\s_-]+".join(re.escape(word) for word in label.split())
    for match in re.finditer(rf"(?<![\w¤]){words}s?(?![\w])", pool.bare, re.IGNORECASE):
        bridge = re.compile(_BRIDGE, re.IGNORECASE).match(pool.bare, match.end())
        for start in dict.fromkeys([bridge.end() if bridge else match.end(), match.end() + 1]):
            item = pool.at(start)
            if item and _fits(slot, item):
                yield taken(slot, pool, item)
                return
        if (
            slot.textual
            and not slot.numeric
            and (word := _bare_after(slot, pool, label, bridge.end() if bridge else match.end()))
        ):
            yield word
            return
        if (before := _before(slot, pool, match.start(), label)) is not None:
            yield before
            return
    if slot.numeric and set(slot.words) & COUNTED:
        for item in pool.free(Kind.NUMBER):
            if re.match(rf"\s*{_PIECES}\b", pool.text[item.end :], re.IGNORECASE):
                yield taken(slot, pool, item)
                return


def _fits(slot: Slot, item: Evidence) -> bool:
    if slot.numeric:
        return item.kind is Kind.NUMBER
    if slot.head in {"id", "number", "code", "sku", "key"}:
        return slot.textual and item.kind in {Kind.IDENTIFIER, Kind.NUMBER, Kind.QUOTED, Kind.PHONE}
    return slot.textual and item.kind not in {Kind.JSON, Kind.EMAIL, Kind.URL, Kind.SQL}


def taken(slot: Slot, pool: Pool, item: Evidence) -> Any:
    """A piece's value as a parameter takes it: a string parameter a number as it is written, a share 5 % as .05."""
    value, percent = pool.take(item), is_percentage(pool, item)
    if percent and takes_percentage(slot):
        pool.used.append((item.end, percent))
        return round(value / 100, 12) if slot.is_share else value
    return pool.text[item.start : item.end].strip() if slot.textual and item.kind is Kind.NUMBER else value


def is_percentage(pool: Pool, item: Evidence) -> int:
    """Where the percent sign of a number ends; 0 where it has none."""
    match = _PERCENT.match(pool.text, item.end) if item.kind is Kind.NUMBER else None
    return match.end() if match else 0


def takes_percentage(slot: Slot) -> bool:
    """Whether a parameter takes a percentage, as it is or as a share of 1."""
    about = f"{' '.join(slot.words)} {slot.description.lower()}"
    return slot.numeric and (slot.is_share or "rate" in slot.words or "percent" in about)


def _before(slot: Slot, pool: Pool, start: int, label: str) -> Any:
    """A value in front of its label: "3 years", "'x' as an observation", "the customers table"."""
    for item in pool.items:
        if pool.is_used(item.start, item.end) or not _fits(slot, item) or item.end > start:
            continue
        if slot.numeric and re.fullmatch(r"[\s-]*%?[\s-]*", pool.text[item.end : start]):
            return taken(slot, pool, item)
        if item.kind is Kind.QUOTED and re.fullmatch(r"\s*(?:as\s+(?:an?|the|its)\s+)?", pool.text[item.end : start]):
            return taken(slot, pool, item)
    if slot.numeric or label not in _BARE_WELCOME:
        return None
    match = re.search(r"\b(?:the|in|of|from)\s+([A-Za-z][\w.-]*)\s+$", pool.bare[:start])
    if match and match.group(1).lower() not in _ADJECTIVES | FUNCTION_WORDS and not pool.is_used(*match.span(1)):
        pool.used.append(match.span(1))
        return match.group(1)
    return None


def _bare_after(slot: Slot, pool: Pool, label: str, start: int) -> str | None:
    """An unquoted name right after its label."""
    match = re.compile(r"[A-Za-z][\w./-]*[\w]|[A-Za-z]").match(pool.text, start)
    if match is None or pool.is_used(*match.span()) or pool.bare[start] == "¤":
        return None
    word = match.group()
    naming = label in {"named", "called", "titled", "entitled"}
    if naming or word[0].isupper():
        match = re.compile(rf"{re.escape(word)}(?:\s+[A-Z][\w-]*)*").match(pool.text, start) or match
    if word.lower() in FUNCTION_WORDS or stem(word) in {stem(w) for w in slot.words}:
        return None
    if slot.head in {"id", "number", "code"} and not re.search(r"\d", word):
        return None
    single = len(word) == 1 and slot.head in {"variable", "symbol"}
    welcome = naming or single or label in _BARE_WELCOME or word[0].isupper() or re.search(r"[\d_/-]", word)
    if not welcome or word.lower() in _ADJECTIVES:
        return None
    pool.used.append(match.span())
    return match.group()
