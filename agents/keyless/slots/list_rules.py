"""Rules for parameters that take lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from callsheet.agents.keyless.entities.evidence import Evidence, Kind, Pool
from callsheet.agents.keyless.slots.context import Context
from callsheet.agents.keyless.slots.number_rules import listed
from callsheet.agents.keyless.slots.slot import Slot, stem
from callsheet.agents.keyless.slots.value_formats import is_mail, is_path

CONTENT = ("content", "text", "body", "data", "message", "note", "insight", "observation", "summary")
"""Names of parameters that take a result."""
SIDE_BY_SIDE = re.compile(r"\s*(?:,|&|,?\s*\band\b)\s*", re.IGNORECASE)
_LABEL = re.compile(r"([A-Za-z]+)[\s:]*$")
_PLACE = re.compile(
    r"\b(?:to|into|as|in|inside|of|at|from|within)\s+(?:the\s+)?(?:(?:file|folder|directory|repo|repository)\s+)?$",
    re.IGNORECASE,
)


def is_place(pool: Pool, path: Evidence) -> bool:
    """Whether a path is where files of a list are or go: "to a.zip", "of the repository /srv/site"."""
    return bool(_PLACE.search(pool.text[: path.start]))


def array(slot: Slot, context: Context) -> Any:
    """The numbers, paths, addresses or quotations of a text, or the results, for a parameter that takes a list."""
    items, pool = slot.spec.get("items"), context.pool
    kind = items.get("type") if "array" in slot.types and isinstance(items, dict) else None
    if kind in {"number", "integer"}:
        given = [] if slot.identifies else context.numbers
        pool.uses_results |= bool(given)
        return [*given, *map(pool.take, listed(pool))] or None
    if kind == "string" and slot.required:
        if is_path(slot) or is_mail(slot):
            found = pool.free(Kind.PATH if is_path(slot) else Kind.EMAIL)
            return [pool.take(item) for item in found if is_mail(slot) or not is_place(pool, item)] or None
        if slot.says(*CONTENT) and context.refers:
            return [context.composed]
        kinds = (Kind.QUOTED, Kind.IDENTIFIER) if slot.identifies else (Kind.QUOTED,)
        return [pool.take(item) for item in _listed_after(slot, pool, pool.free(*kinds))] or None
    return None


def _listed_after(slot: Slot, pool: Pool, items: Sequence[Evidence]) -> Sequence[Evidence]:
    """The items side by side after the parameter's name, "with the devices 'a' and 'b'"."""
    own = {stem(word) for word in slot.words}
    named = (at for at, item in enumerate(items) if (m := _LABEL.search(pool.bare[: item.start])) and stem(m[1]) in own)
    first = next(named, None)
    first = first or 0  # without the name, those that stand first side by side
    last = first + 1
    while last < len(items) and SIDE_BY_SIDE.fullmatch(pool.text, items[last - 1].end, items[last].start):
        last += 1
    return items[first:last]
