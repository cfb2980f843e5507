"""Closed vocabularies and flags: the values that a schema lists, found in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from typing import Any

from callsheet.agents.keyless.entities.evidence import Kind, Pool
from callsheet.agents.keyless.entities.quantities import compound, is_unit, units_in
from callsheet.agents.keyless.entities.time_zones import is_zone, zones_in
from callsheet.agents.keyless.language.lexicon import is_plural, singular
from callsheet.agents.keyless.slots.directions import direction_before
from callsheet.agents.keyless.slots.slot import Slot, stem, words_of
from callsheet.agents.keyless.slots.value_formats import is_path, is_path_list

_SYNONYMS: dict[str, tuple[str, ...]] = {
    "mean": ("average",),
    "average": ("mean",),
    "std_dev": ("standard deviation",),
    "stdev": ("standard deviation",),
    "std": ("standard deviation",),
    "max": ("maximum", "largest", "highest"),
    "min": ("minimum", "smallest", "lowest"),
    "sum": ("total",),
    "asc": ("ascending",),
    "desc": ("descending",),
}
"""Synonyms of values that tools often list."""
_CODES = {"territories": ("country", "nation"), "languages": ("language", "lang"), "currencies": ("currency",)}
"""The lists of names for codes in Unicode's CLDR, and words for parameters that take such a code."""
_NEGATION = re.compile(
    r"\b(?:without|no|not|don't|never|skip|omit|exclude|disable|non|un)\b[\s-]*(?:(?:any|the|an?|to|its)\s+)?$", re.I
)
_TRUE = frozenset("true yes on".split())
_TRUTH = re.compile(r"\s*(?:[=:]|\b(?:is|set\s+to|to)\b)?\s*\b(true|false|yes|no|on|off)\b(?!\s+\w)", re.IGNORECASE)
_TRUTH_BEFORE = re.compile(r"\b(true|false)\s+$", re.IGNORECASE)
"""The value of a flag after its name, or before it: "refund=false"."""
_ORDERED = re.compile(r"\s+(?:an?|the|all|my|our|this|that|these|those|on|in|for|to)\b", re.IGNORECASE)
_SORTS = re.compile(r"\b(?:sort|order|rank|by)", re.IGNORECASE)
_PLURAL = re.compile(r"[a-z]{3}(?<![su])s$")
"""The end of a value that may be said in the singular: "row" for ``rows``."""
_HYPHENATED, _HYPHEN = re.compile(r"[-‑]([^\W\d_]+)"), re.compile(r"\w[-‑]$")
_FLAG_FILLERS = frozenset("is has have include includes use with enable enabled should do allow show only flag".split())


def fill_closed(slot: Slot, pool: Pool) -> Any:
    """The listed value in the text, or None: a value next to the parameter's name first, then the longest."""
    quoted = {str(item.value).casefold(): item for item in pool.free(Kind.QUOTED)}
    if said := next((value for value in slot.vocabulary if str(value).casefold() in quoted), None):
        pool.take(quoted[str(said).casefold()])
        return said
    text = pool.rest
    if slot.says("sort", "order", "direction") and not slot.required and not _SORTS.search(text):
        return None
    found = [
        ((near, end - start, -start), value, (start, end))
        for value in slot.vocabulary
        for start, end in _places(slot, value, text)
        for near in (_near_name(slot, text, start, end),)
        if (slot.required or near or end - start > 3 or value == "all") and _is_directed(slot, text[:start])
    ]
    if not found:
        return None
    _, value, place = max(found, key=lambda one: one[0])
    pool.used.append(place)
    return value


def _is_directed(slot: Slot, before: str) -> bool:
    """Whether the words before a value do not name the other direction: "from north" is not for ``to_warehouse``."""
    said = direction_before(before)
    return said == "to" if "to" in slot.words else said != {"from": "to", "to": "from"}.get(slot.direction)


def mentions(slot: Slot, pool: Pool) -> list[tuple[int, int]]:
    """The spans of listed values in the text, without overlaps, in text order."""
    found = {place for value in slot.vocabulary for place in _places(slot, value, pool.rest)}
    ordered = sorted(found, key=lambda place: (place[0], -place[1]))
    return [place for i, place in enumerate(ordered) if not any(a <= place[0] < b for a, b in ordered[:i])]


