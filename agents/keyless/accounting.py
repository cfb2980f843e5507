"""The words of a step that nothing accounts for: no argument, no tool name, and not a word without content."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from callsheet.agents.keyless.entities.currencies import is_currency, only_currency
from callsheet.agents.keyless.entities.evidence import Kind, Pool
from callsheet.agents.keyless.entities.measurement_units import unit_of
from callsheet.agents.keyless.language.lexicon import COMPUTED_NOUNS, NEUTRAL, OPERATIONS, QUESTION_WORDS, RESULT_NOUNS
from callsheet.agents.keyless.language.qualifiers import Span, qualifiers
from callsheet.agents.keyless.language.references import (
    BEFORE_CRITERION,
    aggregates,
    only_changes,
    pronouns,
    refers_to_several,
    with_value,
)
from callsheet.agents.keyless.slots.slot import Slot, stem, value_words, words_of
from callsheet.agents.planning.plan import StepResult
from callsheet.agents.safety.tool_effects import alike

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*|[%°€$£¥]")
_DIFFERENCE = re.compile(r"(?<!\d )\bby\s+(?=[-−]?\d)", re.IGNORECASE)
"""Before a number that is added or taken away, or before a deadline; not in "800 by 600"."""
_REFERENCES = frozenset("it its that this them those these all each everything result results one ones".split())
_COUNTS = {"both": 2, "two": 2, "three": 3, "four": 4, "five": 5}
"""References to a certain number of results."""
_FILLER = re.compile(r"\bfind\s+out\b|\bright\s+(?=now\b)", re.IGNORECASE)
"""Phrases without content in a question."""
_AFTER = re.compile(r"[ -]?([^\W\d_]+)")
_ON = re.compile(r"\bon\s+(?:the\s+)?(?:([a-z]+)\s+#?)?$", re.IGNORECASE)
"""Before a date, or a record."""
_ASKING = r"\b(?:how\s+(?:many|much)|(?:who|when|where)\s+(?:is|are|was|were)(?:\s+(?:the|its|their))?)"
"""Before a value that is asked for."""
_UNIT_SIGNS = {"%": "percent", "c": "celsius", "f": "fahrenheit"}
_UNIT_SIGN = re.compile(r"(?<=\d)\s?°?\s?([CF]\b|%)", re.IGNORECASE)
"""Signs of units that a tool names in words."""
_WHEN = re.compile(r"\b(?:when|if)\b", re.IGNORECASE)
_INTRODUCES = re.compile(
    r"\b(?:no\.|number)\s*(?=\d)|\bsaying\s+(?=¤)|\bon\s+(?=(?:mon|tues|wednes|thurs|fri|satur|sun)day)", re.IGNORECASE
)
"""Before the number of a record, the text of a message, or a weekday."""
_RESULT = re.compile(
    rf"\b(?:the|this|that|these|those)\s+({'|'.join(sorted(RESULT_NOUNS))})\b(?!\s+of\b)", re.IGNORECASE
)
_MEANINGFUL = frozenset(
    """
    average except false first highest last least lowest maximum minimum most never neither no none nor not off one only
    or really true unless without yes
    """.split()
)
"""Words that mean the same in no description: "those done or not done" does not account for "not"."""
_WAYS = re.compile(r",\s+(?:as|at|by|for|from|in|on|or|with)\b.*$", re.IGNORECASE | re.DOTALL)
_OPERATOR = re.compile(r"(?<=[\w)])\s*([-+*×/÷])\s*(?=[\d(])")
_COUNTING = re.compile(
    r"how\s+(?:many|much)\b|how\s+(?:long|far|heavy|hot|big|old|tall|fast|warm|cold|high)\s+(?:is|are|was|were)\b", re.I
)
_AMOUNTS = frozenset("amount balance cost fare fee price total".split())
"""Words in the names of tools that answer "how much"."""


def unused_words(
    pool: Pool,
    about: str,
    slots: Sequence[Slot],
    filled: Collection[str],
    *,
    results: Sequence[str] = (),
    builds_on: Sequence[StepResult] = (),
    unclear: Collection[str] = (),
    plainly: bool = False,
) -> tuple[str, ...]:
    """The content words of a step that went into no argument, in text order.

    Args:
        pool: The step's evidence, with the spans that arguments used.
        about: The tool's name, then its description from the next line on.
        slots: The tool's parameters.
        filled: Names of the parameters that have a value.
        results: Names of the values that the tool gives.
        builds_on: Earlier results that the step uses; words that refer to them are then accounted for.
        unclear: Nouns that may be the result of several earlier steps (``ambiguous``).
        plainly: Whether question words count as content, as for a tool that may change something.
    """
    said = _said(about, slots, filled, plainly=plainly)
    known = _known(said, builds_on=builds_on, unclear=unclear, plainly=plainly)
    offered = {stem(word) for slot in slots for value in slot.vocabulary for word in words_of(str(value))}
    counted = list(_accounted(pool, slots, filled, said, results=results, plainly=plainly))
    evident = (item for item in pool.items if item.kind is not Kind.NAME)  # of a name, each word counts
    left = [(item.start, item.end) for item in evident if not pool.is_covered(item.start, item.end)]
    left += _meaningful(pool, about, said, plainly=plainly)
    for match in _WORD.finditer(pool.bare):
        start, end = match.span()
        word = match.group().lower().replace("’", "'").removesuffix("'s").replace("e-mail", "email")
        if any(a <= start < b for a, b in (*left, *counted)):
            continue
        if pool.is_used(start, end):
            attached = _suffix(match.group())
            mine = pool.is_covered(start, end) or any(a < end <= b for a, b in counted)
            if attached and not mine and (len(attached) == 1 or attached not in known - NEUTRAL):
                left.append((start, end))  # "5a" is not 5
        elif word not in known and (stem(word) not in known or stem(word) in offered):
            left.append((start, end))
    signs = (at for at in _signs(pool.bare, plainly=plainly) if not any(a <= at < b for a, b in counted))
    left += [(at, at + 1) for at in signs if not pool.is_used(at, at + 1)]
    return tuple(pool.text[start:end] for start, end in _joined(sorted(left), pool.text))


def _accounted(
    pool: Pool,
    slots: Sequence[Slot],
    filled: Collection[str],
    said: Collection[str],
    *,
    results: Sequence[str],
    plainly: bool,
) -> Iterator[Span]:
    """The spans that need no argument: they say how a value is asked for, or what a number or a date is."""
    text = pool.bare
    amount = any(slot.numeric and not slot.identifies and slot.name in filled for slot in slots)
    priced = not plainly and bool(_AMOUNTS.intersection(said))
    asking = (m for m in _COUNTING.finditer(text) if amount or (priced and m.group().lower().endswith("much")))
    yield from (m.span() for m in asking)
    yield from (m.span() for m in _WHEN.finditer(text) if _took(pool, Kind.CLOCK))
    records = {stem(word) for slot in slots if slot.identifies and slot.name in filled for word in slot.words}
    for item in (item for item in pool.items if item.kind in (Kind.DATE, Kind.NUMBER)):
        for match in _ON.finditer(pool.text[: item.start]):
            if stem(match[1]) in records if match[1] else item.kind is Kind.DATE:
                yield match.start(), match.start() + 2
    yield from _asked(text, results)
    yield from (m.span() for m in _UNIT_SIGN.finditer(text) if _UNIT_SIGNS[m[1].lower()] in said)
    yield from (m.span() for m in _INTRODUCES.finditer(text) if pool.is_used(m.end(), m.end() + 1))
    yield from (m.span() for m in _FILLER.finditer(text) if not plainly)
    money = None if any(map(is_currency, slots)) else only_currency(slots, pool)
    if money and _counted(pool, money.start, money.end):
        yield money.start, money.end


def _meaningful(pool: Pool, about: str, said: Collection[str], *, plainly: bool) -> Iterator[Span]:
    """The spans that change what a step means, though their words may be the tool's or without content."""
    text = pool.bare
    if plainly and "by" not in said:
        yield from (m.span() for m in _DIFFERENCE.finditer(text) if pool.is_used(m.end(), m.end() + 1))
    references = () if pool.uses_results else (*pronouns(text), *_results_meant(text, said))
    spans = (*_other_units(pool, said), *references, *qualifiers(text, about, plainly=plainly))
    yield from (span for span in spans if not pool.is_used(*span))


