"""Tells by their fields which records a result holds: a cast is a list of persons."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from callsheet.graphs import Tool
from callsheet.retrievers.inference.endpoints import Ask, Field, fields_of
from callsheet.retrievers.inference.matching import Access, Ends, Hint
from callsheet.retrievers.inference.word_roles import FREE, GENERIC, IDENTIFIER, name_of, stems

Type = tuple[str, frozenset[str]]
"""System and specific words of an identifier: ``person`` of ``person_id``."""
_SURE, _SHARED, _COVERED, _MOST = 0.75, 3, 0.5, 2


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
    access = Access.of(ends)
    records = [record for row, tool in enumerate(ends.tools) for record in _records(row, tool)]
    asks: defaultdict[Type, list[Ask]] = defaultdict(list)
    for ask in ends.asks if records else ():
        if ask.required and ask.identifier and ask.specific:
            asks[ends.systems[ask.tool], ask.specific].append(ask)
    needs = Counter(ask.tool for ask in ends.asks if ask.required)
    types = {kind: fields for kind in asks if (fields := _fields(kind, records, ends, access))}
    shares: defaultdict[Type, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    for record in records:
        if record.many and (kind := _type_of(record, ends.systems[record.tool], types)):
            shares[kind][record.tool] += record.share
    for kind, tools in shares.items():
        for ask in asks[kind]:
            finders = access.finders(*kind)
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


def _fields(kind: Type, records: Sequence[Record], ends: Ends, access: Access) -> frozenset[str]:
    """The fields of the records that a type's finders list, and that the tool with this object reads."""
    system, words = kind
    fields: set[str] = set()
    for record in records:
        name = name_of(ends.tools[record.tool].name)
        if ends.systems[record.tool] == system and len(record.holder) <= 1:
            lists = record.many and access.finds[record.tool] and words <= name.words
            reads = not record.holder and name.object - GENERIC == words and len(access.ids.get(record.tool, ())) == 1
            fields |= record.fields if lists or reads else frozenset()
    return frozenset(fields)


def _type_of(record: Record, system: str, types: Mapping[Type, frozenset[str]]) -> Type | None:
    """The type of a list of records; None if its own name tells it, or if it is not clear."""
    known = {kind: fields for kind, fields in types.items() if kind[0] == system}
    named = frozenset(word for part in record.holder for word in stems(part))
    if any(words & named for _, words in known):
        return None
    counts = Counter(field for fields in known.values() for field in fields)
    scores = {kind: sum(1 / counts[field] for field in record.fields & fields) for kind, fields in known.items()}
    best = max(scores, key=lambda kind: scores[kind], default=None)
    if best is None:
        return None
    shared = record.fields & known[best]
    telling = any(counts[field] == 1 and not stems(field) <= GENERIC | FREE for field in shared)
    enough = len(shared) >= _SHARED and len(shared) >= _COVERED * len(record.fields)
    return best if telling and enough else None
