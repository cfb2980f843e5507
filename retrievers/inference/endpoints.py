"""The inputs and outputs of tools, both ends of possible dependencies, and which tools are called for identifiers."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import Tool, shown, split_name
from callsheet.graphs.text.json_schema import Field, fields_of
from callsheet.retrievers.index.lexical_index import inverse_frequency
from callsheet.retrievers.index.node_texts import first_sentence
from callsheet.retrievers.inference.word_roles import (
    CALLER,
    FINDING,
    FREE,
    GENERIC,
    ID,
    IDENTIFIER,
    OWN,
    PAGE_ENDS,
    PAGING,
    RECORD_ID,
    SEARCHING,
    VAGUE,
    Name,
    head_of,
    name_of,
    stems,
    stems_in,
)

Floats = NDArray[np.float32]
Source = Literal["output", "name", "returns"]
_MAX_TEXT, _CLAUSE = 160, 16
_GENERIC_WEIGHT, _EXTRA = 0.35, 0.4
_RELATED, _LISTED = 0.8, 0.9
_COMMON, _FEW = 0.9, 5
_RETURNS = re.compile(r"\b(?:returns?|outputs?|yields?|provides?)\b:?\s+([^.;\n]{3,160})", re.IGNORECASE)
_LINK = re.compile(r"\[([^\]\[]{0,160})\]\([^)\s]{0,400}\)")
_NAMING = IDENTIFIER | stems("name")
_PLAIN = GENERIC | stems("address")
NUMBERS = frozenset({"number", "integer", "int", "float"})
"""Types of numbers in JSON Schema, and other common names."""


@dataclass(frozen=True, slots=True)
class Ask:
    """An argument of a tool, as in ``Field``.

    Attributes:
        tool: Row of the tool.
        parameter: Names from the root of the schema to the argument, joined by dots.
        words: The stems that name the value; if its own name is generic, with the stems of its parent.
        text: The name in plain words, with the description.
        identifier: Whether it is an identifier, which people rarely know.
        worth: Probability that its value comes from a tool, 0 to 1.
        head: The stem of the last specific word of its own name; empty if there is none.
    """

    tool: int
    parameter: str
    words: frozenset[str]
    text: str
    types: frozenset[str]
    required: bool
    identifier: bool
    worth: float
    head: str = ""

    @property
    def specific(self) -> frozenset[str]:
        """Its words that are not generic."""
        return frozenset(word for word in self.words - GENERIC if len(word) > 1)

    @property
    def elsewhere(self) -> float:
        """Probability that a tool of another agent can provide the value, 0 to 1; ids usually belong to one system."""
        if self.identifier:
            return 0.6 if self.head else 0.45
        return 0.8 if len(self.specific) > 1 else 0.45


@dataclass(frozen=True, slots=True)
class Give:
    """A value in the result of a tool; words and text as in ``Ask``, types and many as in ``Field``.

    Attributes:
        tool: Row of the tool.
        field: Names from the root of the output schema to the value, joined by dots; empty if not from a schema.
        record: For a generic name, the stem of the last word of its parent's: ``type`` of ``server_types.id``.
        borrowed: Words that may not belong to the value, if the field's own name is generic: those of the tool's name,
            or those before the last word of its parent's name, as ``production`` of ``production_companies.id``.
    """

    tool: int
    field: str
    words: frozenset[str]
    text: str
    types: frozenset[str]
    source: Source
    many: bool = False
    record: frozenset[str] = frozenset()
    borrowed: frozenset[str] = frozenset()

    def among(self, known: frozenset[str]) -> Give:
        """The same without unknown borrowed words, such as ``popular`` of ``list_popular_movies``."""
        return replace(self, words=self.words - (self.borrowed - known))


def asks_of(row: int, tool: Tool, records: Collection[frozenset[str]] = ()) -> Iterator[Ask]:
    """The inputs of a tool, without those that only its caller can choose; ``records`` as in ``Name.container``."""
    name, fields = name_of(tool.name), fields_of(tool.input_schema)
    ids = (stems(field.name) for field in fields if field.required and len(field.path) == 1)
    named = frozenset(word for words in ids if words & IDENTIFIER for word in words - GENERIC)
    holder = name.container(named, records)
    owner = replace(name, phrase=holder, object=stems(holder))
    for field in fields:
        own = stems(field.name)
        if not field.closed and not (own and own <= PAGING):
            yield _ask(row, field, name, owner)


def _ask(row: int, field: Field, name: Name, owner: Name) -> Ask:
    bare = field.required and len(field.path) == 1 and stems(field.name) <= IDENTIFIER
    words, phrase = _qualified(field, owner if bare else name)
    if words & ID and "or" in split_name(field.name).split():
        words -= RECORD_ID - ID  # an id or a slug: either is enough
    ask = Ask(
        tool=row,
        parameter=".".join(field.path),
        words=words,
        text=": ".join(filter(None, (phrase, _description(field)))),
        types=field.types,
        required=field.required,
        identifier=bool(words & IDENTIFIER),
        worth=1.0,
        head=next((stem for word in reversed(split_name(field.name).split()) for stem in stems(word) - _PLAIN), ""),
    )
    return replace(ask, worth=_worth(ask, field, name))


def _worth(ask: Ask, field: Field, name: Name) -> float:
    """Probability that the value comes from a tool: lower for options, free text, quantities, defaults, new values."""
    worth = (1.0 if field.required else 0.8) * (0.7 if field.default else 1.0)
    if not ask.specific:
        return 0.3 * worth
    is_new = name.act == "store" and ask.specific <= name.object
    if is_new and not (ask.identifier and ask.required):
        worth *= 0.4  # the name of a new object cannot be looked up
    if ask.identifier and (field.required or ask.words & ID):
        return worth
    if stems(field.name) & FREE:
        worth *= 0.5
    if ask.types and ask.types <= NUMBERS:
        worth *= 0.65
    if not field.required and (name.act in ("store", "change") or len(field.path) > 1):
        worth *= 0.5  # what the caller wants it to be
    elif name.act == "store":
        worth *= 0.8
    return worth * (0.85 if len(ask.specific) == 1 else 0.95)


def gives_of(row: int, tool: Tool) -> Iterator[Give]:
    """The outputs of a tool, from its output schema, its name, and "returns" in its description."""
    name = name_of(tool.name)
    for field in fields_of(tool.output_schema or {}):
        words, phrase = _qualified(field, name)
        own = stems(field.name)
        if not field.closed and words - GENERIC and not _pages(own) and not own <= GENERIC - _NAMING:
            text = ": ".join(filter(None, (phrase, _description(field))))
            holder = phrase.removesuffix(split_name(field.name)).strip()
            last = stems(holder.rpartition(" ")[2])
            certain = own | (frozenset() if holder == name.phrase else last)
            borrowed, record = (words - certain, last - own - VAGUE) if words != own else (frozenset(), frozenset())
            yield Give(row, ".".join(field.path), words, text, field.types, "output", field.many, record, borrowed)
    sentence = first_sentence(tool.description)[:_MAX_TEXT]
    yield Give(row, "", name.object, f"{split_name(tool.name)}: {sentence}", frozenset(), "name")
    if match := _RETURNS.search(shown(tool.description)):
        clause = " ".join(match.group(1).split()[:_CLAUSE])
        yield Give(row, "", stems_in(clause), clause, frozenset(), "returns")


def _pages(own: frozenset[str]) -> bool:
    """Whether the stems name where a page of the result begins or ends: ``last_id``."""
    return bool(own & IDENTIFIER and own & PAGE_ENDS and own <= IDENTIFIER | PAGE_ENDS)


def _qualified(field: Field, name: Name) -> tuple[frozenset[str], str]:
    """The stems that name a value, and the name in plain words.

    A generic name (``id``, ``name``) follows that of its parent, or the object of the tool; of that, only the words in
    the description, if there are any.
    """
    own, plain = stems(field.name), split_name(field.name)
    if not own <= GENERIC or not own & _NAMING:
        return own, plain
    for holder in reversed(field.path[:-1]):
        if not (words := stems(holder)) <= GENERIC:
            return words | own, f"{split_name(holder)} {plain}"
    shared = (stems_in(_description(field)) & name.object) - GENERIC
    phrase = " ".join(word for word in name.phrase.split() if not shared or stems(word) & shared)
    return (shared or name.object) | own, f"{phrase} {plain}".strip()


def _description(field: Field) -> str:
    return _LINK.sub(r"\1", shown(field.description)).strip()[:_MAX_TEXT]


class Terms:
    """Weights of words: higher for rare words, lower for generic ones.

    ::

        weight(w) = (log(1 + (N - n(w) + .5) / (n(w) + .5)) * (.35 if w is generic else 1)) ** power

    Args:
        documents: The words of each of the N texts.
        power: 1 for names; less for texts, whose common words count too.
    """

    def __init__(self, documents: Sequence[Iterable[str]], power: float = 1.0) -> None:
        self._count, self._power = len(documents), power
        self._frequency = Counter(word for words in documents for word in set(words))

    def weight(self, word: str) -> float:
        """The weight of one word."""
        rarity = inverse_frequency(self._frequency[word], self._count)
        return float((rarity * (_GENERIC_WEIGHT if word in GENERIC else 1.0)) ** self._power)

    def mass(self, words: Iterable[str]) -> float:
        """The sum of the squared weights."""
        return sum(self.weight(word) ** 2 for word in words)


class Postings:
    """Sets of words for comparison with other sets."""

    def __init__(self, sets: Sequence[frozenset[str]], terms: Terms) -> None:
        self._terms = terms
        self._masses = np.array([terms.mass(words) for words in sets], np.float32)
        lengths = np.sqrt(self._masses)
        self._scales: Floats = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        rows: defaultdict[str, list[int]] = defaultdict(list)
        for row, words in enumerate(sets):
            for word in words:
                rows[word].append(row)
        self._rows: Mapping[str, NDArray[np.intp]] = {word: np.array(places, np.intp) for word, places in rows.items()}

    def shared(self, words: Iterable[str]) -> NDArray[np.bool_]:
        """``(n,)``: whether each set has one of these words."""
        found = np.zeros(len(self._masses), bool)
        for word in words:
            found[self._rows.get(word, [])] = True
        return found

    def fit(self, words: frozenset[str]) -> Floats:
        """How well each set matches these words.

        ::

            fit = shared / (shared + missing + .4 * extra), each the sum of squared weights

        Source: Tversky, Features of Similarity (1977), the ratio model with alpha = 1, beta = .4.

        Returns:
            ``(n,)``, 0 to 1.
        """
        shared = self._shared(words)
        whole = shared + (self._terms.mass(words) - shared) + _EXTRA * (self._masses - shared)
        fit: Floats = np.divide(shared, whole, out=np.zeros_like(shared), where=whole > 0)
        return fit

    def cosine(self, words: frozenset[str]) -> Floats:
        """The cosine of the weights of each set and of these words: ``(n,)``, 0 to 1."""
        shared = self._shared(words)
        shared *= self._scales / np.float32(math.sqrt(self._terms.mass(words)) or 1)
        return shared

    def _shared(self, words: frozenset[str]) -> Floats:
        shared = np.zeros(len(self._masses), np.float32)
        for word in words:
            if word in self._rows:
                shared[self._rows[word]] += np.float32(self._terms.weight(word) ** 2)
        return shared


class Access:
    """What the tools of a catalog need, by row of the tool.

    Attributes:
        ids: Row -> the words of each identifier that it requires, but for those that nearly all require.
        finds: ``(n,)``: whether a tool finds records by what people know, such as a name, or because they are theirs.
        makes: ``(n,)``: whether a tool makes records, whose identifiers it returns.
        worth: ``(n,)``: factor for the confidence that a tool is called to get an identifier: 1 for a tool that finds,
            .9 for one that lists, .8 for one that needs another identifier.
        names: The words in the name of each tool.
        heads: The last specific noun in the name of each tool.
        found: System -> the words in the names of its tools that find.
    """

    def __init__(self, ends: Ends) -> None:
        self.systems = ends.systems
        ids: defaultdict[int, set[frozenset[str]]] = defaultdict(set)
        self.finds = np.zeros(len(ends.tools), bool)
        common = _common(ends.asks, self.systems)
        for ask in ends.asks:
            if ask.required and ask.identifier and (self.systems[ask.tool], ask.words) not in common:
                ids[ask.tool].add(ask.words)
            self.finds[ask.tool] |= ask.required and bool(ask.words & FINDING)
        self.ids = {row: frozenset(words) for row, words in ids.items()}
        self.found: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
        for row, name in enumerate(ends.names):
            self.finds[row] |= bool(name.words & (SEARCHING | OWN)) or name.words >= CALLER
            self.finds[row] &= name.act in ("read", "compute") and row not in ids
            if self.finds[row]:
                self.found[self.systems[row]] |= name.words
        self.worth = np.where(self.finds, 1.0, _LISTED).astype(np.float32)
        self.worth[list(ids)] = _RELATED
        self.makes = np.array([name.act == "store" for name in ends.names], bool)
        self.names = [name.words for name in ends.names]
        self.heads = [head_of(tool.name) for tool in ends.tools]
        self._finders: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for row in np.flatnonzero(self.finds).tolist():
            for word in self.names[row]:
                self._finders[self.systems[row], word].append(row)

    def sources(self, ask: Ask, tools: Sequence[int], lists: Collection[int] = ()) -> set[int]:
        """Those of the tools whose results fit an input that are called to get it.

        If a tool needs only other identifiers of the same call, as the show of a season, only such tools are sources of
        what the call requires, unless none of them lists records and another tool reads what the identifier names. If a
        tool of the system finds records by what people know, those that only list such records are not, nor are
        those that need the same identifier, or one whose records no tool finds. If none finds them, but one reads what
        the identifier names, as ``get_users`` for ``user_id``, those that only hold it are not. If a tool reaches
        such records by other identifiers, a tool for something else that takes no identifier is not.
        ``lists`` are those whose fitting value is in a list.
        """
        parents = {tool for tool in tools if self.is_parent(tool, ask)}
        free = any(not self.makes[tool] for tool in self._about(ask, tools))
        if parents and ask.required and (parents & {*lists} or not free):
            return parents
        if ask.identifier and (best := self._readers(ask, tools)):
            return {tool for tool in tools if tool in best or self.makes[tool] or self._is_near(tool, ask)}
        if ask.identifier and any(self._is_near(tool, ask) for tool in tools):
            return {tool for tool in tools if tool in self.ids or self.names[tool] & ask.specific}
        return set(tools)

    def is_parent(self, tool: int, ask: Ask) -> bool:
        """Whether a tool needs only other identifiers of the same call, at least one."""
        return tool in self.ids and self.ids[tool] <= self.ids.get(ask.tool, frozenset()) - {ask.words}

    def _readers(self, ask: Ask, tools: Sequence[int]) -> set[int]:
        """Those of the tools that find records, or else that read what an identifier names without another one."""
        found = {tool for tool in tools if self.finds[tool]}
        if any(self.systems[tool] == self.systems[ask.tool] for tool in found):
            return found
        about = self._about(ask, tools)
        read = any(self.systems[tool] == self.systems[ask.tool] and not self.makes[tool] for tool in about)
        return found | about if read else set()

    def _about(self, ask: Ask, tools: Sequence[int]) -> set[int]:
        """The tools that need no identifier and whose main noun is the identifier's record."""
        return {tool for tool in tools if self.heads[tool] & ask.words and tool not in self.ids}

    def finders(self, system: str, words: frozenset[str]) -> list[int]:
        """Rows of the tools of a system that find records with these words."""
        rows = min((self._finders.get((system, word), []) for word in words), key=len)
        return [row for row in rows if words <= self.names[row]]

    def _is_near(self, tool: int, ask: Ask) -> bool:
        """Whether a tool needs other identifiers only, and those of records that a tool of its system finds."""
        needed = self.ids.get(tool, frozenset())
        found = self.found[self.systems[tool]]
        return bool(needed) and ask.words not in needed and all(words & found - IDENTIFIER for words in needed)


