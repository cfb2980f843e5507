"""Matches the inputs of tools with the outputs of tools by their words; tells tools that find a record from others."""

from __future__ import annotations

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import Tool, shown
from callsheet.retrievers.inference.endpoints import (
    NUMBERS,
    Ask,
    Ends,
    Floats,
    Give,
    Hint,
    Postings,
    Source,
    Terms,
)
from callsheet.retrievers.inference.word_roles import (
    GENERIC,
    LOCATOR,
    RECORD_ID,
    TIMES,
    Act,
    name_of,
    stems,
    stems_in,
)

_WORDS, _ALIKE, _CONTEXT = 0.5, 0.1, 0.1
_WIDTH, _TEXT_POWER = 0.12, 0.5
_OWN = 0.5  # for a value of a new record, from one of the same kind
_FOREIGN = 0.6  # for a value that a record of another kind holds
_ANOTHER = 0.5  # for the identifier of a record with another name
_WEAK = 0.5  # for a value of another record, and for a record that is read by its own identifier, beside others
_SAME, _NAMED = 0.999, 0.1  # for a field with the same words in the records that a tool reads, whatever the texts say
_MARGIN, _MOST, _INSPECTED = 0.08, 3, 300
_CANDIDATES, _COMPARISONS, _NAMED_AGENTS = 200, 400_000_000, 5
_LOG = logging.getLogger(__name__)
Flags = NDArray[np.bool_]
EVEN: Mapping[Source, float] = {"output": 0.9, "returns": 0.8, "name": 0.65}
"""The score at which a match has an even chance, before other factors."""
PART: Mapping[Act, float] = {"change": 0.3, "use": 0.3, "check": 0.2, "enter": 0.2, "": 0.8}
"""Probability that a tool with this act is called for the value in its name; 1 for other acts."""


class Columns:
    """The outputs of tools as arrays of ``(n,)``, one row per output."""

    def __init__(self, gives: Sequence[Give], tools: Sequence[Tool]) -> None:
        acts = [name_of(tools[give.tool].name).act for give in gives]
        free = flags(not tools[give.tool].input_schema.get("required") for give in gives)
        self.tool = np.array([give.tool for give in gives], np.intp)
        self.output = flags(give.source == "output" for give in gives)
        self.told = flags(give.source == "returns" for give in gives)
        self.many = flags(give.many for give in gives)  # in a list
        self.number = flags(bool(give.types) and give.types <= NUMBERS | {"boolean"} for give in gives)
        self.within = flags(map(_is_within, gives))
        # An output field that names more than itself, as ``author_id`` of a book, not ``id``.
        self.foreign = flags(bool(stems(give.field.rpartition(".")[2]) - GENERIC) for give in gives)
        self.count = flags("number of " in give.text for give in gives) & self.output
        # Only from the name or description of a tool that makes something, or that reads and needs no input.
        self.made = flags(act == "store" for act in acts) & ~self.output
        self.context = flags(act == "read" for act in acts) & free & ~self.output
        self.even = np.array([EVEN[give.source] for give in gives], np.float32)
        self.part = np.array([part_of(give, tools[give.tool]) for give in gives], np.float32)
        self.of_sort = {sort: flags(bool(give.words & sort) for give in gives) for sort in (RECORD_ID, LOCATOR)}

    def sorts(self, ask: Ask, rows: NDArray[np.intp]) -> Floats:
        """Half for a result that is another kind of identifier than the input, such as a path for an id.

        A described result need not name the identifiers of its records.
        """
        factor = np.ones(len(rows), np.float32)
        for sort, of_sort in self.of_sort.items():
            if ask.words & sort:
                named = self.output[rows] | (self.told[rows] & (sort is LOCATOR))
                factor[named & ~of_sort[rows]] = 0.5
        return factor

    def kinds(self, ask: Ask, rows: NDArray[np.intp]) -> Floats:
        """Less for values of tools that make something, for a number if the input is a text, and for counts.

        People say times, and the number of a part of a record, as a season of a show: these are rarely looked up in
        records.
        """
        factor = np.where(self.made[rows], 0.3, 1).astype(np.float32)
        if ask.words & RECORD_ID:
            factor[self.count[rows]] *= 0.5
        if ask.types and not ask.types & (NUMBERS | {"boolean"}):
            factor[self.number[rows]] *= 0.5
        if ask.words & TIMES:
            factor[self.output[rows]] *= 0.5
        if ask.types and ask.types <= NUMBERS:
            factor[self.within[rows]] *= 0.5
        return factor


def flags(values: Iterable[bool]) -> Flags:
    """``(n,)`` of these values."""
    return np.array([*values], bool)


def _is_within(give: Give) -> bool:
    """Whether it is a list or an object, or in a list of a record, such as the seasons of a show."""
    holders = give.field.split(".")[:-1]
    listed = give.many and any(stems(holder) - GENERIC for holder in holders)
    return listed or (bool(give.types) and give.types <= {"array", "object"})


def part_of(give: Give, tool: Tool) -> float:
    """Probability that a tool is called for this output, 0 to 1; less if it mainly does something else."""
    name = name_of(tool.name)
    if give.source == "output":
        incidental = name.act == "store" and not give.words & name.words
        effect = not name.act and tool.annotations.get("readOnlyHint") is False
        return 0.7 if name.act in ("change", "use") or incidental or effect else 1.0
    return PART.get(name.act, 1.0) * (0.85 if give.source == "returns" else 1.0)


