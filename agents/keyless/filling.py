"""Fills a tool's parameters from the text of a step and the results that it uses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from callsheet.agents.keyless.accounting import ambiguous, made_by, unused_words
from callsheet.agents.keyless.entities.evidence import Kind, Pool, with_digits
from callsheet.agents.keyless.entities.quantities import fill_quantities
from callsheet.agents.keyless.entities.result_values import reading
from callsheet.agents.keyless.entities.time_zones import fill_zones
from callsheet.agents.keyless.language.lexicon import mask
from callsheet.agents.keyless.language.references import referred, with_value
from callsheet.agents.keyless.slots.context import Context
from callsheet.agents.keyless.slots.slot import FIRST, LAST, Slot, slots_of, stem, words_of
from callsheet.agents.keyless.slots.slot_rules import apply
from callsheet.agents.keyless.slots.text_values import SIDE_BY_SIDE
from callsheet.agents.planning.plan import StepResult
from callsheet.agents.safety.arguments import misfits

_BESIDE = re.compile(r"\s*(?:,|&|,?\s*\band\b)\s*(?:(?:the|an?)\s+)?(?:[a-z]+\s+)?", re.IGNORECASE)
"""Between the numbers of two records: "comment 11 and issue 3"."""
_TIME = re.compile(r"\d{4}-\d\d-\d\d|\d\d:\d\d")
_NAMES = (Kind.QUOTED, Kind.PATH, Kind.EMAIL, Kind.DATE, Kind.CLOCK)
_BETWEEN = re.compile(r"\bbetween\s+$", re.IGNORECASE)
_PAIRED = frozenset("1 2 a b first second one two left right".split())


@dataclass(frozen=True, slots=True)
class Filled:
    """The arguments found for a tool.

    Attributes:
        args: Arguments that have evidence and fit the schema.
        missing: Required parameters without evidence, in schema order.
        unused: Content words of the text that went into no argument, in text order.
        invalid: Values that were found but do not fit the schema, each with the reason.
    """

    args: dict[str, Any] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    unused: tuple[str, ...] = field(default=(), compare=False)
    invalid: tuple[str, ...] = field(default=(), compare=False)


def fill(
    schema: Mapping[str, Any],
    text: str,
    inputs: Sequence[StepResult] = (),
    *,
    plainly: bool = False,
    results: Sequence[str] = (),
) -> Filled:
    """Fills a tool's parameters from the text of a step and the results that it uses.

    No value is invented, and no sentence is used as a value: a required parameter without evidence is missing. Each
    piece of evidence is used once.

    Args:
        schema: JSON Schema of the arguments, with the tool's ``title`` and ``description`` at the top level.
        text: The text of the step.
        inputs: Results of the steps that it depends on.
        plainly: Whether question words count as content, as for a tool that may change something.
        results: Names of the values in the tool's result. A tool that only reads gives what they name.

    Examples:
        >>> number = {"type": "number"}
        >>> fill({"properties": {"radius": number, "height": number}, "required": ["radius", "height"]}, "radius 5")
        Filled(args={'radius': 5}, missing=('height',))
    """
    text = with_digits(text)
    about = f"{schema.get('title') or ''}\n{schema.get('description') or ''}"
    pool = Pool.of(text)
    slots = slots_of(schema, about=about)
    given = [result for result in inputs if result.status == "done"]
    done = referred(text, given)
    readings = [reading(result) for result in with_value(done)]
    together = fill_zones(slots, pool) | fill_quantities(slots, pool, readings)
    args = apply(Context(pool, done, slots, together))
    wrong = {name: why for name, value in args.items() if (why := _misfit(name, value, schema))}
    wrong |= _reversed(slots, args) if plainly else {}
    kept = {name: value for name, value in args.items() if name not in wrong}
    ordered = {slot.name: kept[slot.name] for slot in slots if slot.name in kept}
    wanted = _named(pool.bare, slots) if plainly else frozenset()
    missing = tuple(s.name for s in slots if (s.required and s.name not in kept) or s.name in wanted.difference(args))
    divided = _divided(pool, kept, slots) if plainly else []
    unclear = ambiguous(mask(text), map(made_by, given))
    asked = () if plainly else results
    unused = unused_words(pool, about, slots, kept, results=asked, builds_on=done, unclear=unclear, plainly=plainly)
    return Filled(ordered, missing, tuple(dict.fromkeys((*unused, *divided))), tuple(wrong.values()))


def _named(text: str, slots: Sequence[Slot]) -> frozenset[str]:
    """The parameters that a step names: "set the priority of task 5" has no new priority yet."""
    said = {stem(word) for word in re.findall(r"[a-z]+", text.lower())}
    plain = (slot for slot in slots if not (slot.identifies or slot.types & {"boolean", "array", "object"}))
    return frozenset(slot.name for slot in plain if slot.words and said.issuperset(map(stem, slot.words)))


def _reversed(slots: Sequence[Slot], args: Mapping[str, Any]) -> dict[str, str]:
    """The beginnings that are after their ends: ``startDate`` and ``endDate``, ``lower_limit`` and ``upper_limit``."""
    found = {}
    for one in (slot for slot in slots if slot.name in args and FIRST & {*slot.words}):
        for other in (slot for slot in slots if slot.name in args and LAST & {*slot.words}):
            first, last = args[one.name], args[other.name]
            pair = {*one.words} - FIRST == {*other.words} - LAST and type(first) is type(last)
            sized = isinstance(first, int | float) and not (one.direction or other.direction)
            if pair and (sized or (isinstance(first, str) and _TIME.match(first))) and first > last:
                found[one.name] = f"{one.name}: {first} is after {other.name}, {last}"
    return found


def _divided(pool: Pool, args: Mapping[str, Any], slots: Sequence[Slot]) -> list[str]:
    """The second of two values that stand side by side ("a.txt and b.txt"), if they went to different parameters.

    Parameters with the same name but for a number or the like are a pair: ``file1`` and ``file2``.
    """
    given = {value: frozenset(words_of(name)) - _PAIRED for name, value in args.items() if isinstance(value, str)}
    ids = {
        args[slot.name]: frozenset(slot.words)
        for slot in slots
        if slot.identifies and slot.numeric and slot.name in args
    }
    named = [item for item in pool.items if item.kind in _NAMES and item.value in given]
    numbers = [item for item in pool.items if item.kind is Kind.NUMBER and item.value in ids]
    pairs = [(one, other, given, SIDE_BY_SIDE) for one, other in pairwise(named)]
    pairs += [(one, other, ids, _BESIDE) for one, other in pairwise(numbers)]
    return [
        pool.text[other.start : other.end]
        for one, other, owners, joint in pairs
        if joint.fullmatch(pool.text, one.end, other.start)
        and owners[one.value] != owners[other.value]
        and not _BETWEEN.search(pool.text[: one.start])
    ]


def _misfit(name: str, value: Any, schema: Mapping[str, Any]) -> str:
    """Why a value does not fit its parameter; empty if it does, or if its schema cannot be used."""
    shared = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return "; ".join(misfits({**shared, "properties": {name: schema["properties"][name]}}, {name: value}))
