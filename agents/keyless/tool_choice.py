"""Chooses the offered tool whose name and arguments account for all words of a step."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from callsheet.agents.keyless.entities.evidence import Kind, Pool, with_digits
from callsheet.agents.keyless.filling import Filled, fill
from callsheet.agents.keyless.language.clauses import words
from callsheet.agents.keyless.language.lexicon import (
    FUNCTION_WORDS,
    QUESTION_WORDS,
    QUOTED,
    is_noun,
    is_verb,
    mask,
)
from callsheet.agents.keyless.language.mood import head_of, is_yes_or_no, objection
from callsheet.agents.keyless.language.order_objects import misses, other_record
from callsheet.agents.keyless.language.places import direct_objects
from callsheet.agents.keyless.language.references import pronouns
from callsheet.agents.keyless.slots.slot import Slot, slots_of, stem, words_of
from callsheet.agents.keyless.slots.value_formats import is_sql
from callsheet.agents.keyless.slots.vocabularies import variants
from callsheet.agents.safety.tool_effects import ORDERS, RECORD_ORDERS, alike, changes, is_act
from callsheet.agents.work.brief import Brief, Offer

MOST = 12
"""Maximum number of offers that are scored: the retriever has sorted them, and each takes time."""
_NEAR_BEST = 0.75
"""Share of the best offer's score from which a tool that takes any whole question is considered."""
_INVALID = 12
"""What a value that its parameter does not take costs, in characters that are not used."""
_RELATION = re.compile(r"\s*(?:of|in|at|for|from|to|on|with|by)\s", re.IGNORECASE)
_CHANGES_DATA = re.compile(
    r"\b(?:insert|update|delete|drop|alter|create|replace|truncate|attach|detach|grant|revoke|vacuum|merge|into|call|exec|execute"
    r"|copy|load|set)\b(?!\s*\()|^\s*pragma\b",
    re.IGNORECASE,
)
_SQL_TEXT = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
"""Texts and quoted names in SQL."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An offered tool with the arguments found for it.

    Attributes:
        schema: JSON Schema of its arguments, with the tool's title and description.
        texts: The text of the step, once for each call.
        calls: The arguments found for each of these texts.
        objection: Why rules may not call it for this step; empty if they may.
        other: Whether it does something else than the step orders.
        score: How well it fits the step; higher is better.
        fits: Whether there is evidence for it, besides its rank.
    """

    offer: Offer
    schema: Mapping[str, Any]
    texts: tuple[str, ...]
    calls: tuple[Filled, ...]
    objection: str
    other: bool
    score: float
    fits: bool

    @property
    def missing(self) -> tuple[str, ...]:
        """Required parameters without a value."""
        return tuple(dict.fromkeys(name for call in self.calls for name in call.missing))

    @property
    def unused(self) -> tuple[str, ...]:
        """Words of the step that a call does not use."""
        return tuple(dict.fromkeys(word for call in self.calls for word in call.unused))

    @property
    def invalid(self) -> tuple[str, ...]:
        """Values of the step that a parameter does not take, each with the reason."""
        return tuple(dict.fromkeys(why for call in self.calls for why in call.invalid))

    @property
    def ready(self) -> bool:
        """Whether it does everything that the step says."""
        return not (self.other or self.missing or self.unused or self.invalid or self.objection)


def candidates(brief: Brief, tools: Mapping[str, Mapping[str, Any]]) -> list[Candidate]:
    """The offered tools with evidence: those that do the whole step first, then by score.

    Args:
        brief: The step.
        tools: Model-facing name -> the tool's function in OpenAI's format.
    """
    offers = [offer for offer in brief.offers if offer.name in tools][:MOST]
    best = max((offer.score for offer in offers), default=0.0)
    found = [
        _weigh(brief, offer, tools, offer.score / best if best > 0 else 1.0 - rank / MOST)
        for rank, offer in enumerate(offers)
    ]
    ranked = sorted((one for one in found if one.fits), key=_rank)
    if len(ranked) > 1 and (why := _unclear(brief, *ranked[:2])):
        ranked[0] = replace(ranked[0], objection=why)
    return ranked


def _unclear(brief: Brief, one: Candidate, other: Candidate) -> str:
    """Why an order may be for either of two tools: "cancel 5" names no object; empty if it is clear."""
    if not (one.ready and other.ready and one.offer.harm != "none" != other.offer.harm):
        return ""
    same = _name(one.offer.tool) == _name(other.offer.tool)
    if (_names_object(brief, one.offer) and not same) or one.offer.tool == other.offer.tool:
        return ""
    return f"it may be for {one.offer.tool} or for {other.offer.tool}: say what is meant"


