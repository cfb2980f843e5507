"""The rules that fill one slot, the most certain first."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from callsheet.agents.keyless.entities.currencies import is_currency, only_currency
from callsheet.agents.keyless.entities.evidence import Kind
from callsheet.agents.keyless.entities.quantities import is_unit
from callsheet.agents.keyless.entities.result_values import composed, identifier
from callsheet.agents.keyless.entities.time_zones import is_zone
from callsheet.agents.keyless.language.lexicon import FUNCTION_WORDS, mask
from callsheet.agents.keyless.language.references import refers_back, refers_to_one, with_value
from callsheet.agents.keyless.slots.context import Context
from callsheet.agents.keyless.slots.directions import directed, direction_before, is_labelled
from callsheet.agents.keyless.slots.number_rules import (
    GROUPED,
    counts_record,
    frequency,
    names_record,
    number,
    taken,
)
from callsheet.agents.keyless.slots.slot import CONTENT, FIRST, LAST, Slot, stem, words_of
from callsheet.agents.keyless.slots.text_values import array, described, exchanged, is_place, quoted
from callsheet.agents.keyless.slots.value_formats import (
    FORMATS,
    find_path,
    is_formatted,
    is_path,
    is_path_list,
    paths_in,
)
from callsheet.agents.keyless.slots.vocabularies import fill_closed, fill_flag
from callsheet.agents.safety.tool_effects import alike

_BODY = ("content", "text", "body", "message")
"""Names of optional parameters that take a result if a step names it: "send the list to ann@example.com"."""
_MOVES = alike("copy") | alike("move") | frozenset("archive compress convert extract unzip zip".split())
"""Verbs of tools with two paths for which "it" is the file of an earlier step."""
_IDENTIFIED = ("id", "sku", "code", "key", "ref", "reference", "number", "order", "ticket", "hash", "commit", "issue")
_UPPER = re.compile(
    r"\b(?:at\s+most|below|cheaper|fewer|less|lower|max(?:imum)?|no\s+more|or\s+less|shorter|smaller|under|until|up\s+to"
    r"|within)\b|[<≤]",
    re.IGNORECASE,
)
_LOWER = re.compile(
    r"\b(?:above|at\s+least|bigger|from|higher|larger|longer|min(?:imum)?|(?<!no\s)more|or\s+more|over)\b|[>≥]",
    re.IGNORECASE,
)
"""Words for a bound: the books "with price 12" are not those up to 12."""
_WEAK = frozenset({"id", "value", "path", "number", "string", "key"})
"""Words of names that do not label a value."""
_BRIDGE = (
    r"(?:(?:s|d|ed)?\s*(?::|=|\bis|\bare|\bof|\bas|\bto)?\s*(?:\bthe|\ban?)?"
    r"|\s+(?:of|for)\s[^,;]{1,60}\s(?:to|as|=))\s*$"
)
"""Between a label and its value: "radius of 5", "the price of book 2 to 8"."""
_SETS = re.compile(r"\W*(?:change|make|put|set|update)\b", re.IGNORECASE)
_BRIDGE_TO = _BRIDGE.replace(r"|\bof", "")
"""The same for a value of a record: in "the price of 2", 2 is the record."""
_AIM = re.compile(r"\b(?:to|into|as)\s+(?:the\s+)?(?:file\s+)?$", re.IGNORECASE)
_ORIGIN = re.compile(r"\bfrom\s+(?:the\s+)?(?:file\s+)?$", re.IGNORECASE)

Rule = Callable[[Slot, Context], Any]
"""Returns a slot's value, or None without evidence."""


def _whole(slot: Slot, context: Context) -> str | None:
    """The step's own words, for a parameter that takes the whole request or question."""
    if slot.name not in ("request", "question") or "whole" not in slot.description.lower() or not slot.textual:
        return None
    context.pool.used.append((0, len(context.pool.text)))
    return context.pool.text.strip() or None