def matches(ends: Ends, *, least: float) -> list[Hint]:
    """The tools whose outputs match the inputs of tools.

    ::

        score      = cos(ask, give) + .5 * fit of their words + .1 * similarity of the tools' names
                     + .1 if the tool needs no input
        confidence = worth of the ask * part of the tool * 1 / (1 + exp((even - score) / .12))

    where ``even`` depends on the source of the output, and the part is less for tools that change things, that
    need the same value as input, or that belong to another system, for an identifier of a record with other words or
    in a record of another kind, and for a value of a new record from one of its kind. ``Columns`` has the
    factors for kinds of values. The cosine is that of the words of both texts.

    Not every tool that returns an identifier is called to get it: see ``Access.sources``.

    Returns:
        For each input at most three tools. The inputs share a budget of comparisons: beyond it, those of the agents
        with the most inputs are left out, which is logged.
    """
    match = _Match(ends, least)
    return [hint for ask in match.affordable() for hint in match.hints(ask)]


class _Match:
    """The arrays for the comparison, without inputs and outputs that cannot reach the minimum confidence."""

    def __init__(self, ends: Ends, least: float) -> None:
        self.least, self.tools = least, ends.tools
        self.asks = [ask for ask in ends.asks if ask.worth >= least]
        self.gives = [give for give in ends.gives if part_of(give, ends.tools[give.tool]) >= least]
        self.columns = Columns(self.gives, ends.tools)
        self.words = Postings([give.words for give in self.gives], ends.terms)
        self.access, heads = ends.access, ends.access.heads
        self.heads = Postings([heads[give.tool] for give in self.gives], ends.terms)
        self.named = flags(give.source == "name" and bool(heads[give.tool]) for give in self.gives)
        self.records = Postings([give.record for give in self.gives], ends.terms)
        self.of_record = flags(bool(give.record) for give in self.gives)
        self.own_words = ends.access.names
        self.names = Postings(self.own_words, ends.terms)
        self.object = _numbered((system, name.object) for system, name in zip(ends.systems, ends.names, strict=True))
        records = frozenset(word for words in heads for word in words)
        self.mentions = [
            ((stems(give.field.rpartition(".")[2]) - GENERIC) & records) - heads[give.tool]
            if give.source == "output"
            else frozenset()
            for give in self.gives
        ]
        self.required: defaultdict[int, frozenset[str]] = defaultdict(frozenset)
        for ask in ends.asks:
            self.required[ask.tool] |= ask.specific if ask.required else frozenset()
        self.system = _numbered(ends.systems)
        self.trusted = flags(ends.trusted is None or tool.agent in ends.trusted for tool in ends.tools)
        self.alone = np.bincount(self.system, minlength=1)[self.system] == 1
        askers: defaultdict[tuple[frozenset[str], bool], list[int]] = defaultdict(list)
        for ask in ends.asks:
            askers[ask.words, ask.required].append(ask.tool)
        self.askers = {key: np.array(rows, np.intp) for key, rows in askers.items()}
        texts = [stems_in(give.text) for give in self.gives]
        self.texts = Postings(texts, Terms(texts, power=_TEXT_POWER))

    def affordable(self) -> Sequence[Ask]:
        """The inputs, as far as the budget of comparisons goes; the agents take turns."""
        most = _COMPARISONS // max(1, len(self.gives))
        if len(self.asks) <= most:
            return self.asks
        turns: Counter[str] = Counter()
        turn = list[int]()
        for ask in self.asks:
            turns[self.tools[ask.tool].agent] += 1
            turn.append(turns[self.tools[ask.tool].agent])
        order = sorted(range(len(turn)), key=turn.__getitem__)
        left_out = sorted({self.tools[self.asks[place].tool].agent for place in order[most:]})
        _LOG.warning(
            "dependencies are inferred for %s of %s arguments only, as %s values are compared with each: left out are "
            "arguments of %s",
            *(f"{count:,}" for count in (most, len(self.asks), len(self.gives))),
            shown(", ".join(left_out[:_NAMED_AGENTS])) + (" and others" if len(left_out) > _NAMED_AGENTS else ""),
        )
        return [self.asks[place] for place in sorted(order[:most])]

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
        near = np.flatnonzero(plain >= bound)
        tools = columns.tool[near]
        near = near[(tools != ask.tool) & (self.trusted[tools] | (self.system[tools] == self.system[ask.tool]))]
        if len(near) > _CANDIDATES:
            near = np.sort(near[np.argsort(-plain[near], kind="stable")[:_CANDIDATES]])
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


def _numbered(things: Iterable[Hashable]) -> NDArray[np.intp]:
    """``(n,)``: the number of each thing, the same for equal ones."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(thing, len(numbers)) for thing in things], np.intp)


def _why(ask: Ask, give: Give) -> str:
    match give.source:
        case "output":
            return f"its result holds {give.field}, which fits {ask.parameter}"
        case "returns":
            return f"it says that it returns {give.text[:80]!r}, which fits {ask.parameter}"
        case _:
            return f"its name and description fit {ask.parameter}"