def _rank(one: Candidate) -> tuple[bool, bool, int, int, float]:
    lost = sum(map(len, one.unused)) + _INVALID * len(one.invalid)
    return not one.ready, one.other, lost, len(one.missing), -one.score


def schema_of(function: Mapping[str, Any]) -> dict[str, Any]:
    """A tool's parameters, with its name and description."""
    parameters = function.get("parameters")
    return {
        **(parameters if isinstance(parameters, Mapping) else {}),
        "title": str(function.get("name") or ""),
        "description": str(function.get("description") or ""),
    }


def _weigh(brief: Brief, offer: Offer, tools: Mapping[str, Mapping[str, Any]], retrieved: float) -> Candidate:
    schema = schema_of(tools[offer.name])
    schema["title"] = " ".join(words_of(offer.tool))
    plainly = offer.harm != "none"
    text = with_digits(brief.text)
    slots = slots_of(schema, about=f"{schema['title']}\n{schema['description']}")
    texts = variants(text, slots, plainly=plainly)
    calls = tuple(fill(schema, each, brief.inputs, plainly=plainly, results=offer.results) for each in texts)
    first = calls[0]
    whole = text.strip() in first.args.values()
    told = f"{mask(text)} file" if Pool.of(text).free(Kind.PATH) else mask(text)
    named, described = (_agreement(said, told) for said in (_name(offer.tool), schema["description"][:300]))
    required = schema.get("required")
    needed = len(required) if isinstance(required, list) else 0
    complete = 0.5 if not needed else 1 - len(first.missing) / needed
    used = 1 - min(1.0, sum(map(len, first.unused)) / max(len(text), 1))
    score = retrieved + 1.6 * named + 0.5 * described + 0.6 * complete + used - 0.4 * bool(first.missing) - 1.5 * whole
    filled = bool(needed and first.args) and not first.missing and not _is_fragment(text)
    fits = retrieved >= _NEAR_BEST if whole else bool(named or described > 0.2 or filled)
    known = _orders(words_of(offer.tool.rpartition("/")[2]), schema["description"])
    flags = {word for name, value in first.args.items() if value is True for word in words_of(name)}
    ordered = known & {word.lower() for word in words(mask(text))}  # "force restart web-1" orders to restart it
    known |= flags if ordered else {word for word in flags if is_act(word)}
    other = not whole and _is_other(brief, offer, known)
    why = _objection(brief, offer, schema["description"], known, slots, first, whole=whole)
    return Candidate(offer, schema, texts, calls, why, other, score, fits)


def _is_other(brief: Brief, offer: Offer, known: Collection[str]) -> bool:
    """Whether a tool does something else than a step orders, or destroys something that the step does not name."""
    verb = head_of(brief.text, known)
    if offer.harm == "none":  # "count" is often a noun in descriptions: "object counts"
        return (changes(verb) or verb in (*ORDERS, *RECORD_ORDERS, "count")) and not alike(verb) & {*known}
    if not alike(verb) & {*known}:
        return True
    masked = mask(brief.text)
    own = {other for word in words_of(_name(offer.tool)) for other in alike(word)}  # not "add" of "Adds a comment"
    unnamed = own.isdisjoint(word.lower() for word in words(masked)) or offer.harm == "destroy" or pronouns(masked)
    return bool(unnamed) and not _names_object(brief, offer)


def _names_object(brief: Brief, offer: Offer, about: str = "") -> bool:
    """Whether a step, or one that it builds on, names what a tool is for: a sheet for ``delete_sheet``."""
    text = " ".join((brief.text, *(done.text for done in brief.inputs)))
    said = {stem(other) for word in re.findall(r"[a-z]+", text.lower()) for other in alike(word)}
    if Pool.of(text).free(Kind.PATH):
        said |= {stem(word) for word in ("file", "path", *alike("folder"))}
    named = words_of(_name(offer.tool))
    named = named[len(named) > 1 and is_verb(named[0]) :]
    objects = {stem(word) for word in named if word not in FUNCTION_WORDS and (is_noun(word) or not is_act(word))}
    return not objects or bool((objects | direct_objects(about)) & said)


