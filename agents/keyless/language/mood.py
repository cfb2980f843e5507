"""Whether a step is a plain order: affirmative and unconditional, and the whole request with it."""

from __future__ import annotations

import re
from collections.abc import Collection

from callsheet.agents.keyless.language.clauses import clauses, headings, is_question, words
from callsheet.agents.keyless.language.lexicon import is_noun, mask
from callsheet.agents.safety.tool_effects import ORDERS, RECORD_ORDERS, alike, is_act

_UNSURE = re.compile(
    r"\b(?:not|never|no|none|nobody|nothing|neither|nor|without|unless|if|whether|or|except|instead|rather|otherwise"
    r"|when|whenever|once|until|till|while|before|because|cannot|\w+n['’]t|(?:do|does|did|is|are|was|were|ca|wo|should|would|could|must|has|have|had)nt"
    r"|should|shall|may|might|must|ought|would|could|supposed?|assum(?:e|ing)|imagine|pretend|hypothetically)\b",
    re.IGNORECASE,
)
_TIME_ASKED = re.compile(
    r"\bwhen\s+(?:it(?:'s|\s+is)\b|(?:the|a|our|my)\b|(?:do|does|did|is|are|was|were)\b)", re.IGNORECASE
)
_MONTH_OF_MAY = re.compile(r"\d(?:st|nd|rd|th)?(?:\s+of)?\s+May\b|\bMay\s+\d")
_ORDERED_BY_TIME = re.compile(
    r"\bbefore\s+you\b|\b(?:when|once)\s+(?:that|this|it)(?:'s|\s+is)\s+(?:done|finished)\b", re.I
)
_POLITE = re.compile(
    r"\b(?:(?:can|could|would|will)\s+(?:you|u)(?:\s+please)?\b|i(?:'d|\s+would)\s+like\s+you\s+to\b"
    r"|i\s+(?:want|need)\s+you\s+to\b),?\s*",
    re.IGNORECASE,
)
_INDIRECT = re.compile(r"\bto\s+(\w+)|\b(?!saying\s+¤)(\w+?)(?:ing|ed)\b", re.IGNORECASE)
_AUXILIARY = re.compile(
    r"\s*(?:is|are|was|were|do|does|did|has|have|had|can|could|should|may|must|will|would)\b(?!\s+not\b)", re.IGNORECASE
)
_ASKED = re.compile(r"\?\W*$")
_CARRY_OUT = frozenset("carry complete do execute handle perform".split())
_TASKS = frozenset(
    "a all and are both can could for four here i in is list me my need now of order orders our out steps task"
    " tasks the these thing things this three to todo todos today two following you your".split()
)
"""Words of a heading that says nothing about its list: "These are my tasks for today:"."""
_STRAY = re.compile(r"[\"“”„«»`]")
"""Unpaired quotation marks: what they quote is unknown."""
_BEFORE_NOUN = frozenset(
    "a an another any each every her his its my our that the their this your of to for in with".split()
)


def objection(step: str, request: str, tool: Collection[str], *, whole: bool = False, understood: bool = False) -> str:
    """Why a step is not a plain order for a tool that may change something; empty if it is one.

    A plain order opens with a verb for what the tool does. The rest of the request must consist of orders and questions
    too: a negation, condition, supposition, report or alternative anywhere in it rules out all of it.

    Args:
        step: The text of the step.
        request: The whole request of the step.
        tool: Verbs for what the tool does, lower case.
        understood: Whether each clause of the request is known to be what some tool does.
        whole: Whether the tool gets the whole step as text: its reader then understands indirect requests.
    """
    tool = frozenset().union(*map(alike, tool))
    masked = mask(request)
    polite = _POLITE.sub("please ", masked)
    if doubt := _UNSURE.search(_without_questions(polite)):
        return f'"{doubt.group()}" means that it is not a plain order'
    verb = head_of(step, tool)
    if verb not in tool:
        return f'"{verb or step}" is not an order for this tool'
    if stray := _STRAY.search(masked):
        return f"the quotation mark {stray.group()} has no partner"
    for heading in headings(masked):
        if not _is_neutral(heading):
            return f'"{heading}:" is not an order'
    for clause in clauses(request):
        known = understood or _opens(clause.masked, tool) or _orders_record(clause.masked)
        if not (known or is_question(clause.masked)):
            return f'rules cannot tell whether "{clause.text}" is an order of its own'
        indirect = next((m for m in _INDIRECT.finditer(clause.masked) if _is_effect(m, clause.masked)), None)
        if indirect and not whole:
            return f'"{indirect.group()}" is not an order'
    return "it is a question" if _ASKED.search(step) and not _POLITE.search(masked) else ""


def head_of(step: str, tool: Collection[str] = ()) -> str:
    """The verb that opens a step, lower case; empty if it opens with something else."""
    text = mask(step).lstrip()
    first = words(text)[:1]
    return first[0].lower() if first and text.startswith(first[0]) and _opens(text, tool) else ""


def is_yes_or_no(step: str) -> bool:
    """Whether a step is a yes-or-no question."""
    return bool(_AUXILIARY.match(step))


def _opens(text: str, known: Collection[str] = ()) -> bool:
    first = next(iter(words(text)), "")
    is_named = re.match(rf"\W*{re.escape(first)}\s+of\b", text)  # a noun: "restart of the server"
    return bool(first) and not is_named and (is_act(first.lower()) or first.lower() in (*ORDERS, *known))


def _orders_record(masked: str) -> bool:
    """Whether a clause orders something for a record of its own: "cancel booking 2", not "cancel that"."""
    first = next(iter(words(masked)), "")
    return masked.startswith(first) and first.lower() in RECORD_ORDERS and bool(re.search(r"\d|¤", masked))


def _without_questions(masked: str) -> str:
    """The text without phrases that only ask for a time or give the order of the work."""
    return _TIME_ASKED.sub("", _ORDERED_BY_TIME.sub("", _MONTH_OF_MAY.sub("", masked)))


def _is_neutral(heading: str) -> bool:
    """Whether a heading says only that a list of orders follows."""
    said = [word.lower() for word in words(heading) if word.lower() != "please"]
    rest = said[1:] if said[:1] and said[0] in _CARRY_OUT else said
    return _TASKS.issuperset(rest)


def _is_effect(match: re.Match[str], clause: str) -> bool:
    """Whether a form of a verb tells of an effect: "by deleting", not "the booking"."""
    after_to, stem = match.groups()
    forms = {after_to} if after_to else {stem, f"{stem}e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem}
    if not any(is_act(form.lower()) for form in forms):
        return False
    before = [word.lower() for word in words(clause[: match.start()])]
    names = not after_to and is_noun(match.group()) and (len(before) == 1 or (before and before[-1] in _BEFORE_NOUN))
    return not names
