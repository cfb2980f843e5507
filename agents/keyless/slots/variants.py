"""Several values for one parameter: "to Celsius and to Kelvin" needs two calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, product

from callsheet.agents.keyless.entities.evidence import Kind, Pool
from callsheet.agents.keyless.entities.quantities import compound, is_unit, units_in
from callsheet.agents.keyless.entities.time_zones import is_zone, zones_in
from callsheet.agents.keyless.slots.slot import Slot
from callsheet.agents.keyless.slots.value_formats import is_path
from callsheet.agents.keyless.slots.vocabularies import mentions

MOST = 12
"""Maximum number of calls for one step by rules."""
_JOINED = re.compile(
    r"\s*(?:,\s*(?:and\b\s*)?|\band\b\s*|&\s*|\bas\s+well\s+as\b\s*)(?:also\s+)?(?:(?:to|in|into|at|for|from|of|the)\s+)*",
    re.IGNORECASE,
)
Span = tuple[int, int]


def variants(text: str, slots: Sequence[Slot]) -> tuple[str, ...]:
    """The text once for each value that it lists for one parameter; the text alone if it lists none.

    Examples:
        >>> number, unit = {"type": "number"}, {"type": "string", "enum": ["km", "mile", "yard"]}
        >>> from callsheet.agents.keyless.slots.slot import slots_of
        >>> tool = {"properties": {"value": number, "from_unit": unit, "to_unit": unit}, "required": ["value"]}
        >>> variants("3 miles to km and yards", slots_of(tool))
        ('3 miles to km', '3 miles to yards')
    """
    runs = sorted(run for atoms in _atoms(text, slots) for run in _runs(text, atoms))
    if not runs or any(one[-1][1] > other[0][0] for one, other in pairwise(runs)):
        return (text,)
    choices = list(product(*runs))
    return tuple(_chosen(text, runs, choice) for choice in choices) if len(choices) <= MOST else (text,)


def _chosen(text: str, runs: Sequence[Sequence[Span]], choice: Sequence[Span]) -> str:
    for run, (start, end) in zip(reversed(runs), reversed(choice), strict=True):
        text = text[: run[0][0]] + text[start:end] + text[run[-1][1] :]
    return text


def _runs(text: str, atoms: Sequence[Span]) -> Iterator[tuple[Span, ...]]:
    """The longest sequences of neighbours with only "and" or a comma between them."""
    run: list[Span] = []
    for atom in atoms:
        if run and not _JOINED.fullmatch(text, run[-1][1], atom[0]):
            if len(run) > 1:
                yield tuple(run)
            run = []
        run.append(atom)
    if len(run) > 1:
        yield tuple(run)


def _atoms(text: str, slots: Sequence[Slot]) -> Iterator[list[Span]]:
    """For each parameter with a single value, the spans in the text that could be its value."""
    pool = Pool.of(text)
    units = list(units_in(pool.bare, found)) if (found := [slot for slot in slots if is_unit(slot)]) else []
    if found:
        numbers = [(item.start, item.end) for item in pool.free(Kind.NUMBER)]
        counted = {
            a: next((u.end for u in units if not text[b : u.start].strip(" -°") and u.start >= b), 0)
            for a, b in numbers
        }
        if not compound(pool, units):
            whole = all(counted.values())
            yield [(a, counted[a] if whole else b) for a, b in numbers]
        yield [(u.start, u.end) for u in units if u.end not in counted.values()]
    if any(is_zone(slot) for slot in slots):
        yield [(zone.start, zone.end) for zone in zones_in(text)]
    for slot in slots:
        if slot.vocabulary and not is_unit(slot) and "array" not in slot.types:
            yield mentions(slot, pool)
    paths = [slot for slot in slots if slot.required and slot.textual and is_path(slot)]
    if len(paths) == 1:
        yield [(item.start, item.end) for item in pool.free(Kind.PATH)]
