"""Matches the inputs of tools with the outputs of tools by their words; tells tools that find a record from others."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import Tool
from callsheet.retrievers.inference.access import Access
from callsheet.retrievers.inference.endpoints import Ask, Give, asks_of, gives_of
from callsheet.retrievers.inference.output_columns import Columns, part_of
from callsheet.retrievers.inference.term_similarity import Floats, Postings, Terms
from callsheet.retrievers.inference.word_roles import GENERIC, RECORD_ID, head_of, name_of, stems, stems_in

_WORDS, _ALIKE, _CONTEXT = 0.5, 0.1, 0.1
_WIDTH, _TEXT_POWER = 0.12, 0.5
_OWN = 0.5  # for a value of a new record, from one of the same kind
_FOREIGN = 0.6  # for a value that a record of another kind holds
_ANOTHER = 0.5  # for the identifier of a record with another name
_WEAK = 0.5  # for a value of another record, and for a record that is read by its own identifier, beside others
_SAME, _NAMED = 0.999, 0.1  # for a field with the same words in the records that a tool reads, whatever the texts say
_MARGIN, _MOST, _INSPECTED = 0.08, 3, 300


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
    """

    tools: Sequence[Tool]
    systems: Sequence[str]
    asks: Sequence[Ask]
    gives: Sequence[Give]
    terms: Terms

    @cached_property
    def access(self) -> Access:
        """What the tools need."""
        return Access.of(self.tools, self.asks, self.systems)

    @classmethod
    def of(cls, tools: Sequence[Tool], systems: Mapping[str, str] | None = None) -> Ends:
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
        return cls(tools, system_of, asks, gives, Terms([name_of(tool.name).words for tool in tools]))


def matches(ends: Ends, *, least: float) -> list[Hint]:
    """The tools whose outputs match the inputs of tools.

    ::

        score      = cos(ask, give) + .5 * fit of their words + .1 * similarity of the tools' names
                     + .1 if the tool needs no input
        confidence = worth of the ask * part of the tool * 1 / (1 + exp((even - score) / .12))

    where ``even`` depends on the source of the output, and the part is less for tools that change things, that
    need the same value as input, or that belong to another system, for an identifier of a record with other words or
    in a record of another kind, and for a value of a new record from one of its kind. ``output_columns`` has the
    factors for kinds of values. The cosine is that of the words of both texts.

    Not every tool that returns an identifier is called to get it: see ``Access.sources``.

    Returns:
        For each input at most three tools.
    """
    match = _Match(ends, least)
    return [hint for ask in match.asks for hint in match.hints(ask)]


