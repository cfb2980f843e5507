"""The rules by which one slot gets its value, the surest first."""

from __future__ import annotations

import re
from typing import Any

from callsheet.agents.keyless.entities.evidence import Kind
from callsheet.agents.keyless.entities.places import find_place
from callsheet.agents.keyless.entities.quantities import is_unit
from callsheet.agents.keyless.entities.result_values import composed, find_field, read
from callsheet.agents.keyless.entities.time_zones import is_zone
from callsheet.agents.keyless.slots.labelled_values import find_labelled, is_percentage, taken, takes_percentage
from callsheet.agents.keyless.slots.slot import Slot, slots_of, stem, words_of
from callsheet.agents.keyless.slots.slot_context import CONTENT, Context, Rule
from callsheet.agents.keyless.slots.value_formats import FORMATS, first, is_mail, is_path, path_of_inputs, typed
from callsheet.agents.keyless.slots.vocabularies import fill_closed, fill_flag

_IDENTIFIED = (
    "id",
    "sku",
    "code",
    "key",
    "ref",
    "reference",
    "number",
    "order",
    "ticket",
    "isbn",
    "hash",
    "revision",
    "sha",
    "commit",
    "issue",
)

_TIMES_A_YEAR = {
    "yearly": 1,
    "annually": 1,
    "semiannually": 2,
    "quarterly": 4,
    "monthly": 12,
    "weekly": 52,
    "daily": 365,
}
_OFTEN = re.compile(rf"\b(?:{'|'.join(_TIMES_A_YEAR)})\b", re.IGNORECASE)


def _whole(slot: Slot, context: Context) -> str | None:
    """The step's own words, for a parameter that asks for the whole request or question."""
    asks = slot.name in ("request", "question") and "whole" in slot.description.lower()
    if not (asks and slot.textual and context.depth == 0):
        return None
    context.pool.used.append((0, len(context.pool.text)))
    return context.pool.text.strip() or None


def _closed(slot: Slot, context: Context) -> Any:
    return fill_closed(slot, context.pool) if slot.vocabulary else None


def _flag(slot: Slot, context: Context) -> bool | None:
    return fill_flag(slot, context.pool) if slot.types == {"boolean"} else None


def _literal(slot: Slot, context: Context) -> Any:
    for item in context.pool.free(Kind.JSON):
        if (isinstance(item.value, list) and "array" in slot.types) or (
            isinstance(item.value, dict) and "object" in slot.types
        ):
            return context.pool.take(item)
    return None


def _formatted(slot: Slot, context: Context) -> Any:
    if not slot.textual or slot.vocabulary:
        return None
    for fits, finder in FORMATS:
        if fits(slot):
            return finder(slot, context)
    return None


def _labelled(slot: Slot, context: Context) -> Any:
    if slot.vocabulary or not (slot.textual or slot.numeric) or typed(slot):
        return None
    if slot.textual and not slot.required and context.depth == 0 and slot.words[:1] == ("from",):
        return None
    return find_labelled(slot, context.pool)


def _identified(slot: Slot, context: Context) -> Any:
    if not slot.required or not slot.textual or not slot.says(*_IDENTIFIED):
        return None
    kinds = [Kind.PHONE] if "phone" in slot.description.lower() else [Kind.IDENTIFIER]
    return first(context.pool, *kinds)


def _phone(slot: Slot, context: Context) -> Any:
    asked = slot.says("phone", "mobile", "tel") or "phone" in slot.description.lower()
    return first(context.pool, Kind.PHONE) if slot.textual and asked else None


def _place(slot: Slot, context: Context) -> Any:
    return find_place(slot, context.pool) if slot.textual and not slot.vocabulary else None


def _field(slot: Slot, context: Context) -> Any:
    """A field of an earlier result that bears the parameter's name."""
    if not slot.required or slot.vocabulary:
        return None
    for done in reversed(context.inputs):
        fields = read(done.result).fields
        value = find_field(fields, slot.name) if fields else None
        if isinstance(value, bool | int | float | str):
            return value
    return None


def _array(slot: Slot, context: Context) -> Any:
    if "array" not in slot.types:
        return None
    wanted = slot.items.get("type")
    if wanted in {"number", "integer"}:
        return _numbers(context)
    if wanted == "string":
        return _strings(slot, context)
    if wanted == "object" or "properties" in slot.items:
        one = _nested(slot.items, context, slot.name)
        return [one] if one else None
    return None


def _object(slot: Slot, context: Context) -> Any:
    return _nested(slot.spec, context, slot.name) if "object" in slot.types and slot.spec.get("properties") else None


def _composed(slot: Slot, context: Context) -> Any:
    if not (slot.textual and slot.required and slot.says(*CONTENT) and context.refers):
        return None
    if slot.says("find", "search", "target", "old"):
        return None
    return composed(context.inputs)


