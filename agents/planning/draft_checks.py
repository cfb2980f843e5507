"""What weak models get wrong in a plan: they copy their instructions, and they add steps that nobody asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence

from callsheet.agents.keyless.language.lexicon import FUNCTION_WORDS
from callsheet.agents.planning.plan import Step

_WORD = re.compile(r"\w+")
_NAME = re.compile(r"\w+(?:[.:/@-]+\w+)*")
_COPIED = 6
"""Words in a row of a system prompt that no step has by chance."""


def copied_words(text: str, prompt: str, known: str) -> str:
    """Words in a row that a step has from the system prompt and not from what is known; empty where there are none.

    Args:
        text: The step's text.
        prompt: The system prompt.
        known: The request, and what else the step may repeat.
    """
    words = _WORD.findall(text.casefold())
    told, asked = (f" {' '.join(_WORD.findall(one.casefold()))} " for one in (prompt, known))
    rows = (" ".join(words[start : start + _COPIED]) for start in range(len(words) - _COPIED + 1))
    return next((row for row in rows if f" {row} " in told and f" {row} " not in asked), "")


def unasked_step(request: str, steps: Sequence[Step]) -> Step | None:
    """A step that the request does not ask for: no step needs it, and without it the plan still says the request.

    With C(text) the content words of a text, r the request, and t the other steps: a step s that no other depends on is
    not asked for if C(s) is no subset of C(r), and C(r) is a subset of the union of C(t). A plan in other words than
    the request's has no such step.

    Returns:
        The last step of this kind; None where there is none.
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
