"""Giving a verb back to the orders that share it: "convert 3 miles to km and 5 lb to kg" asks for two things."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from callsheet.agents.keyless.language.clauses import Clause
from callsheet.agents.keyless.language.lexicon import PARTICLES, is_verb

_AND = re.compile(r"\s*,\s*(?:(?:and|as\s+well\s+as)\s+)?|\s+(?:and|as\s+well\s+as)\s+|\s*&\s+", re.IGNORECASE)
_PREPOSITION = re.compile(
    r"\b(?:about|around|as|at|between|by|for|from|in|into|near|on|onto|over|per|to|under|via|with|without)\b",
    re.IGNORECASE,
)
_AFTER = "|".join(sorted({"me", "us", *PARTICLES}))
_VERB = re.compile(rf"\s*([^\W\d_]+)(?:\s+(?:{_AFTER})\b(?=\s+[\w¤$€£\"']))?\s+", re.IGNORECASE)
_TAKES_BOTH = frozenset(
    "choose combine compare concatenate connect contrast correlate decide differentiate distinguish join link match "
    "merge mix relate".split()
)
"""Verbs of which "this in here and that in there" is one object."""


def shared_verbs(found: Sequence[Clause]) -> tuple[Clause, ...]:
    """The same orders, each that has one verb for several objects cut into one order an object.

    It is cut only where every part has the same prepositions in the same order, something before the first and
    something after each: "a table for two and a taxi for eight", but not "flights from Paris to London and Berlin".
    """
    return tuple(part for clause in found for part in _parted(clause))


def _parted(clause: Clause) -> Iterator[Clause]:
    verb = _VERB.match(clause.masked)
    if verb is None or not is_verb(verb[1]) or verb[1].casefold() in _TAKES_BOTH:
        yield clause
        return
    ends = [match.span() for match in _AND.finditer(clause.masked, verb.end())]
    spans = list(zip([verb.end(), *(b for _, b in ends)], [*(a for a, _ in ends), len(clause.masked)], strict=True))
    shapes = {_shape(clause.masked[start:end]) for start, end in spans}
    if len(spans) == 1 or len(shapes) > 1 or not shapes.pop():
        yield clause
        return
    yield Clause(clause.text[: spans[0][1]], clause.masked[: spans[0][1]], clause.link)
    for start, end in spans[1:]:
        text, masked = (whole[: verb.end()] + whole[start:end] for whole in (clause.text, clause.masked))
        yield Clause(text, masked, clause.link)


def _shape(text: str) -> tuple[str, ...]:
    """The prepositions of an object in their order; none where something is missing before or after one."""
    between = _PREPOSITION.split(text)
    whole = all(re.search(r"[\w¤]", piece) for piece in between)
    return tuple(word.casefold() for word in _PREPOSITION.findall(text)) if whole else ()
