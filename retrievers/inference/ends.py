"""Both ends of possible dependencies, what tools need and what they return, as weighted words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from callsheet.graphs import Tool, shown, split_name
from callsheet.graphs.text.json_schema import Field, fields_of
from callsheet.graphs.text.words import tokens
from callsheet.retrievers.index.node_texts import first_sentence
from callsheet.retrievers.inference.edge_model import EdgeModel

Words = Mapping[str, float]
"""Words with weights, 0 to 1."""
_LONGEST, _LEAST = 200, 0.02


@lru_cache(maxsize=65_536)
def stems(name: str) -> tuple[str, ...]:
    """The stems of a name in order, without stop words."""
    return tuple(dict.fromkeys(tokens(split_name(name))))


def stems_in(text: str) -> frozenset[str]:
    """The stems of the beginning of a text."""
    return frozenset(tokens(split_name(shown(text[: 4 * _LONGEST])[:_LONGEST])))


@dataclass(frozen=True, slots=True)
class Need:
    """An input of a tool.

    Attributes:
        tool: Row of the tool.
        field: The input.
        own: The stems of its own name.
        words: The stems that name it, with weights; see ``qualified``.
        text: The stems of its name and description.
    """

    tool: int
    field: Field
    own: frozenset[str]
    words: Words
    text: frozenset[str]

    @property
    def parameter(self) -> str:
        """Names from the root of the schema to the input, joined by dots."""
        return ".".join(self.field.path)


@dataclass(frozen=True, slots=True)
class Value:
    """What a tool returns: a field of its result, or, without a field, what its name says."""

    tool: int
    field: Field | None
    own: frozenset[str]
    words: Words
    text: frozenset[str]


@dataclass(frozen=True)
class Ends:
    """The inputs and outputs of all tools of a catalog.

    Attributes:
        tools: The tools; rows are indexes of this sequence.
        systems: The system of each tool: its API if that is split into several agents, else its agent.
        values: What they return, by tool.
        required: For each tool, how often it requires an input with these words.
        takes: For each tool, the words of all its inputs.
        trusted: Ids of the agents on whose tools those of other systems may depend; None: all.
    """

    tools: Sequence[Tool]
    systems: Sequence[str]
    needs: Sequence[Need]
    values: Sequence[Value]
    required: Sequence[Counter[frozenset[str]]]
    takes: Sequence[Collection[frozenset[str]]]
    trusted: Collection[str] | None = None

    @classmethod
    def of(
        cls, tools: Sequence[Tool], systems: Mapping[str, str], trusted: Collection[str] | None, model: EdgeModel
    ) -> Ends:
        """Derives them from names, schemas and descriptions; ``systems`` has those of agents."""
        needs = [need for row, tool in enumerate(tools) for need in _needs(row, tool, model)]
        required = [Counter[frozenset[str]]() for _ in tools]
        takes = [set[frozenset[str]]() for _ in tools]
        for need in needs:
            takes[need.tool].add(need.own)
            required[need.tool][need.own] += need.field.required
        values = [value for row, tool in enumerate(tools) for value in _values(row, tool, model)]
        return cls(
            tools, [systems.get(tool.agent, tool.agent) for tool in tools], needs, values, required, takes, trusted
        )


def _needs(row: int, tool: Tool, model: EdgeModel) -> Iterator[Need]:
    for field in fields_of(tool.input_schema):
        text = stems_in(f"{field.name}: {field.description}")
        yield Need(row, field, frozenset(stems(field.name)), qualified(field, tool.name, model), text)


def _values(row: int, tool: Tool, model: EdgeModel) -> Iterator[Value]:
    for field in fields_of(tool.output_schema or {}):
        text = stems_in(f"{field.name}: {field.description}")
        yield Value(row, field, frozenset(stems(field.name)), qualified(field, tool.name, model), text)
    words = {word: model.rarity(word) for word in stems(tool.name)}
    yield Value(row, None, frozenset(), words, stems_in(f"{tool.name}: {first_sentence(tool.description)}"))


def qualified(field: Field, tool: str, model: EdgeModel) -> Words:
    """The words that name a value, each with its weight.

    The words of its own name have their rarity as weight. What is left of 1, the more the more common the name, goes
    to the words of its parents, and what these leave to those of the tool's name, of these to the ones in the
    description, if any: ``id`` of ``get_an_artists_albums`` is that of an artist if its description says so::

        weight(w) = left * rarity(w),   left = product of (1 - rarity of the rarest word) over the names before
    """
    name = stems(tool)
    described = stems_in(field.description) if field.description else frozenset()
    said = tuple(word for word in name if word in described) or name
    words: dict[str, float] = {}
    left = 1.0
    for part in (*map(stems, reversed(field.path)), said):
        for word in part:
            words.setdefault(word, left * model.rarity(word))
        left *= 1 - max(map(model.rarity, part), default=0.0)
        if left <= _LEAST:
            break
    return words