def fill_flag(slot: Slot, pool: Pool) -> bool | None:
    """The value of a flag, from the words of its name in the text; None without them."""
    wanted = [stem(w) for w in slot.words if w not in _FLAG_FILLERS] or [stem(w) for w in slot.words]
    spoken = list(re.finditer(r"[A-Za-z]+", pool.bare))
    for index in range(len(spoken) - len(wanted) + 1):
        window = spoken[index : index + len(wanted)]
        if all(_same(stem(said.group()), want) for said, want in zip(window, wanted, strict=True)):
            value = _TRUTH.match(pool.bare, window[-1].end()) or _TRUTH_BEFORE.search(pool.bare, 0, window[0].start())
            if value:
                pool.used.append((min(value.start(), window[0].start()), max(value.end(), window[-1].end())))
                return value[1].lower() in _TRUE
            inverse = bool({"no", "not", "disable", "skip", "exclude", "without"} & set(slot.words))
            return inverse or not _NEGATION.search(pool.bare[: window[0].start()])
    return None


def _same(said: str, wanted: str) -> bool:
    shorter, longer = sorted((said, wanted), key=len)
    return said == wanted or (len(shorter) > 4 and longer.startswith(shorter))


def _places(slot: Slot, value: Any, text: str) -> Iterator[tuple[int, int]]:
    """The spans of a value in a text, in any of its spellings; for one or two letters the case counts."""
    said = str(value)
    plain = " ".join(words_of(re.sub(r"\(.*?\)", "", said))) or said
    for form in (
        () if isinstance(value, bool) else (plain, *_SYNONYMS.get(plain.replace(" ", "_"), ()), *_named(slot, said))
    ):
        short = len(said) <= 2 and form == plain
        joined = re.escape(said) if short else r"[\s_‑-]*".join(map(re.escape, form.split()))
        plural = r"(?:s|es|d|ed)?" if form[-1:].isalpha() and not short else ""
        joined = joined[:-1] if plural and _PLURAL.search(joined) else joined
        pattern = re.compile(rf"(?<!\w){joined}{plural}(?!\w)", re.NOFLAG if short else re.IGNORECASE)
        found = (m for m in pattern.finditer(text) if not (_is_passive(form, m) or _is_verb(m)))
        yield from (match.span() for match in found if not _is_part(slot, text, *match.span()))


def _is_verb(value: re.Match[str]) -> bool:
    """Whether a value is the verb of the step: "open an issue", "void all invoices"."""
    return not value.string[: value.start()].strip() and bool(_ORDERED.match(value.string, value.end()))


def _is_passive(form: str, match: re.Match[str]) -> bool:
    """Whether a verb is said in the passive: "blocked by" is not ``blocks``."""
    return form.endswith("s") and match.group().lower().endswith("ed")


def _is_part(slot: Slot, text: str, start: int, end: int) -> bool:
    """Whether a value is a part of another word: "non-red", "blue-green"; not of "high-priority" for ``priority``."""
    follows = _HYPHENATED.match(text, end)
    named = follows and stem(follows[1]) in map(stem, slot.words)
    return bool(follows and not named) or bool(_HYPHEN.search(text, 0, start))


def _named(slot: Slot, code: str) -> Iterator[str]:
    """The English name of a country, language or currency: "France" for FR."""
    for kind, words in _CODES.items():
        if slot.says(*words):
            from babel import Locale

            names = getattr(Locale("en"), kind)
            yield from (names[form] for form in (code, code.upper(), code.lower()) if form in names)


def _near_name(slot: Slot, text: str, start: int, end: int) -> bool:
    before = re.findall(r"[a-z]+", text[:start].lower())
    if before[-1:] == ["to"] and {stem(slot.head)} <= set(map(stem, before)):  # "the priority of task 2 to low"
        return True
    around = re.findall(r"[a-z]+", text[max(0, start - 15) : start].lower())[-2:]
    around += re.findall(r"[a-z]+", text[end : end + 15].lower())[:2]
    return bool({stem(w) for w in around} & {stem(w) for w in slot.words})


