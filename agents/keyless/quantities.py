"""Numbers with units: "26.2 miles to kilometres", "how many km are 3 miles", "100 USD to EUR"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from callsheet.agents.keyless.evidence import Kind, Pool
from callsheet.agents.keyless.readings import Reading
from callsheet.agents.keyless.slots import Slot
from callsheet.agents.keyless.units import CURRENCIES, UNITS, canonical

_FROM = frozenset({"from", "source", "src", "input", "base"})
_TO = frozenset({"to", "target", "dest", "destination", "output", "into", "quote"})
_TOKEN = re.compile(r"°\s?[A-Za-z]+|[A-Za-zµ²³€$£¥]+(?:[-‑'/][A-Za-z²³]+)*|[€$£¥]")
_TO_BEFORE = re.compile(
    r"(?:\b(?:to|into|in|as)\s+(?:degrees?\s+)?|\bhow\s+(?:many|much)\s+(?:is\s+)?|→\s*|->\s*)$", re.IGNORECASE
)
_FROM_BEFORE = re.compile(r"(?:\d\s*(?:degrees?\s*)?|\d\s*°\s*|\bfrom\s+(?:degrees?\s+)?|\bconvert\s+)$", re.IGNORECASE)
_LONGEST = 5


@dataclass(frozen=True, slots=True)
class _Hit:
    value: str
    start: int
    end: int


def is_unit(slot: Slot) -> bool:
    """Whether a slot takes a unit of measurement or a currency."""
    return slot.textual and slot.says("unit", "currency") and not slot.says("type", "kind", "system")


def fill_quantities(slots: Sequence[Slot], pool: Pool, readings: Sequence[Reading]) -> dict[str, Any]:
    """Values for the unit slots of a tool and for the number that goes with them."""
    units = [slot for slot in slots if is_unit(slot)]
    if not units:
        return {}
    hits = _hits(pool.bare, units)
    source = next((h for h in hits if _FROM_BEFORE.search(pool.bare[: h.start])), None) or _symbol_before(hits, pool)
    target = next((h for h in hits if h is not source and _TO_BEFORE.search(pool.bare[: h.start])), None)
    if source is None and target is not None:
        source = next((h for h in hits if h is not target), None)
    amount = _amount(slots)
    args: dict[str, Any] = {}
    if amount and (number := _number(pool, source)) is not None:
        args[amount.name] = number
    elif amount and (reading := next((r for r in readings if r.number is not None), None)):
        args[amount.name] = reading.number
        source_text = _hits(reading.unit or reading.text, units)
        args |= _assign(units, source_text[-1] if source_text else None, target)
    args |= {k: v for k, v in _assign(units, source, target).items() if k not in args}
    for hit in (source, target):
        if hit:
            pool.used.append((hit.start, hit.end))
    return args


def _assign(units: Sequence[Slot], source: _Hit | None, target: _Hit | None) -> dict[str, Any]:
    args: dict[str, Any] = {}
    for slot in units:
        hit = target if set(slot.words) & _TO else source if set(slot.words) & _FROM else source or target
        if hit and (len(units) > 1 or hit):
            args[slot.name] = hit.value
    return args


def _amount(slots: Sequence[Slot]) -> Slot | None:
    numeric = [s for s in slots if s.numeric and s.required] or [s for s in slots if s.numeric]
    named = [s for s in numeric if s.says("value", "amount", "quantity", "number", "magnitude")]
    return next(iter(named or numeric), None)


def _number(pool: Pool, source: _Hit | None) -> Any:
    numbers = pool.free(Kind.NUMBER)
    if source:
        beside = [n for n in numbers if re.fullmatch(r"\s*(?:degrees?|°|-)?\s*", pool.text[n.end : source.start])] + [
            n for n in numbers if source.end <= n.start and not pool.text[source.end : n.start].strip()
        ]
        if beside:
            return pool.take(beside[0])
    return pool.take(numbers[0]) if len(numbers) == 1 else None


def _symbol_before(hits: Iterable[_Hit], pool: Pool) -> _Hit | None:
    """A currency sign stands before its number."""
    return next((h for h in hits if re.match(r"\s?\d", pool.bare[h.end :])), None)


def _hits(text: str, units: Sequence[Slot]) -> list[_Hit]:
    forms = _forms(units)
    tokens = [(m.group(), m.start(), m.end()) for m in _TOKEN.finditer(text)]
    hits: list[_Hit] = []
    index = 0
    while index < len(tokens):
        for size in range(min(_LONGEST, len(tokens) - index), 0, -1):
            start, end = tokens[index][1], tokens[index + size - 1][2]
            value = _lookup(text[start:end], forms, text[:start], text[end:])
            if value is not None:
                hits.append(_Hit(value, start, end))
                index += size - 1
                break
        index += 1
    return hits


def _lookup(said: str, forms: Mapping[str, str], before: str, after: str) -> str | None:
    plain = said.replace("°", "").strip()
    if len(plain) == 1 or plain.lower() in {"in", "are", "at", "to", "as", "oz", "mil", "hand"}:
        clear = re.search(r"[\d°]\s*$", before) or (
            plain.lower() != "in" and plain.isupper() and _TO_BEFORE.search(before)
        )
        if not clear and not ("°" in said or (re.match(r"\s+to\s", after) and plain.isupper())) and plain not in "€$£¥":
            return None
        if plain.lower() == "in" and not re.match(r"\s*(?:to|into|as|in)\b|\s*$|\s*[?.,]", after):
            return None
    return forms.get(plain) or forms.get(canonical(plain))


def _forms(units: Sequence[Slot]) -> dict[str, str]:
    """Every spelling of every unit the slots accept -> the spelling they want."""
    vocabulary = list(dict.fromkeys(str(v) for slot in units for v in slot.vocabulary))
    if any(slot.says("currency") for slot in units):
        known = {
            spelling: code for code, spellings in CURRENCIES.items() for spelling in (code, code.lower(), *spellings)
        }
        wanted = {v.upper(): v for v in vocabulary}
        return {s: wanted.get(c, c) for s, c in known.items() if not wanted or c in wanted}
    if not vocabulary:
        return {spelling: spelling for name, aliases in UNITS.items() for spelling in (name, *aliases)}
    forms: dict[str, str] = {}
    for value in sorted(vocabulary, key=len, reverse=True):
        plain = canonical(value)
        bare = canonical(re.sub(r"\s*\(.*?\)", "", value))
        for name in (plain, bare):
            group = next(((n, *a) for n, a in UNITS.items() if name == n or name in a), (name,))
            for spelling in group:
                forms[spelling] = value
        forms[value] = value
    return forms
