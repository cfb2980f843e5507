"""Places and languages that a text names after a preposition."""

from __future__ import annotations

import re
from functools import cache

from callsheet.agents.keyless.entities.evidence import Kind, Pool
from callsheet.agents.keyless.language.lexicon import NOT_VERBS
from callsheet.agents.keyless.slots.slot import Slot


@cache
def _languages() -> dict[str, str]:
    """Languages in lower case and their codes."""
    from babel import Locale

    return {name.lower(): code for code, name in Locale("en").languages.items()}


_PLACES = ("city", "location", "place", "town", "address", "destination", "origin", "airport", "station", "region")
_NAME = r"((?:[A-ZÀ-Þ][\w'’-]*)(?:\s+(?:de|la|of|the|am|sur)?\s?[A-ZÀ-Þ][\w'’-]*)*)"
_ANY = re.compile(rf"\b(?:in|for|at|near|of|around)\s+{_NAME}")
_FROM = re.compile(rf"\bfrom\s+{_NAME}")
_TO = re.compile(rf"\bto\s+{_NAME}")
_LOWER = re.compile(r"\b(?:in|near|around)\s+([a-z]{3,})\b")


def find_place(slot: Slot, pool: Pool) -> str | None:
    """The place or language that a slot asks for, or None."""
    if slot.says("language", "lang", "locale"):
        return _language(slot, pool)
    if not slot.says(*_PLACES) or slot.says("email", "ip", "mail"):
        return None
    source = set(slot.words) & {"origin", "from", "departure", "source", "start"}
    target = set(slot.words) & {"destination", "to", "arrival", "target", "end"}
    patterns = (_FROM,) if source else (_TO,) if target else (_ANY, _LOWER)
    for pattern in patterns:
        for match in pattern.finditer(pool.rest):
            if match.group(1).lower() not in NOT_VERBS:
                pool.used.append(match.span(1))
                return match.group(1)
    quoted = pool.free(Kind.QUOTED)
    return str(pool.take(quoted[0])) if slot.required and len(quoted) == 1 else None


def _language(slot: Slot, pool: Pool) -> str | None:
    source = bool(set(slot.words) & {"source", "from", "original", "input"})
    pattern = r"\bfrom\s+([A-Za-z]+)" if source else r"\b(?:to|into|in)\s+([A-Za-z]+)"
    for match in re.finditer(pattern, pool.rest):
        code = _languages().get(match.group(1).lower())
        if code:
            pool.used.append(match.span(1))
            return (
                code if re.search(r"\bISO\b|\bcode\b|['\"](?:en|fr|de|es)['\"]", slot.description) else match.group(1)
            )
    return None
