"""Tells by their fields which records a result holds: a cast is a list of persons."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from callsheet.graphs import Tool
from callsheet.graphs.text.json_schema import Field, fields_of
from callsheet.retrievers.inference.endpoints import Ask
from callsheet.retrievers.inference.matching import Ends, Hint
from callsheet.retrievers.inference.word_roles import FREE, GENERIC, IDENTIFIER, name_of, stems

Type = tuple[str, frozenset[str]]
"""System and specific words of an identifier: ``person`` of ``person_id``."""
_SURE, _SHARED, _COVERED, _MOST = 0.75, 3, 0.5, 2
_COMMON = 100  # a field of more types tells nothing


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
    types = Types(asks, records, ends)
    needs = Counter(ask.tool for ask in ends.asks if ask.required)
    shares: defaultdict[Type, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    for record in records:
        if record.many and (kind := types.of(record, ends.systems[record.tool])):
            shares[kind][record.tool] += record.share
    for kind, tools in shares.items():
        finders = access.finders(*kind)
        for ask in asks[kind]:
            sources = access.sources(ask, [*finders, *tools]) - {ask.tool, *finders}
            ranked = sorted(sources, key=lambda row: (needs[row], -tools[row], row))
            for row in ranked[:_MOST]:
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


class Types:
    """The fields of the records of each type: those that its finders list, and that the tool for its object reads."""

    def __init__(self, kinds: Collection[Type], records: Sequence[Record], ends: Ends) -> None:
        by_word: defaultdict[tuple[str, str], list[Type]] = defaultdict(list)
        for kind in kinds:
            for word in kind[1]:
                by_word[kind[0], word].append(kind)
        self._words = by_word.keys()
        self._fields: defaultdict[Type, set[str]] = defaultdict(set)
        for record in records:
            system, name = ends.systems[record.tool], name_of(ends.tools[record.tool].name)
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
            for kind in kinds if len(kinds) <= _COMMON else ():
                scores[kind] += 1 / len(kinds)
            if len(kinds) == 1 and not stems(field) <= GENERIC | FREE:
                telling.add(kinds[0])
        best = max(scores, key=lambda kind: scores[kind], default=None)
        shared = len(record.fields & self._fields[best]) if best else 0
        return best if best in telling and shared >= max(_SHARED, _COVERED * len(record.fields)) else None
