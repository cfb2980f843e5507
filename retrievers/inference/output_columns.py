"""The outputs of tools as columns of arrays, one row per output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import Tool
from callsheet.retrievers.inference.endpoints import NUMBERS, Ask, Give, Source
from callsheet.retrievers.inference.term_similarity import Floats
from callsheet.retrievers.inference.word_roles import GENERIC, LOCATOR, RECORD_ID, TIMES, Act, name_of, stems

Flags = NDArray[np.bool_]
EVEN: Mapping[Source, float] = {"output": 0.9, "returns": 0.8, "name": 0.65}
"""The score at which a match has an even chance, before other factors."""
PART: Mapping[Act, float] = {"change": 0.3, "use": 0.3, "check": 0.2, "enter": 0.2, "": 0.8}
"""Probability that a tool with this act is called for the value in its name; 1 for other acts."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Arrays of ``(n,)``.

    Attributes:
        tool: Row of the tool.
        output: Whether it is an output field.
        told: Whether it is from a description of the result.
        many: Whether it is in a list.
        number: Whether it is a number or a boolean.
        within: Whether it is a list or an object, or in a list of a record, such as the seasons of a show.
        foreign: Whether it is an output field that names more than itself, as ``author_id`` of a book, not ``id``.
        count: Whether it is the number of something.
        made: Whether it comes only from the name or description of a tool that makes something.
        context: Whether the tool needs no input, and it comes only from the tool's name or description.
        even: The score at which a match has an even chance.
        part: Probability that the tool is called for this value.
        of_sort: Kind of identifier -> whether it is one.
    """

    tool: NDArray[np.intp]
    output: Flags
    told: Flags
    many: Flags
    number: Flags
    within: Flags
    foreign: Flags
    count: Flags
    made: Flags
    context: Flags
    even: Floats
    part: Floats
    of_sort: Mapping[frozenset[str], Flags]

    @classmethod
    def of(cls, gives: Sequence[Give], tools: Sequence[Tool]) -> Columns:
        """The columns of these outputs."""
        acts = [name_of(tools[give.tool].name).act for give in gives]
        output = np.array([give.source == "output" for give in gives], bool)
        free = [not tools[give.tool].input_schema.get("required") for give in gives]
        return cls(
            tool=np.array([give.tool for give in gives], np.intp),
            output=output,
            told=np.array([give.source == "returns" for give in gives], bool),
            many=np.array([give.many for give in gives], bool),
            number=np.array([bool(give.types) and give.types <= NUMBERS | {"boolean"} for give in gives], bool),
            within=np.array([_is_within(give) for give in gives], bool),
            foreign=np.array([bool(stems(give.field.rpartition(".")[2]) - GENERIC) for give in gives], bool),
            count=np.array(["number of " in give.text for give in gives], bool) & output,
            made=np.array([act == "store" for act in acts], bool) & ~output,
            context=np.array([act == "read" for act in acts], bool) & np.array(free, bool) & ~output,
            even=np.array([EVEN[give.source] for give in gives], np.float32),
            part=np.array([part_of(give, tools[give.tool]) for give in gives], np.float32),
            of_sort={
                sort: np.array([bool(give.words & sort) for give in gives], bool) for sort in (RECORD_ID, LOCATOR)
            },
        )

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


def _is_within(give: Give) -> bool:
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
