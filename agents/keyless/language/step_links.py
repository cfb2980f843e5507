"""What one clause's result feeds into the next: references, order words, verbs that consume."""

from __future__ import annotations

import re
from collections.abc import Sequence

from callsheet.agents.keyless.language.clauses import Clause, Link
from callsheet.agents.keyless.language.lexicon import CONSUMING, FUNCTION_WORDS, RESULT_NOUNS
from callsheet.agents.keyless.language.predicates import words
from callsheet.agents.keyless.language.spans import PATH
from callsheet.agents.safety.tool_effects import changes, is_act

_ALL = re.compile(
    r"\bboth(?!\s+\S+\s+and\b)(?=\s+(?:of\b|to\b|in\b|into\b|as\b|\w+s\b)|\s*$|[.,;])|\ball\s+(?:of\s+)?(?:the\s+|these\s+|those\s+|your\s+)?"
    r"(?:results|answers|values|outputs|findings|numbers|figures|lines)\b"
    r"|\ball\s+(?:three|four|five)\b|\beach\s+(?:result|answer|one\b)"
    r"|\bthe\s+(?:two|three|four|five)\b|\b(?:the|these|those)\s+(?:results|answers|outcomes|findings|outputs)\b"
    r"|\bbetween\s+(?:them|the)\b|\beverything\b",
    re.IGNORECASE,
)
_PLURAL = re.compile(r"\b(?:them|those|these|their)\b|\bwhich\s+(?:is|are|was|has|one|of)\b", re.IGNORECASE)
_DUMMY_IT = re.compile(
    r"\bwhat\s+time\s+(?:is\s+)?it(?:\s+is)?\b|\bit(?:'s|\s+is|\s+was)\s+(?:¤|\d|about|now|noon|midnight|raining|sunny|time\b|true|possible)"
    r"|\bis\s+it\s+(?:raining|snowing|sunny|true|possible|¤|\d)|\bit\s+takes?\b|\bmake\s+sure\b",
    re.IGNORECASE,
)
_SINGULAR = re.compile(
    r"\b(?:it|its|itself)\b|\bthe\s+(?:[\w-]+\s+){1,3}one\b"
    r"|\b(?:of|with|to|from|in|for|by|than|as|into|on|and|plus|minus|times|using)\s+(?:that|this)\b(?!\s+(?:is|it|the)\b)"
    r"|^\w+\s+(?:that|this)\b|\b(?:that|this)\s+(?:to|into|in|as|by|with|value|number|result|file|figure|amount|text"
    r"|list|page|report|answer|temperature|sum|total|date|time|one)\b",
    re.IGNORECASE,
)
_DEFINITE = re.compile(r"\b(?:the|that|this|its|your)\s+((?:[\w-]+\s+){0,3}?[\w-]+)", re.IGNORECASE)
_RESULT = re.compile(
    r"\bthe\s+(?:result|answer|output|outcome|sum|total|average|mean|summary|transcript|translation|response|reply"
    r"|product|difference|quotient|conversion)\b(?=\s*$|\s*[,.;:?!¤(]|\s+(?:to|into|as|by|with|and|on|at|is|was|if|plus|minus|via|through|under)\b)",
    re.IGNORECASE,
)
_BARE_CONSUMER = re.compile(r"\w+\s+(?:(?:up|back|down)\s+)?(?:to|into|in|as|under|at|on)\s", re.IGNORECASE)
_ORDINAL = re.compile(r"\bthe\s+(first|second|third|fourth)\s+(?:one|result|answer|value|number)\b", re.IGNORECASE)
_ORDINALS = ("first", "second", "third", "fourth")
_PASSIVE_OPENER = re.compile(r"(?:the|that|this|it)\b.*\bbe\s+(\w+?)e?[dn]\b", re.IGNORECASE)


def dependencies(found: Sequence[Clause]) -> list[tuple[int, ...]]:
    """For each clause the indices of the earlier ones whose results it uses."""
    waits: list[tuple[int, ...]] = []
    for index, clause in enumerate(found):
        waits.append(tuple(sorted(_needed(found, waits, index, clause))) if index else ())
    return waits


def _needed(found: Sequence[Clause], waits: Sequence[tuple[int, ...]], index: int, clause: Clause) -> set[int]:
    loose = _leaves(waits)
    text = _DUMMY_IT.sub(lambda m: "¤" * len(m.group()), clause.masked)
    needed = _same_objects(found, index)
    if clause.link is Link.THEN:
        needed.add(index - 1)
    elif clause.link is Link.LAST:
        needed |= loose
    needed |= {i for i in _ordinals(text) if i < index}
    if _ALL.search(text):
        return needed | loose
    if _PLURAL.search(text):
        return needed | (loose if _several_results(found, loose, index) else {index - 1})
    if _SINGULAR.search(text):
        return needed | {index - 1}
    if _RESULT.search(text):
        return needed | {index - 1}
    if _consumes(clause.masked):
        needed |= _by_noun(found, index, text, loose)
    return needed


def _same_objects(found: Sequence[Clause], index: int) -> set[int]:
    """Earlier steps that must be over because one of both changes what the other names, or looks at all there is."""
    paths, change = _paths_of(found[index]), _changes(found[index])
    looks = not change and "¤" not in found[index].masked and is_act(_verb(found[index]))
    return {
        i
        for i, earlier in enumerate(found[:index])
        if (_changes(earlier) and looks and _paths_of(earlier))
        or ((_changes(earlier) or change) and paths & _paths_of(earlier))
    }


def _paths_of(clause: Clause) -> set[str]:
    return {match.group().lower() for match in PATH.finditer(clause.text)}


def _changes(clause: Clause) -> bool:
    return changes(_verb(clause))


def _verb(clause: Clause) -> str:
    return next(iter(words(clause.masked)), "").lower()


def _leaves(waits: Sequence[tuple[int, ...]]) -> set[int]:
    """Those that no later clause has used yet."""
    used = {i for earlier in waits for i in earlier}
    return {i for i in range(len(waits)) if i not in used}


def _ordinals(text: str) -> set[int]:
    return {_ORDINALS.index(m.group(1).lower()) for m in _ORDINAL.finditer(text)}


def _several_results(found: Sequence[Clause], loose: set[int], index: int) -> bool:
    """Whether "them" means several steps' results rather than the things of the last one."""
    last = words(found[index - 1].masked)
    plural = any(w.endswith("s") and len(w) > 3 and w.islower() for w in last[1:4])
    return len(loose) > 1 and not plural


def _consumes(masked: str) -> bool:
    if _PASSIVE_OPENER.match(masked):
        return True
    first = words(masked)[:1]
    if not first:
        return False
    verb = first[0].lower()
    return bool({verb, verb.removesuffix("ing"), verb.removesuffix("ing") + "e"} & CONSUMING)


def _by_noun(found: Sequence[Clause], index: int, text: str, loose: set[int]) -> set[int]:
    """Steps that a definite noun ("the average") or a missing object ("save to x") points at."""
    for match in _DEFINITE.finditer(text):
        for noun in match.group(1).lower().split():
            named = [
                i for i in range(index) if noun not in FUNCTION_WORDS and noun in map(str.lower, words(found[i].masked))
            ]
            if named:
                return {named[-1]}
            if noun in RESULT_NOUNS:
                return {index - 1}
    return set(loose) if _BARE_CONSUMER.match(text) else set()