def _common(asks: Sequence[Ask], systems: Sequence[str]) -> set[tuple[str, frozenset[str]]]:
    """System and words of identifiers that nearly all of its tools require, as a tenant: they tell no records apart."""
    tools = Counter(systems)
    needed = Counter({(systems[ask.tool], ask.words, ask.tool) for ask in asks if ask.required and ask.identifier})
    counts = Counter((system, words) for system, words, _ in needed)
    return {key for key, count in counts.items() if count > _FEW and count > _COMMON * tools[key[0]]}


@dataclass(frozen=True, slots=True)
class Hint:
    """Evidence that one tool needs another.

    Attributes:
        source: Row of the tool that needs the other.
        target: Row of the needed tool.
        parameter: The argument concerned; None if the hint concerns the whole call.
        confidence: Probability that the edge is right, 0 to 1.
        direct: Whether the source can hardly work without the target.
        evidence: Reason in one line.
    """

    source: int
    target: int
    parameter: str | None
    confidence: float
    direct: bool
    evidence: str


@dataclass(frozen=True)
class Ends:
    """The inputs and outputs of all tools of a catalog.

    Attributes:
        tools: The tools; rows are indexes of this sequence.
        systems: The system of each tool: its API if that is split into several agents, else its agent.
        gives: Their outputs, by tool; of output fields, only those that share a specific word with an input.
        trusted: Ids of the agents on whose tools those of other systems may depend; None: all.
    """

    tools: Sequence[Tool]
    systems: Sequence[str]
    asks: Sequence[Ask]
    gives: Sequence[Give]
    terms: Terms
    trusted: Collection[str] | None = None

    def may_use(self, source: int, target: int) -> bool:
        """Whether a tool may depend on another one: of its system, or of a trusted agent."""
        same = self.systems[source] == self.systems[target]
        return same or self.trusted is None or self.tools[target].agent in self.trusted

    @cached_property
    def names(self) -> Sequence[Name]:
        """The parts of the tools' names."""
        return [name_of(tool.name) for tool in self.tools]

    @cached_property
    def access(self) -> Access:
        """What the tools need."""
        return Access(self)

    @classmethod
    def of(
        cls,
        tools: Sequence[Tool],
        systems: Mapping[str, str] | None = None,
        trusted: Collection[str] | None = None,
    ) -> Ends:
        """Derives them from names, schemas and descriptions; ``systems`` has those of agents."""
        names = [name_of(tool.name) for tool in tools]
        records = {name.object - GENERIC for name in names if name.act == "read"}
        asks = [ask for row, tool in enumerate(tools) for ask in asks_of(row, tool, records)]
        specific = frozenset(word for ask in asks for word in ask.specific)
        gives = [
            give.among(specific)
            for row, tool in enumerate(tools)
            for give in gives_of(row, tool)
            if give.source != "output" or give.words & specific
        ]
        system_of = [(systems or {}).get(tool.agent, tool.agent) for tool in tools]
        return cls(tools, system_of, asks, gives, Terms([name.words for name in names]), trusted)