def _number(slot: Slot, context: Context) -> Any:
    """The numbers left, in order, when there are as many as slots; else the one of an earlier result."""
    rivals = [s for s in context.open if s.numeric]
    if slot not in rivals:
        return None
    left, given = context.pool.free(Kind.NUMBER), context.numbers
    if slot in (rates := [s for s in rivals if takes_percentage(s)]) and len(rates) == 1:
        shares = [item for item in left if is_percentage(context.pool, item)]
        if len(shares) == 1:
            return taken(slot, context.pool, shares[0])
    if len(given) + len(left) == len(rivals) and (len(rivals) == 1 or _is_named(context)):
        found = [*given, *(taken(s, context.pool, item) for s, item in zip(rivals[len(given) :], left, strict=True))]
        context.filled.update(zip((s.name for s in rivals), found, strict=True))
        return context.filled[slot.name]
    if len(rivals) == 1 and len(left) == 1:
        return taken(slot, context.pool, left[0])
    return given[0] if len(rivals) == 1 and len(given) == 1 and not left else None


def _is_named(context: Context) -> bool:
    """Whether the text names the tool, or nothing is known of its name: else its numbers may be anybody's."""
    name = context.slots[0].about.partition("\n")[0]
    said = {stem(word) for word in re.findall(r"[a-z]+", context.pool.bare.lower())}
    return not name.strip() or any(stem(word) in said for word in words_of(name))


def _frequency(slot: Slot, context: Context) -> int | None:
    """How many times a year, for a parameter that says "per year"."""
    if not slot.numeric or not {"per", "year"} <= set(slot.words):
        return None
    found = _OFTEN.search(context.pool.rest)
    if found is None:
        return None
    context.pool.used.append(found.span())
    return _TIMES_A_YEAR[found.group().lower()]


def _quoted(slot: Slot, context: Context) -> Any:
    """The quotations left, in order, when there is one for each required string without a type."""
    rivals = _loose(context)
    texts = context.pool.free(Kind.QUOTED)
    if not texts and slot.says(*CONTENT) and len(rivals) == 1:
        texts = context.pool.free(Kind.URL)
    return context.pool.take(texts[0]) if slot in rivals and len(texts) >= len(rivals) else None


def _raw(slot: Slot, context: Context) -> Any:
    """What "translate it" speaks of: the one result that a lone text parameter can take."""
    spent = any(other.says(*CONTENT) and other.name in context.filled for other in context.slots)
    if spent or _loose(context) != [slot] or not context.refers or slot.says("id", "name"):
        return None
    return read(context.inputs[-1].result).text or None


def _loose(context: Context) -> list[Slot]:
    return [s for s in context.open if s.textual and not s.vocabulary and not typed(s)]


def _numbers(context: Context) -> list[Any] | None:
    left = [
        i
        for i in context.pool.free(Kind.NUMBER)
        if not re.match(r"\s*(?:decimals?|digits|places)\b", context.pool.text[i.end :])
    ]
    found = [*context.numbers, *(context.pool.take(item) for item in left)]
    return found or None


def _strings(slot: Slot, context: Context) -> list[Any] | None:
    pool = context.pool
    labelled = Slot(slot.name, slot.words, frozenset({"string"}), slot.items, slot.required)
    if is_path(labelled):
        found = [pool.take(item) for item in pool.free(Kind.PATH)]
        one = None if found else path_of_inputs(labelled, context) if context.refers else None
        return found or ([one] if one else None)
    if is_mail(labelled):
        return [pool.take(item) for item in pool.free(Kind.EMAIL)] or None
    if slot.says(*CONTENT) and context.refers:
        return [composed(context.inputs)]
    first = find_labelled(labelled, pool)
    if not slot.required:
        return [first] if first is not None else None
    kinds = (Kind.IDENTIFIER,) if slot.says("id") else (Kind.QUOTED,)
    rest = [pool.take(item) for item in pool.free(*kinds)] if context.depth == 0 else []
    return [*([first] if first is not None else []), *rest] or None


def _nested(spec: Any, context: Context, parent: str) -> dict[str, Any] | None:
    """An object, when each of its required properties has evidence; what it used is given back when not."""
    if context.depth > 3:
        return None
    slots = slots_of(spec, parent=parent)
    before = list(context.pool.used)
    inner = Context(context.pool, context.inputs, slots, depth=context.depth + 1)
    apply(inner)
    found = inner.filled
    needed = [slot.name for slot in slots if slot.required]
    if not needed or any(name not in found for name in needed):
        context.pool.used[:] = before
        return None
    return found


RULES: tuple[Rule, ...] = (
    _whole, _frequency, _literal, _phone, _formatted, _closed, _flag, _labelled, _identified, _place, _field, _array,
    _object, _composed, _number, _quoted, _raw,
)  # fmt: skip
"""In order: what is unmistakable first, what only remains last."""


def apply(context: Context) -> dict[str, Any]:
    """What the rules fill, the surest rule first for every slot."""
    for rule in RULES:
        for slot in sorted(context.slots, key=lambda slot: not takes_percentage(slot)):
            if slot.name in context.filled or is_zone(slot) or is_unit(slot):
                continue
            value = rule(slot, context)
            if value is not None:
                context.filled[slot.name] = value
    return context.filled