class _Match:
    """The arrays for the comparison, without inputs and outputs that cannot reach the minimum confidence."""

    def __init__(self, ends: Ends, least: float) -> None:
        self.least = least
        self.asks = [ask for ask in ends.asks if ask.worth >= least]
        self.gives = [give for give in ends.gives if part_of(give, ends.tools[give.tool]) >= least]
        self.columns = Columns.of(self.gives, ends.tools)
        self.words = Postings([give.words for give in self.gives], ends.terms)
        heads = [head_of(ends.tools[give.tool].name) for give in self.gives]
        self.heads = Postings(heads, ends.terms)
        named = [give.source == "name" and bool(head) for give, head in zip(self.gives, heads, strict=True)]
        self.named = np.array(named, bool)
        self.records = Postings([give.record for give in self.gives], ends.terms)
        self.of_record = np.array([bool(give.record) for give in self.gives], bool)
        self.own_words = [name_of(tool.name).words for tool in ends.tools]
        self.names = Postings(self.own_words, ends.terms)
        objects = [(system, name_of(tool.name).object) for system, tool in zip(ends.systems, ends.tools, strict=True)]
        numbers = {thing: i for i, thing in enumerate(dict.fromkeys(objects))}
        self.object = np.array([numbers[thing] for thing in objects], np.intp)
        heads_of = {row: head_of(tool.name) for row, tool in enumerate(ends.tools)}
        records = frozenset(word for words in heads_of.values() for word in words)
        self.mentions = [
            ((stems(give.field.rpartition(".")[2]) - GENERIC) & records) - heads_of[give.tool]
            if give.source == "output"
            else frozenset()
            for give in self.gives
        ]
        self.required: defaultdict[int, frozenset[str]] = defaultdict(frozenset)
        for ask in ends.asks:
            self.required[ask.tool] |= ask.specific if ask.required else frozenset()
        systems = {system: i for i, system in enumerate(dict.fromkeys(ends.systems))}
        self.system = np.array([systems[system] for system in ends.systems], np.intp)
        self.alone = np.bincount(self.system, minlength=1)[self.system] == 1
        askers: defaultdict[tuple[frozenset[str], bool], list[int]] = defaultdict(list)
        for ask in ends.asks:
            askers[ask.words, ask.required].append(ask.tool)
        self.access = ends.access
        self.askers = {key: np.array(rows, np.intp) for key, rows in askers.items()}
        texts = [stems_in(give.text) for give in self.gives]
        self.texts = Postings(texts, Terms(texts, power=_TEXT_POWER))

    def hints(self, ask: Ask) -> Iterator[Hint]:
        """The likeliest outputs of different tools for one input."""
        rows, scores, confidence = self._likely(ask)
        order = np.argsort(-confidence, kind="stable")[:_INSPECTED]
        near = rows[order]
        lists = self.columns.tool[near[self.columns.many[near]]].tolist()
        sources = self.access.sources(ask, self.columns.tool[near].tolist(), lists)
        tops: dict[bool, float] = {}
        count = 0
        for i in order.tolist():
            row, score = int(rows[i]), float(scores[i])
            tool, made = int(self.columns.tool[row]), bool(self.columns.made[row])
            if count == _MOST:
                return
            if tool not in sources:
                continue
            if not self.columns.output[row] and score < tops.setdefault(made, score) - _MARGIN:
                continue
            sources.remove(tool)
            count += 1
            new = bool(self.access.makes[tool]) and self.object[tool] == self.object[ask.tool]
            direct = ask.required and not new  # nobody makes a record to change it
            yield Hint(ask.tool, tool, ask.parameter, float(confidence[i]), direct, _why(ask, self.gives[row]))

    def _likely(self, ask: Ask) -> tuple[NDArray[np.intp], Floats, Floats]:
        """Rows of the outputs with at least the minimum confidence, with score and confidence."""
        columns = self.columns
        fit = self.words.fit(ask.words)
        plain = self.texts.cosine(stems_in(ask.text)) + _WORDS * fit
        if ask.identifier and ask.specific and ask.words & RECORD_ID:
            same = (fit > _SAME) & columns.of_sort[RECORD_ID] & columns.output & self.heads.shared(ask.words)
            plain = np.where(same, np.maximum(plain, columns.even + _NAMED), plain)
        bound = columns.even + _WIDTH * math.log(self.least / (1 - self.least)) - _ALIKE - _CONTEXT
        near = np.flatnonzero((plain >= bound) & (columns.tool != ask.tool))
        alike = self.names.cosine(self.own_words[ask.tool])[columns.tool[near]]
        scores = (plain[near] + _ALIKE * alike + _CONTEXT * columns.context[near]).astype(np.float32)
        confidence = ask.worth * columns.part[near] / (1 + np.exp((columns.even[near] - scores) / _WIDTH))
        if ask.identifier:
            confidence *= columns.sorts(ask, near) * self.access.worth[columns.tool[near]]
            if ask.specific:
                confidence[self._about_another(ask)[near]] *= _ANOTHER
            if ask.words & RECORD_ID:
                confidence[self._foreign(ask, near, confidence >= self.least)] *= _FOREIGN
        else:
            confidence *= columns.kinds(ask, near)
        weak = [*(() if ask.identifier else self._of_others(ask, near)), *self._circular(ask, near)]
        if (np.delete(confidence, weak) >= self.least).any():
            confidence[weak] *= _WEAK
        if self.access.makes[ask.tool] and not ask.words & RECORD_ID:
            others = self.object[columns.tool[near]] != self.object[ask.tool]
            confidence *= np.where(others, 1, _OWN)
        confidence = (confidence * self._echo(ask, near) * self._near_by(ask, near)).astype(np.float32)
        sufficient = confidence >= self.least
        return near[sufficient], scores[sufficient], confidence[sufficient]

    def _about_another(self, ask: Ask) -> NDArray[np.bool_]:
        """``(n,)``: whether an output, or the last noun of a tool's name, is of a record with other words."""
        words = ask.specific
        other = ~self.words.shared(words) | (self.of_record & ~self.records.shared(ask.words))
        return np.where(self.columns.output, other, self.named & ~self.heads.shared(ask.words))

    def _foreign(self, ask: Ask, near: NDArray[np.intp], likely: NDArray[np.bool_]) -> list[int]:
        """Places in ``near`` of likely identifiers in records of another kind, except in what the call itself names."""
        held = (self.columns.foreign & ~self.heads.shared(ask.words))[near]
        tools = self.columns.tool[near]
        return [i for i in np.flatnonzero(held & likely).tolist() if not self.access.is_parent(int(tools[i]), ask)]

    def _of_others(self, ask: Ask, near: NDArray[np.intp]) -> list[int]:
        """Places in ``near`` of values of other records than the tool's own: ``repo_owner_name`` of a stopwatch."""
        return [i for i, row in enumerate(near.tolist()) if self.mentions[row] - ask.words]

    def _circular(self, ask: Ask, near: NDArray[np.intp]) -> list[int]:
        """Places in ``near`` of tools that take a record by its identifier, if the call names the record otherwise."""
        tools = self.columns.tool[near].tolist()
        known, own = self.required[ask.tool], self.access.ids.get(ask.tool, frozenset())
        found = {
            tool: any(
                words & RECORD_ID and words & known & self.access.heads[tool]
                for words in self.access.ids.get(tool, frozenset()) - own
            )
            for tool in {*tools}
        }
        return [i for i, tool in enumerate(tools) if found[tool]]

    def _echo(self, ask: Ask, near: NDArray[np.intp]) -> Floats:
        """A factor below 1 for a tool that takes the same input, unless it returns a list of records with their own."""
        factor = np.ones(len(near), np.float32)
        for required, value in ((False, 0.5), (True, 0.3)):
            if (askers := self.askers.get((ask.words, required))) is not None:
                listed = (self.columns.many & ~self.columns.foreign)[near] & ask.identifier
                tools = self.columns.tool[near]
                found = askers[np.minimum(np.searchsorted(askers, tools), len(askers) - 1)]  # they are in order
                factor[(found == tools) & ~listed] = value
        return factor

    def _near_by(self, ask: Ask, near: NDArray[np.intp]) -> Floats:
        """A factor below 1 for a tool of another system, unless the system of the input has only one tool."""
        if self.alone[ask.tool]:
            return np.ones(len(near), np.float32)
        elsewhere = self.system[self.columns.tool[near]] != self.system[ask.tool]
        return np.where(elsewhere, ask.elsewhere, 1).astype(np.float32)


def _why(ask: Ask, give: Give) -> str:
    match give.source:
        case "output":
            return f"its result holds {give.field}, which fits {ask.parameter}"
        case "returns":
            return f"it says that it returns {give.text[:80]!r}, which fits {ask.parameter}"
        case _:
            return f"its name and description fit {ask.parameter}"
