"""Hints by rules: sessions, checks, records, parts, states, and descriptions that name another tool."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

from callsheet.graphs import Tool, shown
from callsheet.graphs.text.json_schema import fields_of
from callsheet.retrievers.inference.endpoints import Ask
from callsheet.retrievers.inference.matching import Ends, Hint
from callsheet.retrievers.inference.word_roles import (
    CREDENTIAL,
    GENERIC,
    IDENTIFIER,
    RECORD_ID,
    REMOVING,
    SECRET,
    SESSION,
    VAGUE,
    Name,
    name_of,
    parts_of,
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
_QUOTED, _MOST = 90, 20


class Shelf:
    """The tools of a catalog, indexed for the rules."""

    def __init__(self, ends: Ends) -> None:
        self.tools, self.systems, self.asks = ends.tools, ends.systems, ends.asks
        self.tell_credentials = {
            give.tool for give in ends.gives if give.source == "output" and give.words & CREDENTIAL
        }
        self.held: defaultdict[int, set[frozenset[str]]] = defaultdict(set)
        for give in ends.gives:
            if give.source == "output" and give.words & IDENTIFIER:
                self.held[give.tool].add(give.words - GENERIC)
        self.names: list[Name] = [name_of(tool.name) for tool in ends.tools]

    @cached_property
    def asks_of(self) -> dict[int, list[Ask]]:
        """Row of a tool -> its inputs."""
        asks: defaultdict[int, list[Ask]] = defaultdict(list)
        for ask in self.asks:
            asks[ask.tool].append(ask)
        return dict(asks)

    @cached_property
    def by_object(self) -> dict[tuple[str, frozenset[str]], list[int]]:
        """System and specific words of an object -> rows of the tools for this object."""
        rows: defaultdict[tuple[str, frozenset[str]], list[int]] = defaultdict(list)
        for row, name in enumerate(self.names):
            if name.object - VAGUE:
                rows[self.systems[row], name.object - VAGUE].append(row)
        return dict(rows)

    def same_object(self, row: int) -> Iterator[int]:
        """Rows of other tools of the system for the same object, at most 20 with each act."""
        key = (self.systems[row], self.names[row].object - VAGUE)
        counts: Counter[str] = Counter()
        for other in self.by_object.get(key, ()):
            counts[self.names[other].act] += 1
            if other != row and counts[self.names[other].act] <= _MOST:
                yield other

    def required(self, row: int) -> frozenset[str]:
        """The inputs that a tool requires."""
        return frozenset(ask.parameter for ask in self.asks_of.get(row, ()) if ask.required)

    def needs_id(self, row: int) -> bool:
        """Whether a tool requires an identifier."""
        return any(ask.required and ask.identifier for ask in self.asks_of.get(row, ()))


def hints_by_rules(ends: Ends) -> list[Hint]:
    """The hints of all rules."""
    shelf = Shelf(ends)
    return [hint for rule in RULES for hint in rule(shelf)]


def sessions(shelf: Shelf) -> Iterator[Hint]:
    """The other tools of a system need its tool that opens a session; if there are several, those with its name do.

    If tools of the system have the session as input, only these need it.
    """
    explicit = {shelf.systems[ask.tool] for ask in shelf.asks if ask.words & CREDENTIAL}
    doors: defaultdict[str, list[int]] = defaultdict(list)
    for row, name in enumerate(shelf.names):
        if name.act == "enter" and _opens(shelf, row):
            doors[shelf.systems[row]].append(row)
    for row, system in enumerate(shelf.systems):
        at_hand = doors.get(system, [])
        if row in at_hand:
            continue
        for door in at_hand:
            own = shelf.names[door].words - SESSION
            credential = next((ask for ask in shelf.asks_of.get(row, ()) if ask.words & CREDENTIAL), None)
            only = len(at_hand) == 1 and (credential is not None or system not in explicit)
            if only or (own and own <= shelf.names[row].words):
                why = "it opens the session that this tool works in"
                yield Hint(row, door, credential.parameter if credential else None, _SESSION, True, why)


def _opens(shelf: Shelf, row: int) -> bool:
    """Whether a tool opens a session for its caller: it takes or returns a secret, or takes nothing."""
    asks = shelf.asks_of.get(row, [])
    return not asks or any(ask.words & SECRET for ask in asks) or row in shelf.tell_credentials


def checks(shelf: Shelf) -> Iterator[Hint]:
    """Tools that take a value need the tool that validates it, for example an email address."""
    by_head: defaultdict[str, list[Ask]] = defaultdict(list)
    for ask in shelf.asks:
        by_head[ask.head].append(ask)
    for row, name in enumerate(shelf.names):
        if name.act == "check":
            for ask in (ask for word in sorted(name.object - GENERIC) for ask in by_head[word]):
                if ask.tool != row and name.object <= ask.words and not (ask.words - name.object) & RECORD_ID:
                    yield Hint(
                        ask.tool, row, ask.parameter, _CHECK, ask.required, f"it checks what {ask.parameter} takes"
                    )


def lookups(shelf: Shelf) -> Iterator[Hint]:
    """A tool that can filter records by an identifier returns them, unless tools of its system read what it names."""
    read = {
        (system, name.object - GENERIC)
        for system, name in zip(shelf.systems, shelf.names, strict=True)
        if name.act == "read"
    }
    filters: defaultdict[tuple[str, frozenset[str]], list[int]] = defaultdict(list)
    for ask in shelf.asks:
        if not ask.required and ask.identifier and shelf.names[ask.tool].act == "read":
            tool, name = shelf.tools[ask.tool], shelf.names[ask.tool]
            another = (shelf.systems[ask.tool], ask.specific) in read and name.object - GENERIC != ask.specific
            holds = not tool.output_schema or ask.specific in shelf.held.get(ask.tool, ())
            if holds and not another and ask.specific & (name.words | stems_in(shown(tool.description))):
                filters[shelf.systems[ask.tool], ask.words].append(ask.tool)
    for ask in shelf.asks:
        if ask.required and ask.identifier:
            rows = filters.get((shelf.systems[ask.tool], ask.words), [])[:_MOST]
            for row in (row for row in rows if row != ask.tool):
                why = f"it looks records up by {ask.parameter}, so they hold one"
                yield Hint(ask.tool, row, ask.parameter, _LOOKUP, True, why)


def records(shelf: Shelf) -> Iterator[Hint]:
    """A call with an identifier needs the tool that lists or makes such records."""
    for ask in shelf.asks:
        about = shelf.names[ask.tool].object - GENERIC
        if not (ask.required and ask.words & RECORD_ID and ask.specific and ask.specific <= about):
            continue
        for row in shelf.same_object(ask.tool):
            act = shelf.names[row].act
            if act in ("read", "store") and not shelf.needs_id(row):
                does, sure = ("lists", _RECORD) if act == "read" else ("makes", _MADE)
                why = f"it {does} what {ask.parameter} identifies"
                yield Hint(ask.tool, row, ask.parameter, sure, act == "read", why)


def parts(shelf: Shelf) -> Iterator[Hint]:
    """A tool without inputs can return a part of a value: a year of the current date, a latitude of the place."""
    tellers: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row, name in enumerate(shelf.names):
        if name.act == "read" and not shelf.tools[row].input_schema.get("required"):
            for part in parts_of(name.object):
                tellers[shelf.systems[row], part].append(row)
    for ask in shelf.asks:
        system = shelf.systems[ask.tool]
        for row in dict.fromkeys(row for word in sorted(ask.words) for row in tellers.get((system, word), ())[:_MOST]):
            if row != ask.tool:
                why = f"{ask.parameter} can be read off what it tells"
                yield Hint(ask.tool, row, ask.parameter, _PART, False, why)


def states(shelf: Shelf) -> Iterator[Hint]:
    """A tool that changes something may need the tool that reads it with the inputs at hand, except to remove it."""
    for row, name in enumerate(shelf.names):
        if name.act == "change" and not name.words & REMOVING:
            known = shelf.required(row)
            for other in shelf.same_object(row):
                reads = shelf.names[other].act == "read" and shelf.names[other].object == name.object
                if reads and shelf.tools[other].agent == shelf.tools[row].agent and shelf.required(other) <= known:
                    yield Hint(row, other, None, _STATE, False, "it tells what this tool changes")


def named(shelf: Shelf) -> Iterator[Hint]:
    """A tool whose description names another tool of its system, except as an alternative, needs it."""
    rows = {
        (shelf.systems[row], tool.name.casefold()): row
        for row, tool in enumerate(shelf.tools)
        if _COMPOSED.search(tool.name)
    }
    if not rows:
        return
    for row, tool in enumerate(shelf.tools):
        for parameter, needed, text in _texts(tool):
            for sentence in _SENTENCE.split(shown(text)):
                for word in dict.fromkeys(_WORD.findall(sentence.casefold())):
                    other = rows.get((shelf.systems[row], word))
                    if other is not None and other != row and not _OTHERWISE.search(sentence):
                        quote = " ".join(sentence.split())[:_QUOTED]
                        direct = needed and bool(parameter or _NEEDED.search(sentence))
                        yield Hint(row, other, parameter, _NAMED, direct, f"its description names it: {quote!r}")


def _texts(tool: Tool) -> Iterable[tuple[str | None, bool, str]]:
    yield None, True, tool.description
    for field in fields_of(tool.input_schema):
        yield ".".join(field.path), field.required, field.description


RULES: tuple[Callable[[Shelf], Iterator[Hint]], ...] = (sessions, checks, lookups, records, parts, states, named)