def _results_meant(text: str, said: Collection[str]) -> Iterator[tuple[int, int]]:
    """Where a text names an earlier result, as "the list", unless the tool is for such a thing."""
    own = {stem(word) for word in said}
    yield from (match.span() for match in _RESULT.finditer(text) if stem(match[1]) not in own)


def _asked(text: str, results: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Where a text asks for values of a result: "the price of book 2", not "the books by price"."""
    for name in results:
        short = value_words(name)
        rest = words_of(name)[len(short) :]
        joined = r"[\s_-]+".join(map(re.escape, short)) + "".join(rf"(?:[\s_-]+{re.escape(word)})?" for word in rest)
        found = re.finditer(rf"(?:{_ASKING}\s+)?\b{joined}s?\b", text, re.IGNORECASE) if joined else ()
        yield from (match.span() for match in found if not BEFORE_CRITERION.search(text, 0, match.start()))


def _said(about: str, slots: Sequence[Slot], filled: Collection[str], *, plainly: bool) -> list[str]:
    """The words of the tool's name, of its description's first sentence, and of the parameters that have a value.

    After a comma stand ways to do it, of which a tool that may change something takes one: "in whole or in part".
    """
    name, _, description = about.partition("\n")
    sentence = description.strip().split("\n")[0].split(". ")[0]
    told = words_of(_WAYS.sub("", sentence) if plainly else sentence)
    said = [*words_of(name), *(word for word in told if word not in _MEANINGFUL)]
    for slot in slots:
        if slot.name in filled:
            said += [*slot.words, *words_of(slot.note)]
    return said


def _known(
    said: Collection[str], *, builds_on: Sequence[StepResult], unclear: Collection[str], plainly: bool
) -> set[str]:
    """Words and stems that need no argument of their own."""
    known = {other for word in said for other in (stem(word), *map(stem, alike(word) | _computing(word)))} | NEUTRAL
    if not plainly:
        known |= QUESTION_WORDS
    if builds_on:
        known |= _REFERENCES | RESULT_NOUNS - COMPUTED_NOUNS
        known |= {noun for done in builds_on for noun in made_by(done)}.difference(unclear)
        known |= {word for word, count in _COUNTS.items() if count == _number(builds_on)}
    return known


def _other_units(pool: Pool, said: Collection[str]) -> Iterator[tuple[int, int]]:
    """The units directly after numbers that are not the tool's own: "5 hours" for a timer in minutes."""
    own = {unit_of(word) for word in said if word not in NEUTRAL}
    for item in pool.items:
        match = _AFTER.match(pool.bare, item.end) if item.kind is Kind.NUMBER else None
        if match and match[1].lower() not in NEUTRAL | QUESTION_WORDS and unit_of(match[1]) not in {None, *own}:
            yield match.span(1)


def _computing(word: str) -> frozenset[str]:
    """The verbs for "calculation" and the like: "find the mean" is an order to compute it."""
    return alike("calculate") if stem(word) in {stem("calculate"), stem("compute")} else frozenset()


def _number(builds_on: Sequence[StepResult]) -> int:
    """The number of earlier values: one for each call."""
    return sum(sum(not call.error for call in done.calls) or 1 for done in with_value(builds_on))


def computed(text: str, tools: Iterable[str] = ()) -> frozenset[str]:
    """The nouns for what a step computes: "the average" after "the mean of 1, 2 and 3", "the sum" after "2 + 3".

    Args:
        text: The text of the step.
        tools: The ids of the tools that it called.
    """
    said = {stem(word) for word in re.findall(r"[a-z]+", " ".join([text, *tools]).lower())}
    names = () if only_changes(text) else COMPUTED_NOUNS
    named = {noun for noun in names if any(stem(word) in said for word in alike(noun))}
    signs = set(_OPERATOR.findall(text)) or set(re.findall(r"[a-z]+", text.lower()))
    operated = {noun for noun, how in OPERATIONS.items() if signs & {*how, *how.split()}}
    several = len({OPERATIONS[noun] for noun in operated}) > 1
    return frozenset(named if several else named | operated)


def made_by(done: StepResult) -> frozenset[str]:
    """The nouns for what a step has computed."""
    return computed(done.text, [call.tool for call in done.calls])


def ambiguous(masked: str, makers: Iterable[Collection[str]]) -> frozenset[str]:
    """The nouns of a masked clause that may be the result of several steps: "the sum" after "2 + 2" and "3 + 3".

    Args:
        masked: The clause.
        makers: What each earlier step computes.
    """
    if refers_to_several(masked):
        return frozenset()
    counts = Counter(noun for nouns in makers for noun in nouns)
    return frozenset(noun for noun in aggregates(masked) if counts[noun] > 1)


def _signs(text: str, *, plainly: bool) -> list[int]:
    """Where signs with a meaning stand: "<", "~", "±"; where an effect is ordered, pictograms too."""
    kinds = ("Sm", "So") if plainly else ("Sm",)
    return [at for at, sign in enumerate(text) if unicodedata.category(sign) in kinds and sign not in "=|"]


def _suffix(word: str) -> str:
    """The letters after the digits of a word, as their stem: ``km`` of "5km"."""
    return stem(word.lower().lstrip("0123456789.,-_'’"))


def _counted(pool: Pool, start: int, end: int) -> bool:
    """Whether a currency stands beside a number that was used."""
    return pool.is_used(end, end + 2) or pool.is_used(start - 2, start)


def _took(pool: Pool, kind: Kind) -> bool:
    return any(item.kind is kind and pool.is_used(item.start, item.end) for item in pool.items)


def _joined(spans: Sequence[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """The spans, adjacent ones merged."""
    pieces: list[tuple[int, int]] = []
    for start, end in spans:
        if pieces and not text[pieces[-1][1] : start].strip():
            pieces[-1] = (pieces[-1][0], end)
        else:
            pieces.append((start, end))
    return pieces