def _objection(
    brief: Brief,
    offer: Offer,
    about: str,
    known: Collection[str],
    slots: Sequence[Slot],
    call: Filled,
    *,
    whole: bool,
) -> str:
    """Why rules may not call a tool for a step: a tool that may change something needs a plain order.

    Args:
        brief: The step.
        offer: The tool.
        about: Its description.
        known: The verbs that order what it does.
        slots: Its parameters.
        call: The arguments found.
        whole: Whether it gets the whole step as text.
    """
    if any(is_sql(slot) and _changes_data(str(call.args.get(slot.name, ""))) for slot in slots):
        return "its SQL changes data, and rules alone never do that"
    if offer.harm == "none":
        return "" if whole else _misread(brief, offer, about, slots, call)
    if whole:
        known = {*known} | {word.lower() for word in brief.text.split()[:1] if is_verb(word)}
    read = brief.unclear is not None
    if why := objection(brief.text, brief.request or brief.text, known, whole=whole, understood=read):
        return f"it may change something, and {why}"
    if not (whole or call.missing) and (why := misses(brief.text, _name(offer.tool), about, known, slots, call.args)):
        return why
    return _hindrance(brief, offer, about, slots, call, whole=whole)


def _misread(brief: Brief, offer: Offer, about: str, slots: Sequence[Slot], call: Filled) -> str:
    """Why a tool that only reads does not answer a step."""
    if is_yes_or_no(brief.text):
        return "it is a question for a yes or a no"
    if other := other_record(brief.text, _name(offer.tool), about, slots, call.args):
        return f'"{other}" is not what it is for'
    record = head_of(brief.text, words_of(_name(offer.tool))[:1]) and any(
        slot.identifies and slot.name in call.args for slot in slots
    )
    if record and offer.rivals and not _names_object(brief, offer):
        return "other tools have this verb too: name what it is for"
    return ""


def _hindrance(brief: Brief, offer: Offer, about: str, slots: Sequence[Slot], call: Filled, *, whole: bool) -> str:
    """Why a tool that may change something cannot be called now, though the step orders it."""
    texts = any(s.name in call.args and (s.identifies or (s.textual and not s.vocabulary)) for s in slots)
    if texts and offer.rivals and not call.unused and not whole and not _names_object(brief, offer, about):
        return "other tools have this verb too: name what it is for"
    if brief.unclear:
        return f'nothing is changed unless all of the request is understood, and "{brief.unclear[0]}" is not'
    if lost := [result for result in brief.inputs if result.status != "done"]:
        return f'it builds on "{lost[0].text}", which was not done'
    if first := offer.sources.get(""):
        return f"{first[0]} must run before it, and rules do not see to that"
    if offer.harm == "destroy" and not offer.confirmed:
        return "it destroys something: rules alone never do that, and nobody is asked in this run"
    return ""


def _orders(named: Sequence[str], description: str) -> set[str]:
    """The verbs that order what a tool does: of its name, and the one that opens its description.

    If the description opens with a verb of the name, other words of the name that can be nouns are objects: the "book"
    of ``update_book`` ("Updates a book") is no order to reserve something.
    """
    named = list(takewhile(lambda word: word not in FUNCTION_WORDS, named))  # the "read" of mark_as_read is no order
    first = words_of(description[:80])[:1]
    opening = {form for word in first for form in (word, word.removesuffix("s")) if is_verb(form)}
    for word in words_of(description[:80])[1:]:  # "Move or rename files"
        forms = {word, word.removesuffix("s")} & {form for form in (word, word.removesuffix("s")) if is_act(form)}
        if not forms and word not in ("and", "or"):
            break
        opening |= forms
    acts = {word for word in named if is_act(word)}
    said = opening & {*named}
    known = opening | {word for word in acts if not (said and is_noun(word))}
    if not said & acts:
        known |= {word for word in named[:1] if is_verb(word)}
    return known or {*named, *first}


def _changes_data(sql: str) -> bool:
    """Whether SQL has a word that changes data, outside its texts; beside a comment, inside them too."""
    return bool(_CHANGES_DATA.search(sql if "--" in sql or "/*" in sql else _SQL_TEXT.sub("", sql)))


def _is_fragment(text: str) -> bool:
    """Whether a step is only a quotation, or a preposition and a value: "of Norway?"."""
    if QUOTED.fullmatch(text.strip()):
        return True
    said = words(text.lower())
    return bool(_RELATION.match(text)) and not any(is_verb(word) or word in QUESTION_WORDS for word in said)


def _name(tool: str) -> str:
    """A tool's name, without a first word that repeats its agent's name."""
    owner, _, name = tool.rpartition("/")
    names = words_of(name)
    return " ".join(names[1:] if len(names) > 1 and names[0] in words_of(owner) else names)


def _agreement(name: str, text: str) -> float:
    """The share of a name's words that are in a text."""
    said = {stem(other) for word in re.findall(r"[A-Za-z]+", text.lower()) for other in alike(word)}
    wanted = [stem(w) for w in words_of(name) if w not in FUNCTION_WORDS and not w.isdigit()]
    return sum(word in said for word in wanted) / len(wanted) if wanted else 0.0
