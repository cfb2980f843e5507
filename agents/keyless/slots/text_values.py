"""Rules for parameters that take texts, or lists of texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from callsheet.agents.keyless.entities.evidence import Evidence, Kind, Pool
from callsheet.agents.keyless.language.places import place_of, preposition
from callsheet.agents.keyless.language.references import opening
from callsheet.agents.keyless.slots.context import Context
from callsheet.agents.keyless.slots.number_rules import counted, listed
from callsheet.agents.keyless.slots.slot import ANY, CONTENT, Slot, stem, words_of
from callsheet.agents.keyless.slots.value_formats import is_mail, is_path
from callsheet.agents.safety.tool_effects import alike

SIDE_BY_SIDE = re.compile(r"\s*(?:,|&|,?\s*\band\b)\s*", re.IGNORECASE)
_OLD, _NEW = ("find", "old", "pattern", "query", "search"), ("new", "replace", "replacement", "substitute")
"""Words in the names of parameters for what is replaced, and for what replaces it."""
_OTHER_ROLE = re.compile(r"\b(?:by|from|for)\s+(?:(?:the|a|an)\s+)?$", re.IGNORECASE)
_NOUN_BEFORE = re.compile(r"\b(?:the|an?|my|our|this|that)\s+(?:\w+\s+)?([A-Za-z]+)\s+$", re.IGNORECASE)
_WITH = re.compile(r"\s*(?:with|by)\s*", re.IGNORECASE)
_REPLACE = re.compile(r"\b(?:replace|substitute|exchange|change|swap)\b", re.IGNORECASE)
_CALLED = re.compile(r"\b(?:called|named|titled)\s+$", re.IGNORECASE)
_VERB_ALONE = re.compile(r"\W*[A-Za-z]+\s+(?:the\s+)?")
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
        if slot.identifies and any(counted(pool.bare[item.end :]) for item in listed(pool)):
            return None  # "3 tracks" are not track 3
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


def exchanged(slot: Slot, context: Context) -> Any:
    """One of two quotations for "replace 'old' with 'new'"."""
    quoted = context.pool.free(Kind.QUOTED)
    pair = next((two for two in pairwise(quoted) if _WITH.fullmatch(context.pool.text, two[0].end, two[1].start)), None)
    if pair is None or not slot.textual or not _REPLACE.search(context.pool.bare):
        return None
    olds, news = ([s for s in context.slots if s.textual and s.says(*names)] for names in (_OLD, _NEW))
    if len(olds) != 1 or len(news) != 1 or olds == news:
        return None
    context.filled.update({olds[0].name: context.pool.take(pair[0]), news[0].name: context.pool.take(pair[1])})
    return context.filled.get(slot.name)


def described(slot: Slot, context: Context) -> Any:
    """A quotation or a name in the place that the tool's description gives its parameter.

    "Lend a book to a reader" says what "lend 'Dune' to Nora" means. All text parameters and all texts must find their
    places; at most one parameter has none, and takes the text that follows no preposition.
    """
    slots, texts = context.loose, context.texts
    if slot not in slots or len(slots) != len(texts):
        return None
    places = {s.name: s.direction or place_of(s, context.slots) for s in slots}
    said = {preposition(context.pool.bare[: item.start]): item for item in texts}
    known = {name: place for name, place in places.items() if place}
    unknown = [name for name in places if name not in known]
    if len(said) != len(texts) or not known or len(set(known.values())) != len(known) or len(unknown) > 1:
        return None
    given = known | dict.fromkeys(unknown, "")
    if set(given.values()) != set(said) or not all(_fits(s, said[given[s.name]]) for s in slots):
        return None
    context.filled.update({name: context.pool.take(said[place]) for name, place in given.items()})
    return context.filled[slot.name]


def quoted(slot: Slot, context: Context) -> Any:
    """The first remaining quotation, or the only name, for the only required string that takes any text."""
    pool = context.pool
    if context.loose != [slot]:
        return None
    if free := pool.free(Kind.QUOTED):
        return pool.take(free[0]) if _takes(slot, pool, free[0]) else None
    names = [*context.texts, *pool.free(Kind.IDENTIFIER, Kind.PATH)]
    if len(names) != 1 or not _fits(slot, names[0]) or not _is_name(slot, pool.bare[: names[0].start]):
        return None
    return pool.take(names[0])


def _fits(slot: Slot, item: Evidence) -> bool:
    """Whether a parameter takes a text of this kind: a name is no message, no code and no identifier."""
    other = slot.says(*CONTENT) or slot.identifies or "code" in slot.description.lower()
    return item.kind is not Kind.NAME or not other


def _is_name(slot: Slot, before: str) -> bool:
    """Whether the words before a name say that it is a parameter's value: "restart Nginx", "the playlist Focus"."""
    if _CALLED.search(before) or _VERB_ALONE.fullmatch(before):
        return True
    noun = _LABEL.search(before)
    own = {stem(word) for word in (*slot.words, *words_of(slot.about.partition("\n")[0])[1:])}
    return noun is not None and stem(noun[1]) in own and not preposition(before)


def _takes(slot: Slot, pool: Pool, quoted: Evidence) -> bool:
    """Whether a quotation without the parameter's name before it may be its value.

    "by" and the like tell of somebody or something else, and so does a noun ("the lead 'Acme'" for ``industry``).
    """
    before = pool.bare[: quoted.start]
    if _OTHER_ROLE.search(before) and opening(before) not in alike("search"):
        return False
    noun = _NOUN_BEFORE.search(before)
    if (
        slot.identifies
        and not re.search(r"\d", str(quoted.value))
        and not (noun and stem(noun[1]) in map(stem, slot.words))
    ):
        return False
    if noun is None or slot.says(*CONTENT, *ANY) or slot.identifies:
        return True
    return stem(noun[1]) in map(stem, slot.words)
