"""Numbers with units: "26.2 miles to kilometres", "12 stone 4 pounds in kg"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from callsheet.agents.keyless.entities.evidence import Evidence, Kind, Named, Pool
from callsheet.agents.keyless.entities.measurement_units import meanings, spelled_in, unit_of
from callsheet.agents.keyless.entities.result_values import Reading
from callsheet.agents.keyless.slots.slot import Slot

_TOKEN = re.compile(r"°\s?[A-Za-z]+|[A-Za-zµ²³]+(?:[-‑/][A-Za-z²³]+)*[²³23]?(?!\w)")
_TO_BEFORE = re.compile(
    r"(?:\b(?:to|into|in|as)\s+(?:degrees?\s+)?|\bhow\s+(?:many|much)\s+(?:is\s+)?)$", re.IGNORECASE
)
_FROM_BEFORE = re.compile(r"(?:\d\s*(?:degrees?\s*|°\s*)?|\bfrom\s+(?:degrees?\s+)?|\bconvert\s+)$", re.IGNORECASE)
_ENDS = re.compile(r"\s*(?:[.,;!?]|(?:and|then)\b|$)")
_JOINT = re.compile(r"\s*(?:,|and)?\s*$", re.IGNORECASE)
_ONE = re.compile(r"\b(half\s+)?an?\s+$", re.IGNORECASE)
_WORDS = frozenset("a am an are as at be bar can cup do hand has i in is it may me my no of or so to we".split())
"""Words that are also names of units: they count only directly after a number."""
_LONGEST = 4


def is_unit(slot: Slot) -> bool:
    """Whether a slot takes a unit of measurement."""
    return slot.textual and slot.says("unit") and not slot.says("type", "kind", "system")


def fill_quantities(slots: Sequence[Slot], pool: Pool, readings: Sequence[Reading]) -> dict[str, Any]:
    """Values for the unit parameters of a tool, and for the number that belongs to them."""
    wanted = [slot for slot in slots if is_unit(slot)]
    if not wanted:
        return {}
    units = list(units_in(pool.bare, wanted))
    parts = compound(pool, units)
    source = parts[-1][1] if parts else _source(units, pool)
    counted = [source, *(unit for _, unit in parts)]
    target, aim = next(
        ((u, m) for u in units if u not in counted and (m := _TO_BEFORE.search(pool.bare[: u.start]))), (None, None)
    )
    pool.used += [aim.span()] if aim else []
    if source is None and target is not None:
        source = next((unit for unit in units if unit is not target), None)
    args, amount = _assigned(wanted, source, target), _amount(slots)
    if amount and parts:
        args[amount.name] = _total(parts)
        pool.used += [(item.start, unit.end) for item, unit in parts]
    elif amount and (number := _number(pool, source)) is not None:
        args[amount.name] = number
    elif amount and (reading := next((r for r in readings if r.number is not None), None)):
        args[amount.name] = reading.number
        pool.uses_results = True
        named = list(units_in(reading.unit or reading.text, wanted))
        args |= _assigned(wanted, named[-1] if named else None, target or source)
    pool.used += [(unit.start, unit.end) for unit in (source, target) if unit]
    return args


def compound(pool: Pool, units: Sequence[Named]) -> list[tuple[Evidence, Named]]:
    """The parts of a quantity in several units, each a fraction of the one before: "5 feet 11 inches"."""
    parts: list[tuple[Evidence, Named]] = []
    for item in pool.free(Kind.NUMBER):
        unit = next((u for u in units if u.start >= item.end and not pool.text[item.end : u.start].strip(" -")), None)
        if unit is None:
            continue
        joint = pool.text[parts[-1][1].end : item.start] if parts else ""
        if parts and not (_JOINT.match(joint) and _divides(parts[-1][1], unit, apart=bool(joint.strip()))):
            break
        parts.append((item, unit))
    return parts if len(parts) > 1 else []


def _divides(larger: Named, smaller: Named, *, apart: bool) -> bool:
    """Whether two parts are one quantity; "2 km and 300 m" may be two, unlike "5 feet and 11 inches"."""
    one, other = unit_of(larger.value), unit_of(smaller.value)
    if one is None or other is None or one[0] != other[0] or not other[1]:
        return False
    ratio = one[1] / other[1]
    decimal = set(str(round(ratio)).strip("0")) == {"1"}
    return ratio > 1.5 and abs(ratio - round(ratio)) < 1e-6 and not (apart and decimal)


def _total(parts: Sequence[tuple[Evidence, Named]]) -> float | int:
    """A compound quantity in its last, smallest unit."""
    sizes = [(unit_of(unit.value) or ("", 1.0))[1] for _, unit in parts]
    total = round(sum(item.value * size for (item, _), size in zip(parts, sizes, strict=True)) / sizes[-1], 9)
    return int(total) if total == int(total) else total


def _source(units: Sequence[Named], pool: Pool) -> Named | None:
    return next((u for u in units if _FROM_BEFORE.search(pool.bare[: u.start])), None)


def _assigned(slots: Sequence[Slot], source: Named | None, target: Named | None) -> dict[str, Any]:
    sides = {slot.name: {"to": target, "from": source}.get(slot.direction, source or target) for slot in slots}
    return {name: unit.value for name, unit in sides.items() if unit}


def _amount(slots: Sequence[Slot]) -> Slot | None:
    numeric = [s for s in slots if s.numeric and s.required] or [s for s in slots if s.numeric]
    return next((s for s in numeric if s.says("value", "amount", "quantity")), next(iter(numeric), None))


def _number(pool: Pool, source: Named | None) -> Any:
    numbers = pool.free(Kind.NUMBER)
    before = [
        n for n in numbers if source and re.fullmatch(r"\s*(?:degrees?|°|-)?\s*", pool.text[n.end : source.start])
    ]
    chosen = before or (numbers if len(numbers) == 1 else [])
    if not numbers and source and source.end - source.start > 1 and (one := _ONE.search(pool.bare[: source.start])):
        pool.used.append(one.span())
        return 0.5 if one[1] else 1
    return pool.take(chosen[0]) if chosen else None


def units_in(text: str, slots: Sequence[Slot]) -> Iterator[Named]:
    """The accepted units in a text, in text order; the longest reading wins."""
    values = list(dict.fromkeys(str(value) for slot in slots for value in slot.vocabulary))
    tokens = list(_TOKEN.finditer(text))
    after = 0
    for index, token in enumerate(tokens):
        for last in reversed(tokens[index : index + _LONGEST]):
            start, end = token.start(), last.end()
            if start >= after and (value := _value(text, start, end, values)) is not None:
                yield Named(value, start, end)
                after = end
                break


def unclear_units(text: str, slots: Sequence[Slot]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names of several units in a text, each with the accepted units that it may mean."""
    values = list(dict.fromkeys(str(value) for slot in slots if is_unit(slot) for value in slot.vocabulary))
    for token in _TOKEN.finditer(text) if values else ():
        if possible := meanings(token.group(), values):
            yield token.group(), possible


def _value(text: str, start: int, end: int, values: Sequence[str]) -> str | None:
    said = " ".join(text[start:end].split())
    plain = said.replace("°", "").strip()
    if plain.lower() in _WORDS or len(plain) == 1:
        counted = re.search(r"[\d°]\s*(?:degrees?\s*)?$", text[:start]) or "°" in said
        last = plain.lower() not in _WORDS and _ENDS.match(text[end:])
        aimed = (plain.isupper() or last) and _TO_BEFORE.search(text[:start])
        aimed = aimed or (plain.isupper() and re.match(r"\s+to\s", text[end:]))
        goes_on = re.match(r"\s+(?!(?:to|into|as|in)\b)\w", text[end:])
        if not (counted or aimed) or (plain.lower() == "in" and goes_on):
            return None
    return spelled_in(plain, values)