def _formatted(slot: Slot, context: Context) -> Any:
    finder = (
        next((find for fits, find in FORMATS if fits(slot)), None) if slot.textual and not slot.vocabulary else None
    )
    if finder is find_path:
        return _path(slot, context)
    return finder(slot, context.pool) if finder else None


def _path(slot: Slot, context: Context) -> Any:
    """A path. If a tool takes several: "from" and an earlier step's path name the first, "to" names the last.

    Beside a list of paths, only "to" names a path.
    """
    rivals = [other.name for other in context.slots if other.required and other.textual and is_path(other)]
    if any(map(is_path_list, context.slots)):
        return find_path(slot, context.pool, (), [p for p in paths_in(context.pool) if is_place(context.pool, p)])
    moves = not _MOVES.isdisjoint(words_of(slot.about.partition("\n")[0]))
    inputs = context.inputs if context.refers and slot.name not in rivals[1:] and (moves or len(rivals) < 2) else ()
    if len(rivals) < 2 or slot.name not in rivals:
        return find_path(slot, context.pool, inputs)
    paths, before = paths_in(context.pool), context.pool.text
    origins, aims = ([p for p in paths if word.search(before[: p.start])] for word in (_ORIGIN, _AIM))
    mine, others = (aims, origins) if slot.name == rivals[-1] else (origins, aims)
    return find_path(slot, context.pool, inputs, mine or [path for path in paths if path not in others])


def _currency(slot: Slot, context: Context) -> str | None:
    """The currency beside an amount, if the tool takes only one."""
    if not is_currency(slot) or sum(map(is_currency, context.slots)) > 1:
        return None
    found = only_currency(context.slots, context.pool)
    if found is None or (slot.vocabulary and found.value not in slot.vocabulary):
        return None
    context.pool.used.append((found.start, found.end))
    return found.value


def _closed(slot: Slot, context: Context) -> Any:
    return fill_closed(slot, context.pool) if slot.vocabulary and "array" not in slot.types else None


def _flag(slot: Slot, context: Context) -> bool | None:
    return fill_flag(slot, context.pool) if slot.types == {"boolean"} else None


def _labelled(slot: Slot, context: Context) -> Any:
    """The value next to one of the slot's own words: "radius 5", "3 years", "titled 'Lunch'"."""
    more = ("saying",) if slot.textual and slot.says(*CONTENT) else ()
    weak = set() if slot.textual and len(slot.words) == 1 else _WEAK  # "with the key 'a' and the value 'b'"
    words = "|".join(re.escape(word) for word in (*slot.words, *more) if word not in weak)
    if not words or slot.vocabulary or not (slot.textual or slot.numeric) or is_formatted(slot):
        return None
    upper, lower = (bool(bound.search(context.pool.bare)) for bound in (_UPPER, _LOWER))
    if (slot.says("max", "maximum") and (lower or not upper)) or (slot.says("min", "minimum") and (upper or not lower)):
        return None
    bare, of_record = context.pool.bare, any(other.identifies for other in context.slots) and not slot.identifies
    for item in context.pool.free(*((Kind.NUMBER,) if slot.numeric else (Kind.QUOTED, Kind.IDENTIFIER, Kind.NAME))):
        before, after = bare[: item.start], bare[item.end :]
        if slot.identifies and (counts_record(slot, after) or GROUPED.match(context.pool.text, item.start)):
            continue
        if slot.numeric and names_record(context.slots, slot, before):
            continue
        if not is_labelled(slot, before, context.slots):
            continue
        sets = _SETS.match(bare) and re.match(r"\s*(?:to|as|=)\s*\S", after)
        of_another = (of_record and slot.numeric) or sets or item.kind in (Kind.IDENTIFIER, Kind.NAME)
        bridge = _BRIDGE_TO if of_another else _BRIDGE
        label = rf"[\s-]*(?:as\s+(?:the|an?)\s+)?(?:{words})s?\b(?!\s*#?\d)"
        labels = slot.numeric and not slot.identifies and re.match(label, after, re.I) and _is_meant(slot, bare)
        if labels or re.search(rf"\b(?:{words}){bridge}", before, re.IGNORECASE):
            return taken(slot, context.pool, item)
    return None


