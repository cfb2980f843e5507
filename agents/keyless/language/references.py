"""Which earlier results a step refers to: one ("it"), or several ("both")."""

from __future__ import annotations

import re
from collections.abc import Sequence

from callsheet.agents.keyless.language.lexicon import AGGREGATES, CONSUMING, RESULT_NOUNS, mask
from callsheet.agents.planning.plan import StepResult
from callsheet.agents.safety.tool_effects import changes

_NOUNS = "|".join(sorted(RESULT_NOUNS))
_SEVERAL = re.compile(
    rf"\b(?:both|all|each|everything|them|these|those|their|which\s+(?:of|is)|the\s+(?:two|three|four|five))\b"
    rf"|\bthe\s+(?=(?:{_NOUNS})\b)\w+s\b(?!\s+of\b)",
    re.IGNORECASE,
)
_AGGREGATE = re.compile(rf"\b(?:{'|'.join(sorted(AGGREGATES))})\b(?!\s+of\b)", re.IGNORECASE)
_ONE = re.compile(rf"\b(?:it|its|that|this)\b|\bthe\s+(?:{_NOUNS})\b(?!\s+of\b)", re.IGNORECASE)
_DUMMY = re.compile(r"\btime\s+(?:is\s+it|it\s+is)\b|\bwhen\s+it(?:'s|\s+is)\b", re.IGNORECASE)
"""Phrases in which "it" refers to nothing: "what time is it when it is noon"."""
_PRONOUN = re.compile(r"\b(?:it|its|them|their)\b(?!['’])", re.IGNORECASE)
BEFORE_CRITERION = re.compile(
    r"\b(?:by|with|without|per|for|from|in|into|on|to|under|over|above|below|than|whose|where|if)\s+(?:(?:the|its|their|an?)\s+)?$",
    re.IGNORECASE,
)
"""Before a value that selects or sorts, and is not asked for."""
_OPENING = re.compile(r"[A-Za-z]+")


def refers_to_several(masked: str) -> bool:
    """Whether a masked clause refers to several results: "both", "the results", "compute the average"."""
    computes = opening(masked) not in CONSUMING and _AGGREGATE.search(masked)
    return bool(computes or _SEVERAL.search(_DUMMY.sub("", masked)))


def refers_to_one(masked: str) -> bool:
    """Whether a masked clause refers to one result: "it", "the result"."""
    return bool(_ONE.search(_DUMMY.sub("", masked)))


def aggregates(masked: str) -> frozenset[str]:
    """The nouns of a masked clause for a value that is computed from several: "the average", not "the average of"."""
    return frozenset(noun.lower() for noun in _AGGREGATE.findall(masked))


def pronouns(text: str) -> list[tuple[int, int]]:
    """The spans of the pronouns that stand for an earlier result."""
    blank = _DUMMY.sub(lambda match: "¤" * len(match.group()), text)
    return [match.span() for match in _PRONOUN.finditer(blank)]


def refers_back(masked: str) -> bool:
    """Whether a masked clause refers to another result: "it", "both", "the result"."""
    return refers_to_one(masked) or refers_to_several(masked)


def opening(masked: str) -> str:
    """The first word of a masked clause, lower case."""
    found = _OPENING.search(masked)
    return found.group().lower() if found else ""


def referred(text: str, inputs: Sequence[StepResult]) -> tuple[StepResult, ...]:
    """The results that a step refers to: all, or those from the last one that has a value.

    Args:
        text: The text of the step.
        inputs: Results of the steps that it waits for, directly or indirectly, in the order of the plan.
    """
    if refers_to_several(mask(text)):
        return tuple(inputs)
    last = next((at for at in reversed(range(len(inputs))) if _has_value(inputs[at])), len(inputs) - 1)
    return tuple(inputs[max(last, 0) :])


def with_value(inputs: Sequence[StepResult]) -> tuple[StepResult, ...]:
    """The results without those of steps that only changed something, if others remain."""
    return tuple(filter(_has_value, inputs)) or tuple(inputs)


def _has_value(done: StepResult) -> bool:
    return not only_changes(done.text)


def only_changes(text: str) -> bool:
    """Whether a step changes something, so that its result is no value: "write it to a.txt"."""
    return changes(opening(mask(text)))
