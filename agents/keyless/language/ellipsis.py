"""A request that relies on the one before it: "And in Sydney?"."""

from __future__ import annotations

import re
from calendar import day_name, month_name
from collections.abc import Sequence

from callsheet.agents.keyless.language.clauses import clauses, is_question, without_lead, words
from callsheet.agents.keyless.language.lexicon import CLOCK, EMAIL, MOST, PATH, QUOTED, URL, is_noun, is_verb, mask
from callsheet.graphs.catalog.errors import PlanError

_LEAD = re.compile(r"^\s*(?:and|or|but|then|now|also|same|what about|how about|what if)\b[\s,:]*", re.IGNORECASE)
_ASKS = re.compile(r"\?\s*$|^\s*(?:or|but|what about|how about|what if)\b", re.IGNORECASE)
_PLACED = re.compile(
    r"^(?P<place>in|at|for|from|to|into|of|on|with|by|as)\s+(?:the\s+)?(?P<value>\S.*)$", re.IGNORECASE
)
_LONGER_NAME = re.compile(r",?\s+(?:[^\W\d_]{1,3}\s+)?[A-Z]")
"""What may follow when a name continues: "Paris, France", "Rio de Janeiro"."""
_RECORD = re.compile(r"([a-z]+)\s+(\d+)", re.IGNORECASE)
"""A record by its number: "issue 2"."""
_AMOUNT = re.compile(r"(?<![\w.])-?\d[\d.,]*(?:\s*(?:%|°\s*[CF]\b|[^\W\d_]{1,12}\b))?")
_DAY = re.compile(rf"\b(?:{'|'.join([*day_name, *filter(None, month_name)])})\b", re.IGNORECASE)
_PROPER = r"[A-Z][\w'’-]*(?:\s+[A-Z][\w'’-]*)*"
_NAME = re.compile(rf"(?<!^)(?<![.?!]\s)\b{_PROPER}")
_JOINED = re.compile(r"\b(?:and|then)\b|[;，；、]|\S\s*\n\s*\S", re.IGNORECASE)
_KINDS = (QUOTED, URL, EMAIL, PATH, CLOCK, _AMOUNT, _DAY, _NAME)
_UNIT = re.compile(r"[^\W\d_]+|%")
_WHOLE = "ask in a whole sentence"


def complete_request(said: str, before: Sequence[str]) -> str:
    """Completes a request from the last one if it does not say what to do; otherwise returns it unchanged.

    Its value replaces the only value of the same kind (name, amount, time, path, quotation) in the last request; if it
    has a preposition, only values after the same preposition count. An order that a question completes is a question.

    Args:
        said: What the user wrote.
        before: The earlier requests of the conversation, already completed.

    Raises:
        PlanError: The request does not say what to do, and the last one has several parts, or no or several values that
            could be replaced.

    Examples:
        >>> complete_request("And in Sydney?", ["What time is it in Oslo?"])
        'What time is it in Sydney?'
    """
    if not before or len(said) > MOST or len(before[-1]) > MOST or (rest := _elliptical(said)) is None:
        return said
    last, placed = before[-1], _PLACED.match(rest)
    record = _RECORD.fullmatch(rest)
    if record and is_noun(record[1]) and re.search(rf"\b{record[1]}\s+#?\d", last, re.IGNORECASE):
        placed = None
        rest = record[2]
    if len(clauses(last)) > 1:
        raise PlanError(f"{said!r} does not say which part of the last request ({last!r}) is meant: {_WHOLE}")
    place, value = (placed["place"], placed["value"]) if placed else ("", rest)
    spans = [span for span in _like(value, last) if _after(place, last, span[0])]
    if len(spans) != 1:
        many = f"{len(spans)} values" if spans else "no value"
        raise PlanError(
            f"{said!r} does not say what is to be done, and {many} of the last request ({last!r}) could be meant: "
            f"{_WHOLE}"
        )
    start, end = spans[0]
    _check_unit(said, value, last[start:end], last)
    completed = f"{last[:start]}{value}{last[end:]}"
    if is_question(last) or not _ASKS.search(said):
        return completed
    return f"{without_lead(completed).rstrip(' .!?')}?"


def one_clause(request: str) -> bool:
    """Whether a request is certainly one order or question: rules find one, and no connective suggests another."""
    return len(request) <= MOST and len(clauses(request)) <= 1 and not _JOINED.search(mask(request))


def _elliptical(said: str) -> str | None:
    """The value in a request that has no order or question of its own, without the opening words; None otherwise."""
    if _LEAD.match(said) is None:
        return None
    rest = _LEAD.sub("", said).strip().rstrip("?.!").strip()
    opening = next(iter(words(rest)), "")
    orders = is_question(rest) or (is_verb(opening) and rest.startswith(opening) and not _RECORD.fullmatch(rest))
    return None if orders else rest or None


def _like(value: str, last: str) -> list[tuple[int, int]]:
    """The spans of values of the same kind in the last request."""
    kind = next((kind for kind in _KINDS[:-1] if kind.fullmatch(value)), _NAME)
    if kind is _NAME and not re.fullmatch(_PROPER, value):
        return []
    taken = [match.span() for other in _KINDS[: _KINDS.index(kind)] for match in other.finditer(last)]
    whole = kind is not _NAME
    spans = [match.span() for match in kind.finditer(last) if whole or not _LONGER_NAME.match(last, match.end())]
    return [(a, b) for a, b in spans if not any(a < end and start < b for start, end in taken)]


def _after(place: str, text: str, start: int) -> bool:
    return not place or bool(re.search(rf"\b{place}\s+(?:the\s+)?$", text[:start], re.IGNORECASE))


def _check_unit(said: str, value: str, replaced: str, last: str) -> None:
    """Rejects an amount in the target unit of the last request: "convert 3 miles to km", "and 20 km?"."""
    new, old = (match.group() if (match := _UNIT.search(text)) else "" for text in (value, replaced))
    if _AMOUNT.fullmatch(value) and new != old and re.search(rf"\b{re.escape(new)}\b", last):
        raise PlanError(f"{said!r} does not say what is to be done with {value}: {_WHOLE}")