def _is_meant(slot: Slot, bare: str) -> bool:
    """Whether a text says all words of an optional parameter: "10 minutes" is no ``reminder_minutes``."""
    said = {stem(word) for word in re.findall(r"[a-z]+", bare.lower())}
    return slot.required or said.issuperset(
        stem(word) for word in slot.words if word not in FUNCTION_WORDS | FIRST | LAST
    )


def _based(slot: Slot, context: Context) -> Any:
    """What something is made from: "create a branch 'x' from 'main'"."""
    if not (slot.textual and slot.says("base", "origin", "parent")) or is_formatted(slot):
        return None
    sides = [(direction_before(context.pool.bare[: item.start]), item) for item in context.texts]
    origins = [item for side, item in sides if side == "from"]
    return context.pool.take(origins[0]) if len(origins) == 1 and "to" not in dict(sides) else None


def _identified(slot: Slot, context: Context) -> Any:
    if slot.required and slot.numeric and slot.identifies:
        numbered = (item for item in context.pool.free(Kind.IDENTIFIER) if item.value.startswith("#"))
        return next((int(context.pool.take(item)[1:]) for item in numbered), None)
    wanted = slot.required and slot.textual and slot.says(*_IDENTIFIED)
    return context.pool.first(Kind.IDENTIFIER) if wanted else None


def _of_result(slot: Slot, context: Context) -> Any:
    """The identifier of the record that "it" refers to."""
    if not (slot.required and slot.identifies and context.refers and refers_to_one(context.pool.bare)):
        return None
    value = identifier(with_value(context.inputs)[-1], slot.words, slot.about.partition("\n")[0])
    if slot.numeric and isinstance(value, str):
        value = int(value) if value.isdecimal() else None
    context.pool.uses_results |= value is not None
    return str(value) if value is not None and not slot.numeric else value


def _composed(slot: Slot, context: Context) -> Any:
    wanted = (
        slot.textual
        and slot.says(*(CONTENT if slot.required else _BODY))
        and (slot.required or refers_back(mask(context.pool.bare)))
        and not (slot.identifies or slot.says("find", "search", "target", "old"))
    )
    return context.composed if wanted and context.refers and not _is_identifier(context) else None


def _is_identifier(context: Context) -> bool:
    """Whether "it" has been used as the identifier of a record, so that it is nothing else."""
    taken = any(slot.identifies and slot.name in context.filled for slot in context.slots)
    return taken and context.pool.uses_results


def _glob(slot: Slot, context: Context) -> Any:
    """A file name with an asterisk, for a pattern."""
    wanted = slot.required and slot.textual and slot.says("pattern", "glob", "wildcard")
    return context.pool.first(Kind.GLOB) if wanted else None


def _raw(slot: Slot, context: Context) -> Any:
    """The result that "translate it" refers to, for a single text parameter."""
    spent = any(other.says(*CONTENT) and other.name in context.filled for other in context.slots)
    if (
        spent
        or context.loose != [slot]
        or slot.identifies
        or not context.refers
        or _is_identifier(context)
        or not slot.says(*CONTENT, "query", "question")
    ):
        return None
    context.pool.uses_results = True
    return composed(with_value(context.inputs)[-1:]) or None


RULES: tuple[Rule, ...] = (
    _whole, exchanged, frequency, directed, _formatted, _currency, _closed, _flag, _glob, _labelled, _based,
    _identified, _of_result, array, _composed, number, described, quoted, _raw,
)  # fmt: skip
"""In this order: unmistakable evidence first, leftovers last."""


def apply(context: Context) -> dict[str, Any]:
    """Fills all slots, with the most certain rule first."""
    for rule in RULES:
        for slot in sorted(context.slots, key=lambda slot: not slot.takes_percentage):
            if slot.name in context.filled or is_zone(slot) or is_unit(slot):
                continue
            value = rule(slot, context)
            if value is not None:
                context.filled[slot.name] = value
    return context.filled
