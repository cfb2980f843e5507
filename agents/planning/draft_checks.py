"""Errors of weak models in plans: copied instructions, questions as steps, and steps that nobody asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from callsheet.agents.keyless.language.lexicon import FUNCTION_WORDS
from callsheet.agents.planning.plan import Step

_WORD = re.compile(r"\w+")
_NAME = re.compile(r"\w+(?:[.:/@-]+\w+)*")
_QUESTION = re.compile(r"(?:ask|prompt|request|wait for|get input from)\s+the\s+user\b", re.IGNORECASE)
_COPIED = 6
"""Number of consecutive words of a system prompt that a step does not contain by chance."""


def copied_words(text: str, prompt: str, known: str) -> str:
    """Consecutive words that a step copies from the system prompt and not from ``known``; empty without any."""
    words = _WORD.findall(text.casefold())
    told, asked = (f" {' '.join(_WORD.findall(one.casefold()))} " for one in (prompt, known))
    rows = (" ".join(words[start : start + _COPIED]) for start in range(len(words) - _COPIED + 1))
    return next((row for row in rows if f" {row} " in told and f" {row} " not in asked), "")


def asks_user(text: str, known: str) -> bool:
    """Whether a step is a question to the user, whom no agent can ask, and ``known`` does not say so."""
    return _QUESTION.match(text.strip()) is not None and "the user" not in known.casefold()


def unasked_step(request: str, steps: Sequence[Step]) -> Step | None:
    """A step that the request does not ask for: no other step needs it, and the other steps cover the request.

    With C(text) the content words of a text, r the request, and t the other steps: a step s that no other depends on is
    not asked for if C(s) is not a subset of C(r), and C(r) is a subset of the union of C(t). A plan in other words than
    the request has no such step.

    Returns:
        The last such step; None if there is none.
    """
    needed = {name for step in steps for name in step.depends_on}
    asked = _content_words(request)
    for step in reversed(steps):
        others = (_content_words(other.text) for other in steps if other is not step)
        invents = step.id not in needed and not _content_words(step.text) <= asked
        if asked and invents and asked <= set().union(*others):
            return step
    return None


def _content_words(text: str) -> set[str]:
    return set(_NAME.findall(text.casefold())) - FUNCTION_WORDS
