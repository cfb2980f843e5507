"""Words that select or change what a step means, whatever the words of the tool are."""

from __future__ import annotations

import re
from collections.abc import Iterator

from callsheet.agents.keyless.slots.slot import stem, words_of

Span = tuple[int, int]
_STRAY = re.compile(r"[\"“”„«»`]|(?<![^\W_])['‘’]|['‘’](?![^\W_])")
"""Unpaired quotation marks: what they quote is unknown."""
_CRITERION = re.compile(
    r"\bby\s+(?:(?:the|its|their)\s+)?([a-z]+)(?=\s*(?:[.,;?!]|$)|\s+(?:and|in|asc\w*|desc\w*)\b)", re.IGNORECASE
)
"""A value that selects or sorts: "the books by price"."""
_PLURALS = re.compile(r"\b([a-z]{2,}s)\s+and\s+(?:(?:all|the|my|our)\s+)*([a-z]{2,}s)\b", re.IGNORECASE)
_HAVING = re.compile(
    r"\b(?:ha(?:s|ve|ving)|with(?:out)?)\s+(?:(?:an?|any|the)\s+)?([a-z]+)(?=\s*(?:[.,;?!]|$)|\s+(?:and|or)\b)",
    re.IGNORECASE,
)
"""Something that selects: "trips with a rating"."""
_LETTER = re.compile(r"\d\s+([ai])(?=\s*(?:[?.!,;]|$|(?:and|for|in|of|on|to|with)\b))", re.IGNORECASE)
"""A letter after a number that is no article: "room 5 a"."""
_STATE = re.compile(r"\b(?:is|are|was|were)\s+(on|out|over|up|inside)(?=\s*(?:[?.!,;]|$|and\b|or\b))", re.IGNORECASE)
"""A state that selects: "lamps that are on"."""
_OPTIONAL = re.compile(r",?\s+optionally\b.*|,\s+by\b.*")
_MODAL = re.compile(r"\b(can|could|may|might|must|should|will|to)\s+be\s+\w+", re.IGNORECASE)
"""What may be, and is not: "orders that can be cancelled"."""
_MINUS = re.compile(r"(?<=\d)[-−–](?=\s|$)")
_FROM_NOW = re.compile(r"\b(?:after|before|by|for|from|since|till|until)\s+now\b", re.IGNORECASE)
_DANGLING = re.compile(r"\b(?:an?|as|at|by|for|from|in|into|my|of|our|the|to|with|your)[\s.!?]{0,9}$", re.IGNORECASE)
"""The end of a text that is not finished: "archive page 5 to"."""
_OTHERS = re.compile(
    r"\b(?:and|or|plus|with)\s+(?:me|us|you|yours|mine|ours|all|everyone|everybody)\b|(?<!\S)@\w+", re.IGNORECASE
)
"""Further people or records: "to Bob and me"."""


def qualifiers(text: str, about: str, *, plainly: bool) -> Iterator[Span]:
    """The spans that an argument must use.

    Args:
        text: A step, without its quotations.
        about: The tool's name, then its description from the next line on.
        plainly: Whether the tool may change something; other tools also select by states and parts.
    """
    yield from (m.span(1) for m in _CRITERION.finditer(text) if f"by {m[1]}" not in _OPTIONAL.sub("", about.lower()))
    yield from _other_plurals(text, about)
    yield from (m.span(1) for m in _LETTER.finditer(text))
    yield from (m.span() for pattern in (_FROM_NOW, _STRAY, _MINUS) for m in pattern.finditer(text))
    if plainly:
        yield from (m.span() for pattern in (_OTHERS, _DANGLING) for m in pattern.finditer(text))
    else:
        own = {stem(word) for word in words_of(about.partition("\n")[0])}
        yield from (m.span(1) for m in _HAVING.finditer(text) if stem(m[1]) not in own)
        yield from (m.span(1) for pattern in (_STATE, _MODAL) for m in pattern.finditer(text))


def _other_plurals(text: str, about: str) -> Iterator[Span]:
    """One of two plurals that is not in the tool's name, unless its description joins them: "files and folders"."""
    name, _, description = about.partition("\n")
    own, told = {stem(word) for word in words_of(name)}, [stem(word) for word in words_of(description)]
    joined = {frozenset(ends) for ends in zip(told, told[2:], strict=False)}
    for pair in _PLURALS.finditer(text):
        one, other = stem(pair[1]), stem(pair[2])
        if ((one in own) != (other in own)) and frozenset((one, other)) not in joined:
            missing = pair[2] if one in own else pair[1]
            start = text.index(missing, pair.start())
            yield start, start + len(missing)
