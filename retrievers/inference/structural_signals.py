"""Hints by rules: sessions, checks, records, parts, states, other tools in descriptions, and fields of records."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from callsheet.graphs import Tool, shown
from callsheet.graphs.text.json_schema import Field, fields_of
from callsheet.retrievers.inference.endpoints import Ask, Ends, Hint
from callsheet.retrievers.inference.word_roles import (
    CREDENTIAL,
    FREE,
    GENERIC,
    IDENTIFIER,
    RECORD_ID,
    REMOVING,
    SECRET,
    SESSION,
    VAGUE,
    parts_of,
    stems,
    stems_in,
)

_SESSION, _CHECK, _LOOKUP, _RECORD, _MADE, _PART, _STATE, _NAMED = 0.85, 0.65, 0.85, 0.72, 0.62, 0.7, 0.55, 0.8
_COMPOSED = re.compile(r"[_/.-]|[a-z][A-Z]")
_WORD = re.compile(r"[\w./-]{0,200}\w")
_SENTENCE = re.compile(r"(?<=[.!?])\s|\n")
_OTHERWISE = re.compile(
    r"\b(instead|deprecated|alternativ\w*|see also|unlike|similar to|same as|opposite|rather than|don.t|not"
    r"|customers using|full list|webhooks?|will need to)\b|^\W*please use\b",
    re.IGNORECASE,
)
_NEEDED = re.compile(r"\b(first|before|must|requires?|needs?|after|prior|obtained|returned|from)\b", re.IGNORECASE)
_QUOTED, _MOST, _DOORS = 90, 20, 500
Type = tuple[str, frozenset[str]]
"""System and specific words of an identifier: ``person`` of ``person_id``."""
_SURE, _SHARED, _COVERED, _MOST_SOURCES = 0.75, 3, 0.5, 2
_OF_MANY = 100  # a field of more types tells nothing


class ToolIndex:
    """The tools of a catalog, indexed for the rules."""

    def __init__(self, ends: Ends) -> None:
        self.tools, self.systems, self.asks, self.names = ends.tools, ends.systems, ends.asks, ends.names
        self.may_use = ends.may_use
        self.tell_credentials = set[int]()
        self.held: defaultdict[int, set[frozenset[str]]] = defaultdict(set)
        for give in ends.gives:
            if give.source == "output" and give.words & CREDENTIAL:
                self.tell_credentials.add(give.tool)
            if give.source == "output" and give.words & IDENTIFIER:
                self.held[give.tool].add(give.words - GENERIC)
        self.asks_of: defaultdict[int, list[Ask]] = defaultdict(list)
        for ask in ends.asks:
            self.asks_of[ask.tool].append(ask)
        self._by_object: defaultdict[tuple[str, frozenset[str]], list[int]] = defaultdict(list)
        for row, name in enumerate(self.names):
            if name.object - VAGUE:
                self._by_object[self.systems[row], name.object - VAGUE].append(row)

    def same_object(self, row: int) -> Iterator[int]:
        """Rows of other tools of the system for the same object, at most 20 with each act."""
        key = (self.systems[row], self.names[row].object - VAGUE)
        counts: Counter[str] = Counter()
        for other in self._by_object.get(key, ()):
            counts[self.names[other].act] += 1
            if other != row and counts[self.names[other].act] <= _MOST:
                yield other

    def required(self, row: int) -> frozenset[str]:
        """The inputs that a tool requires."""
        return frozenset(ask.parameter for ask in self.asks_of[row] if ask.required)

    def needs_id(self, row: int) -> bool:
        """Whether a tool requires an identifier."""
        return any(ask.required and ask.identifier for ask in self.asks_of[row])


def hints_by_rules(ends: Ends) -> list[Hint]:
    """The hints of all rules, but for ``record_types``."""
    index = ToolIndex(ends)
    return [hint for rule in RULES for hint in rule(index)]


def sessions(index: ToolIndex) -> Iterator[Hint]:
    """The other tools of a system need its tool that opens a session; if there are several, those with its name do.

    If tools of the system have the session as input, only these need it.
    """
    explicit = {index.systems[ask.tool] for ask in index.asks if ask.words & CREDENTIAL}
    doors: defaultdict[str, list[int]] = defaultdict(list)
    for row, name in enumerate(index.names):
        if name.act == "enter" and _opens(index, row):
            doors[index.systems[row]].append(row)
    for row, system in enumerate(index.systems):
        at_hand = doors.get(system, [])
        if row in at_hand:
            continue
        for door in at_hand[:_DOORS]:
            own = index.names[door].words - SESSION
            credential = next((ask for ask in index.asks_of[row] if ask.words & CREDENTIAL), None)
            only = len(at_hand) == 1 and (credential is not None or system not in explicit)
            if only or (own and own <= index.names[row].words):
                why = "it opens the session that this tool works in"
                yield Hint(row, door, credential.parameter if credential else None, _SESSION, True, why)


def _opens(index: ToolIndex, row: int) -> bool:
    """Whether a tool opens a session for its caller: it takes or returns a secret, or takes nothing."""
    asks = index.asks_of[row]
    return not asks or any(ask.words & SECRET for ask in asks) or row in index.tell_credentials


def checks(index: ToolIndex) -> Iterator[Hint]:
    """Tools that take a value need the tool that validates it, for example an email address."""
    checking: defaultdict[str, list[int]] = defaultdict(list)
    for row, name in enumerate(index.names):
        for word in sorted(name.object - GENERIC) if name.act == "check" else ():
            checking[word].append(row)
    for ask in index.asks:
        allowed = (row for row in checking.get(ask.head, ()) if row != ask.tool and index.may_use(ask.tool, row))
        for row in islice(allowed, _MOST):
            about = index.names[row].object
            if about <= ask.words and not (ask.words - about) & RECORD_ID:
                why = f"it checks what {ask.parameter} takes"
                yield Hint(ask.tool, row, ask.parameter, _CHECK, ask.required, why)


def lookups(index: ToolIndex) -> Iterator[Hint]:
    """A tool that can filter records by an identifier returns them, unless tools of its system read what it names."""
    read = {
        (system, name.object - GENERIC)
        for system, name in zip(index.systems, index.names, strict=True)
        if name.act == "read"
    }
    filters: defaultdict[tuple[str, frozenset[str]], list[int]] = defaultdict(list)
    for ask in index.asks:
        if not ask.required and ask.identifier and index.names[ask.tool].act == "read":
            tool, name = index.tools[ask.tool], index.names[ask.tool]
            another = (index.systems[ask.tool], ask.specific) in read and name.object - GENERIC != ask.specific
            holds = not tool.output_schema or ask.specific in index.held.get(ask.tool, ())
            if holds and not another and ask.specific & (name.words | stems_in(shown(tool.description))):
                filters[index.systems[ask.tool], ask.words].append(ask.tool)
    for ask in index.asks:
        if ask.required and ask.identifier:
            rows = filters.get((index.systems[ask.tool], ask.words), [])[:_MOST]
            for row in (row for row in rows if row != ask.tool):
                why = f"it looks records up by {ask.parameter}, so they hold one"
                yield Hint(ask.tool, row, ask.parameter, _LOOKUP, True, why)


def records(index: ToolIndex) -> Iterator[Hint]:
    """A call with an identifier needs the tool that lists or makes such records."""
    for ask in index.asks:
        about = index.names[ask.tool].object - GENERIC
        if not (ask.required and ask.words & RECORD_ID and ask.specific and ask.specific <= about):
            continue
        for row in index.same_object(ask.tool):
            act = index.names[row].act
            if act in ("read", "store") and not index.needs_id(row):
                does, sure = ("lists", _RECORD) if act == "read" else ("makes", _MADE)
                why = f"it {does} what {ask.parameter} identifies"
                yield Hint(ask.tool, row, ask.parameter, sure, act == "read", why)


def parts(index: ToolIndex) -> Iterator[Hint]:
    """A tool without inputs can return a part of a value: a year of the current date, a latitude of the place."""
    tellers: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row, name in enumerate(index.names):
        if name.act == "read" and not index.tools[row].input_schema.get("required"):
            for part in parts_of(name.object):
                tellers[index.systems[row], part].append(row)
    for ask in index.asks:
        system = index.systems[ask.tool]
        for row in dict.fromkeys(row for word in sorted(ask.words) for row in tellers.get((system, word), ())[:_MOST]):
            if row != ask.tool:
                why = f"{ask.parameter} can be read off what it tells"
                yield Hint(ask.tool, row, ask.parameter, _PART, False, why)


def states(index: ToolIndex) -> Iterator[Hint]:
    """A tool that changes something may need the tool that reads it with the inputs at hand, except to remove it."""
    for row, name in enumerate(index.names):
        if name.act == "change" and not name.words & REMOVING:
            known = index.required(row)
            for other in index.same_object(row):
                reads = index.names[other].act == "read" and index.names[other].object == name.object
                if reads and index.tools[other].agent == index.tools[row].agent and index.required(other) <= known:
                    yield Hint(row, other, None, _STATE, False, "it tells what this tool changes")


def named(index: ToolIndex) -> Iterator[Hint]:
    """A tool whose description names another tool of its system, except as an alternative, needs it."""
    rows = {
        (index.systems[row], tool.name.casefold()): row
        for row, tool in enumerate(index.tools)
        if _COMPOSED.search(tool.name)
    }
    if not rows:
        return
    for row, tool in enumerate(index.tools):
        for parameter, needed, text in _texts(tool):
            others: dict[int, str] = {}
            for sentence in _SENTENCE.split(shown(text)):
                for word in _WORD.findall(sentence.casefold()):
                    other = rows.get((index.systems[row], word))
                    if other is not None and other != row and not _OTHERWISE.search(sentence):
                        others.setdefault(other, sentence)
            for other, sentence in islice(others.items(), _MOST):
                quote = " ".join(sentence.split())[:_QUOTED]
                direct = needed and bool(parameter or _NEEDED.search(sentence))
                yield Hint(row, other, parameter, _NAMED, direct, f"its description names it: {quote!r}")


def _texts(tool: Tool) -> Iterable[tuple[str | None, bool, str]]:
    yield None, True, tool.description
    for field in fields_of(tool.input_schema):
        yield ".".join(field.path), field.required, field.description


RULES: tuple[Callable[[ToolIndex], Iterator[Hint]], ...] = (sessions, checks, lookups, records, parts, states, named)


@dataclass(frozen=True, slots=True)
class Record:
    """An object with an identifier in the result of a tool.

    Attributes:
        tool: Row of the tool.
        holder: Names from the root of the output schema to the object.
        fields: The names of its own fields.
        many: Whether it is in a list.
        share: Its fields as a share of all fields of the result, 0 to 1.
    """

    tool: int
    holder: tuple[str, ...]
    fields: frozenset[str]
    many: bool
    share: float


def record_types(ends: Ends) -> Iterator[Hint]:
    """A tool that mainly returns a list of records is a source of their identifier.

    The fields of a type are those that the tools return that find such records or read one by its identifier. With
    n(f), the number of types with field f, a list is of the type with most::

        score(type) = sum of 1 / n(f) over the fields f that its records share with the type

    if they share at least three fields and half of their own, one of them with no other type. The confidence is .75 *
    the share of the fields of the result that are in such lists / the number of inputs that the call requires.

    Yields:
        For each input at most two tools, those that need the fewest inputs first.
    """
    access = ends.access
    asks: defaultdict[Type, list[Ask]] = defaultdict(list)
    for ask in ends.asks:
        if ask.required and ask.identifier and ask.specific:
            asks[ends.systems[ask.tool], ask.specific].append(ask)
    records = [record for row, tool in enumerate(ends.tools) for record in _records(row, tool)]
    types = _Types(asks, records, ends)
    needs = Counter(ask.tool for ask in ends.asks if ask.required)
    shares: defaultdict[Type, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    for record in records:
        if record.many and (kind := types.of(record, ends.systems[record.tool])):
            shares[kind][record.tool] += record.share
    for kind, tools in shares.items():
        finders = {*access.finders(*kind)}
        best = sorted(tools, key=lambda row: (-tools[row], row))[:_OF_MANY]
        for ask in asks[kind]:
            sources = access.sources(ask, [*islice(finders, _OF_MANY), *best]) - {ask.tool} - finders
            ranked = sorted(sources, key=lambda row: (needs[row], -tools[row], row))
            for row in ranked[:_MOST_SOURCES]:
                why = f"it lists records with the fields of what {ask.parameter} identifies"
                yield Hint(ask.tool, row, ask.parameter, _SURE * tools[row] / needs[ask.tool], ask.required, why)


def _records(row: int, tool: Tool) -> Iterator[Record]:
    leaves = fields_of(tool.output_schema or {})
    own: defaultdict[tuple[str, ...], list[Field]] = defaultdict(list)
    for leaf in leaves:
        own[leaf.path[:-1]].append(leaf)
    for holder, fields in own.items():
        nested = any(own.get(holder[:depth]) for depth in range(1, len(holder)))
        if not nested and any(stems(field.name) and stems(field.name) <= IDENTIFIER for field in fields):
            names = frozenset(field.name for field in fields)
            yield Record(row, holder, names, fields[0].many, len(fields) / len(leaves))


class _Types:
    """The fields of the records of each type: those that its finders list, and that the tool for its object reads."""

    def __init__(self, kinds: Collection[Type], records: Sequence[Record], ends: Ends) -> None:
        by_word: defaultdict[tuple[str, str], list[Type]] = defaultdict(list)
        for kind in kinds:
            for word in kind[1]:
                by_word[kind[0], word].append(kind)
        self._words = by_word.keys()
        self._fields: defaultdict[Type, set[str]] = defaultdict(set)
        for record in records:
            system, name = ends.systems[record.tool], ends.names[record.tool]
            if record.many and len(record.holder) <= 1 and ends.access.finds[record.tool]:
                listed = {
                    kind for word in name.words for kind in by_word.get((system, word), ()) if kind[1] <= name.words
                }
                for kind in listed:
                    self._fields[kind] |= record.fields
            elif not record.holder and len(ends.access.ids.get(record.tool, ())) == 1:
                self._fields[system, name.object - GENERIC] |= record.fields
        self._types: defaultdict[tuple[str, str], list[Type]] = defaultdict(list)
        for kind in kinds:
            for field in sorted(self._fields.get(kind, ())):
                self._types[kind[0], field].append(kind)

    def of(self, record: Record, system: str) -> Type | None:
        """The type of a list of records; None if its own name tells it, or if it is not clear."""
        if any((system, word) in self._words for part in record.holder for word in stems(part)):
            return None
        scores: defaultdict[Type, float] = defaultdict(float)
        telling = set[Type]()
        for field in sorted(record.fields):
            kinds = self._types.get((system, field), ())
            for kind in kinds if len(kinds) <= _OF_MANY else ():
                scores[kind] += 1 / len(kinds)
            if len(kinds) == 1 and not stems(field) <= GENERIC | FREE:
                telling.add(kinds[0])
        best = max(scores, key=lambda kind: scores[kind], default=None)
        shared = len(record.fields & self._fields[best]) if best else 0
        return best if best in telling and shared >= max(_SHARED, _COVERED * len(record.fields)) else None
