"""Closed vocabularies and yes or no: the values that a schema lists, found in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from callsheet.agents.keyless.entities.evidence import Pool
from callsheet.agents.keyless.slots.slot import Slot, stem, words_of

SYNONYMS: dict[str, tuple[str, ...]] = {
    "mean": ("average", "avg"),
    "average": ("mean", "avg"),
    "std_dev": ("standard deviation", "stdev", "std"),
    "stdev": ("standard deviation", "std dev"),
    "std": ("standard deviation",),
    "max": ("maximum", "largest", "highest", "biggest"),
    "min": ("minimum", "smallest", "lowest"),
    "sum": ("total",),
    "asc": ("ascending", "increasing"),
    "desc": ("descending", "decreasing"),
    "add": ("plus", "sum"),
    "subtract": ("minus", "difference"),
    "multiply": ("times", "product"),
    "divide": ("divided by", "quotient"),
    "completed": ("done", "finished"),
    "in_progress": ("ongoing", "started"),
    "urgent": ("critical",),
}
"""Other ways to say a value that tools often list."""

_SWITCH = re.compile(r"\b(?:turn|switch|put|set|keep|leave|light|lamp|is|be)\b[^.;]*?\b(on|off)\b", re.IGNORECASE)
_NEGATION = re.compile(
    r"(?:\b(?:without|no|not|don't|do\s+not|doesn't|never|skip|omit|exclude|excluding|disable|non|un|turn\s+off)\b[\s-]*)"
    r"(?:(?:any|the|a|an|to|include|including|use|using|show|be|its|with)\s+){0,2}$",
    re.IGNORECASE,
)
_FLAG_FILLERS = frozenset(
    {
        "is",
        "has",
        "have",
        "include",
        "includes",
        "use",
        "with",
        "enable",
        "enabled",
        "should",
        "do",
        "allow",
        "show",
        "only",
        "flag",
    }
)


def fill_closed(slot: Slot, pool: Pool) -> Any:
    """The listed value that the text names, or None."""
    text = pool.rest
    best: tuple[tuple[int, int, int], Any, int, int] | None = None
    for value in slot.vocabulary:
        for form, exact in _forms(value):
            for start, end in _places(form, text, exact=exact):
                near = 1 if _near_name(slot, text, start, end) else 0
                if not slot.required and not near and len(form) < 4:
                    continue
                rank = (near, end - start, -start)
                if best is None or rank > best[0]:
                    best = (rank, value, start, end)
    if best is None:
        return None
    pool.used.append(best[2:])
    return best[1]


def mentions(slot: Slot, pool: Pool) -> list[tuple[int, int]]:
    """Where the text names listed values, each stretch once, in its order."""
    found = sorted(
        {
            place
            for value in slot.vocabulary
            for form, exact in _forms(value)
            for place in _places(form, pool.rest, exact=exact)
        },
        key=lambda place: (place[0], -place[1]),
    )
    return [place for i, place in enumerate(found) if not any(a <= place[0] < b for a, b in found[:i])]


def fill_flag(slot: Slot, pool: Pool) -> bool | None:
    """Whether the text says yes or no to a flag, by the words of its name."""
    wanted = [stem(w) for w in slot.words if w not in _FLAG_FILLERS] or [stem(w) for w in slot.words]
    text = pool.bare
    spoken = [(stem(m.group()), m.start(), m.end()) for m in re.finditer(r"[A-Za-z]+", text)]
    for index in range(len(spoken) - len(wanted) + 1):
        window = spoken[index : index + len(wanted)]
        if all(_same(said, want) for (said, _, _), want in zip(window, wanted, strict=True)):
            negated = bool(_NEGATION.search(text[: window[0][1]]))
            inverse = bool({"no", "not", "disable", "skip", "exclude", "without"} & set(slot.words))
            explicit = re.match(
                r"\s*(?:=|:|is|to)?\s*(true|false|yes|no|on|off)\b", text[window[-1][2] :], re.IGNORECASE
            )
            if explicit:
                return explicit.group(1).lower() in {"true", "yes", "on"}
            return inverse or not negated
    return None


def _same(said: str, wanted: str) -> bool:
    shorter, longer = sorted((said, wanted), key=len)
    return said == wanted or (len(shorter) > 4 and longer.startswith(shorter))


def _forms(value: Any) -> Iterator[tuple[str, bool]]:
    """Ways to write a value, and whether the case counts."""
    said = str(value)
    if isinstance(value, bool):
        return
    plain = " ".join(words_of(re.sub(r"\(.*?\)", "", said))) or said
    short = len(said) <= 2 and not said.isdigit() and said.lower() not in {"on", "off"}
    yield (said if short else plain), short
    for other in SYNONYMS.get(said.lower(), SYNONYMS.get(plain, ())):
        yield other, False


def _places(form: str, text: str, *, exact: bool) -> Iterator[tuple[int, int]]:
    if form.lower() in {"on", "off"}:
        yield from (m.span(1) for m in _SWITCH.finditer(text) if m.group(1).lower() == form.lower())
        return
    if exact:
        yield from (m.span() for m in re.finditer(rf"(?<!\w){re.escape(form)}(?!\w)", text))
        return
    joined = r"[\s_‑-]*".join(re.escape(word) for word in form.split())
    plural = r"(?:s|es|d|ed)?" if form[-1:].isalpha() else ""
    yield from (m.span() for m in re.finditer(rf"(?<!\w){joined}{plural}(?!\w)", text, re.IGNORECASE))


def _near_name(slot: Slot, text: str, start: int, end: int) -> bool:
    around = re.findall(r"[a-z]+", text[max(0, start - 15) : start].lower())[-2:]
    around += re.findall(r"[a-z]+", text[end : end + 15].lower())[:2]
    return bool({stem(w) for w in around} & {stem(w) for w in slot.words})