MOST = 12
"""Maximum number of calls for one step by rules."""
_JOINED = re.compile(
    r"\s*(?:,\s*(?:and\b\s*)?|\band\b\s*|&\s*|\bas\s+well\s+as\b\s*)(?:also\s+)?(?:(?:to|in|into|at|for|from|of|the)\s+)*",
    re.IGNORECASE,
)
_NOUN_BEFORE = re.compile(r"([A-Za-z]+)[\s:]*$")
_BOTH = re.compile(r"\bboth\s+$", re.IGNORECASE)
_RECORD_SIGNS = frozenset("0123456789\"'“‘`«")
"""The first characters of numbers and quotations."""
Span = tuple[int, int]


def variants(text: str, slots: Sequence[Slot], *, plainly: bool = False) -> tuple[str, ...]:
    """The text once for each value that it lists for one parameter; the text alone if it lists none.

    Examples:
        >>> number, unit = {"type": "number"}, {"type": "string", "enum": ["km", "mile", "yard"]}
        >>> from callsheet.agents.keyless.slots.slot import slots_of
        >>> tool = {"properties": {"value": number, "from_unit": unit, "to_unit": unit}, "required": ["value"]}
        >>> variants("3 miles to km and yards", slots_of(tool))
        ('3 miles to km', '3 miles to yards')
    """
    runs = sorted(run for atoms in _atoms(text, slots, plainly=plainly) for run in _runs(text, atoms))
    if plainly and len(runs) > 1:
        return (text,)  # which belongs to which is not said
    if not runs or any(one[-1][1] > other[0][0] for one, other in pairwise(runs)):
        return (text,)
    if sum(text[run[0][0]] in _RECORD_SIGNS for run in runs) > 1:
        return (text,)  # "issues 4 and 5 to projects 1 and 2" are pairs, or not
    choices = list(product(*runs))
    return tuple(_chosen(text, runs, choice) for choice in choices) if len(choices) <= MOST else (text,)


def _chosen(text: str, runs: Sequence[Sequence[Span]], choice: Sequence[Span]) -> str:
    for run, (start, end) in zip(reversed(runs), reversed(choice), strict=True):
        before, chosen = text[: run[0][0]], text[start:end]
        before = _BOTH.sub("", before) if len(run) == 2 else before
        if noun := _NOUN_BEFORE.search(before) if chosen[0] in _RECORD_SIGNS else None:
            before = f"{before[: noun.start(1)]}{singular(noun[1])}{before[noun.end(1) :]}"
        text = before + chosen + text[run[-1][1] :]
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


def _listed_records(text: str, pool: Pool, slots: Sequence[Slot]) -> Iterator[list[Span]]:
    """What is listed after a plural.

    Quotations after that of a parameter's name: "the sheets 'A' and 'B'" for ``sheet``; numbers after that of a record:
    "rooms 1 and 2" for ``room_number``, or for the ``id`` of ``delete_room``.
    """
    numbered = [slot for slot in slots if slot.required and slot.numeric and slot.identifies]
    records = {stem(word) for slot in numbered for word in slot.words}
    records |= {stem(word) for word in words_of(slots[0].about.partition("\n")[0])} if len(numbered) == 1 else set()
    named = [slot for slot in slots if slot.required and slot.textual and slot.identifies]
    texts = {stem(slot.head) for slot in slots if slot.textual}
    if len(named) == 1:
        texts |= {stem(word) for word in (*named[0].words, *words_of(slots[0].about.partition("\n")[0]))}
    for kind, nouns in (
        (Kind.QUOTED, texts),
        (Kind.IDENTIFIER, texts),
        (Kind.NUMBER, records if len(numbered) == 1 else set()),
    ):
        for run in _runs(text, [(item.start, item.end) for item in pool.free(kind)]):
            noun = _NOUN_BEFORE.search(text[: run[0][0]])
            if noun and is_plural(noun[1].lower()) and stem(noun[1]) in nouns:
                yield list(run)


def _atoms(text: str, slots: Sequence[Slot], *, plainly: bool) -> Iterator[list[Span]]:
    """For each parameter with a single value, the spans in the text that could be its value.

    A record has only one state: of several, the last one would win.
    """
    states = plainly and any(slot.required and not slot.vocabulary for slot in slots)
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
        if slot.vocabulary and not is_unit(slot) and "array" not in slot.types and not states:
            yield mentions(slot, pool)
    yield from _listed_records(text, pool, slots)
    paths = [slot for slot in slots if slot.required and slot.textual and is_path(slot)]
    if len(paths) == 1 and not any(map(is_path_list, slots)):
        yield [(item.start, item.end) for item in pool.free(Kind.PATH)]
