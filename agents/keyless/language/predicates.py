"""Telling an order from a mere phrase by its first words."""

from __future__ import annotations

import re

from callsheet.agents.keyless.language.lexicon import (
    CONSUMING,
    NOT_VERBS,
    PARTICLES,
    PLEASANTRIES,
    SUBORDINATE,
    is_noun,
    is_verb,
)

_WORD = re.compile(r"[^\W\d_](?:[\w'’-]*\w)?")
_AUX = r"(?:is|are|was|were|am|do|does|did|can|could|will|would|should|shall|has|have|had|may|might|must)"
_QUESTION = re.compile(
    rf"(?:what|which|who|whom|whose|where|when|why|how)(?:'s|\s+(?:{_AUX})\b)"
    r"|(?:what|which)\s+\w+\s+(?:is|are|was|were|do|does|did|has|have|can|will)\b"
    r"|how\s+(?:many|much|far|long|old|tall|big|often|high|deep|heavy|fast)\b",
    re.IGNORECASE,
)
_YES_NO = re.compile(rf"{_AUX}\s+(?:it|there|the|this|that|these|those|he|she|they|we|you|i|my|our|your|any|[A-Z¤])")
_PASSIVE = re.compile(
    r"(?:the|a|an|it|that|this|these|those|they|both|all|each|everything|results?|its|their)\b[^,;]*?"
    r"\b(?:should|must|shall|needs?\s+to|has\s+to|have\s+to|ought\s+to|is\s+to|are\s+to)\s+(?:also\s+)?be\b",
    re.IGNORECASE,
)
_WANT = re.compile(
    r"(?:i|we)(?:'d|\s+would|\s+also|\s+really)*\s*(?:want|need|like|wish|have\s+to)\b|let(?:'s|\s+(?:us|me))\b|you\s+(?:should|must)\b",
    re.IGNORECASE,
)
_OBJECT = re.compile(
    r"(?:the|a|an|it|its|them|this|that|these|those|all|both|each|every|any|some|my|our|your|his|her|their|me|us|him"
    r"|to|into|what|which|who|how|whether|if|when|where|why|as|for|at|on|in|with|from|about|only|no|everyone|everybody"
    r"|everything|one|two|three|four|five|six)\b|[¤\d#@$€£A-Z]",
)
_PLACE = re.compile(r"\s*(?:in|at|on|for|from|about|with)\b", re.IGNORECASE)
_GREETING = re.compile(r"(?:hi|hello|hey|dear|thanks|thank\s+you)\b(?:\s+\w+){0,3}", re.IGNORECASE)
_GERUND = re.compile(r"(\w{2,})ing\b")


def words(text: str) -> list[str]:
    """The words of a text, in order, as they are written."""
    return _WORD.findall(text)


def opens_order(text: str, *, strict: bool = False, after_name: bool = False) -> bool:
    """Whether a text begins as an order, a question or a wish.

    Args:
        text: A stretch without its connective.
        strict: Whether a word that is a noun as well counts only with an object after it.
        after_name: Whether it follows a file name or a quotation, beside which a noun is unlikely.
    """
    text = text.lstrip()
    if _QUESTION.match(text) or _YES_NO.match(text) or _PASSIVE.match(text) or _WANT.match(text):
        return True
    match = _WORD.match(text)
    if match is None:
        return False
    word, rest = match.group(), text[match.end() :]
    if strict and word[0].isupper() and not word.isupper():
        return False
    if not is_verb(word) or re.match(r"\s+of\b", rest):
        return False
    if not strict or not is_noun(word) or after_name:
        return True
    return _has_object(rest) and (word.lower() in CONSUMING or not _PLACE.match(rest))


def is_question(text: str) -> bool:
    """Whether a text begins with a question word and what it asks about."""
    return bool(_QUESTION.match(text.lstrip()) or re.match(r"when\b.*,\s*what\b", text.strip(), re.IGNORECASE))


def may_open_order(text: str) -> bool:
    """Whether a text after an unmistakable connective can be an order, known verb or not."""
    if opens_order(text) or re.match(r"\s*be\s+\w+(?:ed|en|n|t)\b", text):
        return True
    match = _WORD.match(text.lstrip())
    return match is not None and match.group().lower() not in NOT_VERBS


def is_gerund_order(text: str) -> bool:
    """Whether a text begins as in "(,) saving the result"."""
    match = _GERUND.match(text.lstrip().lower())
    if match is None or not _has_object(text.lstrip()[match.end() :]):
        return False
    stem = match.group(1)
    forms = {stem, stem + "e", stem[:-1] if stem[-1:] == stem[-2:-1] else stem}
    return bool(forms & CONSUMING)


def is_bare_verb(text: str) -> bool:
    """Whether a stretch ends in a verb that still waits for the object it shares: "download and unzip x"."""
    found = words(text)
    if not found or not text.rstrip().endswith(found[-1]) or not is_verb(found[-1]):
        return False
    return len(found) == 1 or (found[-2].lower() in {"to", "and", "or"} and len(found) > 1)


def is_context(text: str) -> bool:
    """Whether a stretch only sets the scene of the order after it: "For the file a.txt"."""
    first = _WORD.match(text.lstrip())
    if first is None:
        return not opens_order(text)
    if first.group().lower() not in SUBORDINATE:
        return False
    return not opens_order(text)


def is_pleasantry(text: str) -> bool:
    """Whether a clause asks for nothing."""
    return text.lower().strip(" .!,?…") in PLEASANTRIES or bool(_GREETING.fullmatch(text.strip(" .!,?…")))


def is_statement(text: str) -> bool:
    """Whether a sentence states a fact rather than asking for something."""
    if opens_order(text):
        return False
    first = _WORD.match(text.lstrip())
    opener = first.group().lower() if first else ""
    return opener in {"it", "i", "we", "the", "my", "our", "this", "there", "he", "she", "they"} and bool(
        re.search(r"\b(?:is|are|was|were|has|have|had|lives?|am)\b", text)
    )


def _has_object(rest: str) -> bool:
    rest = rest.lstrip()
    found = _WORD.match(rest)
    if found and found.group().lower() in PARTICLES and not _OBJECT.match(rest):
        rest = rest[found.end() :].lstrip()
        found = _WORD.match(rest)
    if not rest or rest[0] in ".!?;":
        return True
    plural = bool(found and len(found.group()) > 3 and found.group().endswith("s") and found.group()[-2:] != "ss")
    return bool(_OBJECT.match(rest)) or plural
