"""Both ends of possible dependencies, what tools need and what they return, as weighted words."""

from __future__ import annotations

import logging
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import Tool, shown, split_name
from callsheet.graphs.text.json_schema import Field, fields_of
from callsheet.graphs.text.words import tokens
from callsheet.retrievers.index.node_texts import COMPOSED, IDENTIFIER, first_sentence
from callsheet.retrievers.inference.edge_model import EdgeModel, Floats

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
class Value:
    """What a tool returns: a field of its result, or, without a field, what its name says.

    Attributes:
        tool: Row of the tool.
        own: The stems of its own name.
        words: The stems that name it, with weights; see ``qualified``.
        text: The stems of its name and description.
    """

    tool: int
    field: Field | None
    own: frozenset[str]
    words: Words
    text: frozenset[str]


@dataclass(frozen=True, slots=True)
class Need(Value):
    """An input of a tool, with the same attributes."""

    field: Field

    @property
    def parameter(self) -> str:
        """Names from the root of the schema to the input, joined by dots."""
        return ".".join(self.field.path)


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
        needs, values = list[Need](), list[Value]()
        required, takes = [Counter[frozenset[str]]() for _ in tools], [set[frozenset[str]]() for _ in tools]
        for row, tool in enumerate(tools):
            for field in fields_of(tool.input_schema):
                need = Need(row, field, *_words(field, tool, model))
                needs.append(need)
                takes[row].add(need.own)
                if field.required:
                    required[row][need.own] += 1
            values += [Value(row, field, *_words(field, tool, model)) for field in fields_of(tool.output_schema or {})]
            rarities = {word: model.rarity(word) for word in stems(tool.name)}
            text = stems_in(f"{tool.name}: {first_sentence(tool.description)}")
            values.append(Value(row, None, frozenset(), rarities, text))
        of_tools = [systems.get(tool.agent, tool.agent) for tool in tools]
        return cls(tools, of_tools, needs, values, required, takes, trusted)


def _words(field: Field, tool: Tool, model: EdgeModel) -> tuple[frozenset[str], Words, frozenset[str]]:
    """The ``own``, ``words`` and ``text`` of a field."""
    text = stems_in(f"{field.name}: {field.description}")
    return frozenset(stems(field.name)), qualified(field, tool.name, model), text


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


MOST_NEEDS, _MOST_VALUES, _CANDIDATES, _INSPECTED = 40_000, 1_000, 10, 100
_LEAST_WEIGHT, _BESIDE = 0.02, 0.6
_NUMBERS = frozenset({"number", "integer", "int", "float"})
_LOG = logging.getLogger(__name__)
Rows = NDArray[np.intp]
_TRUSTED, _NONE = -1, (np.empty(0, np.intp), np.empty(0))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tool that may be the source of an input.

    Attributes:
        tool: Row of the tool.
        value: The field of its result that fits best; None if none does.
        features: ``PAIR`` in order.
    """

    tool: int
    value: Value | None
    features: Sequence[float]


class Candidates:
    """Finds candidates by their words: at most 10 of an input, the work linear in the number of inputs."""

    def __init__(self, ends: Ends, model: EdgeModel) -> None:
        self._ends, self._model = ends, model
        self._names = [value for value in ends.values if value.field is None]
        self._tool = np.array([value.tool for value in ends.values], np.intp)
        self._is_name = np.array([value.field is None for value in ends.values], bool)
        self._mass = np.array([sum(value.words.values()) for value in ends.values])
        self._fields = np.bincount(self._tool[~self._is_name], minlength=len(ends.tools)) > 0
        self._number = {system: number for number, system in enumerate(dict.fromkeys(ends.systems))}
        self._system = np.array([self._number[ends.systems[value.tool]] for value in ends.values], np.intp)
        self._postings = self._posted()
        self._told = np.array([model.words_of("t", split_name(tool.name).split()) for tool in ends.tools])
        self._inputs = [math.log1p(min(20, required.total())) for required in ends.required]
        documents = Counter(word for value in self._names for word in value.text)
        self._idf = {word: math.log(1 + len(ends.tools) / (1 + n)) + 0.1 for word, n in documents.items()}
        self._unknown = math.log(1 + len(ends.tools)) + 0.1
        self._masses: dict[frozenset[str], float] = {}
        self._named_words = [frozenset(value.words) for value in self._names]
        self._sizes = Counter(ends.systems)
        takers = {(ends.systems[need.tool], need.own, need.tool) for need in ends.needs}
        self._alike = Counter((system, own) for system, own, _ in takers)
        self._called = {
            (ends.systems[row], tool.name.casefold()): row
            for row, tool in enumerate(ends.tools)
            if COMPOSED.search(tool.name)
        }

    def _posted(self) -> Mapping[tuple[int, str], tuple[Rows, Floats]]:
        """The values with a word, the shortest first: by system, and of the agents that every system may use."""
        postings: defaultdict[tuple[int, str], list[tuple[float, int, float]]] = defaultdict(list)
        trusted = [self._ends.trusted is None or tool.agent in self._ends.trusted for tool in self._ends.tools]
        for row, value in enumerate(self._ends.values):
            systems = (int(self._system[row]), _TRUSTED) if trusted[value.tool] else (int(self._system[row]),)
            for word, weight in value.words.items():
                for system in systems if weight >= _LEAST_WEIGHT else ():
                    postings[system, word].append((float(self._mass[row]), row, weight))
        return {key: _arrays(entries) for key, entries in postings.items()}

    def needs(self, least: float) -> Iterator[tuple[Need, Floats]]:
        """The inputs that can reach a confidence, with their features ``NEED``; the agents share the budget."""
        can = list[tuple[Need, Floats]]()
        for need in self._ends.needs:
            features = self.need_features(need)
            bare, best = (self._model.bound(features, self._words(need), named=named) for named in (False, True))
            if bare >= least or (best >= least and self.named_in(need.tool, need.field.description)):
                can.append((need, features))
        turns: Counter[str] = Counter()
        turn = list[int]()
        for need, _ in can:
            turns[self._ends.tools[need.tool].agent] += 1
            turn.append(turns[self._ends.tools[need.tool].agent])
        if len(can) > MOST_NEEDS:
            _LOG.warning("dependencies are inferred for %s of %s arguments only", f"{MOST_NEEDS:,}", f"{len(can):,}")
        order = sorted(range(len(can)), key=turn.__getitem__)
        yield from (can[place] for place in sorted(order[:MOST_NEEDS]))

    def need_features(self, need: Need) -> Floats:
        """``(len(NEED),)``."""
        field, system = need.field, self._ends.systems[need.tool]
        rare = max(map(self._model.rarity, need.own), default=0.0)
        shared = self._alike[system, need.own] / self._sizes[system]
        says = bool({"id", "identifi"} & need.text)
        flags = (field.required, field.default, field.closed, _is_number(field.types), len(field.path) > 1)
        return np.array([*map(float, flags), rare, shared, float(says)])

    def of(self, need: Need) -> list[Candidate]:
        """The likeliest tools, the best match of words first."""
        named = self.named_in(need.tool, need.field.description)
        fields, names = self._fits(need)
        best: dict[int, float] = dict.fromkeys(named, 1.0)
        for tool, (fit, _) in fields.items():
            best[tool] = best.get(tool, 0.0) + fit
        for tool, fit in names.items():
            best[tool] = best.get(tool, 0.0) + fit * (_BESIDE if self._fields[tool] else 1)
        likeliest = sorted(best, key=lambda tool: (-best[tool], tool))[:_CANDIDATES]
        none, rare = (0.0, -1), max(map(self._model.rarity, need.own), default=0.0)
        return [
            self._candidate(need, tool, *fields.get(tool, none), names.get(tool, 0.0), float(tool in named), rare)
            for tool in likeliest
        ]

    def scores(self, need: Need, features: Floats, found: Sequence[Candidate]) -> Floats:
        """``(n,)``: the first step of the model."""
        model = self._model
        base = model.bias + features @ model.of_need + self._words(need)
        told = self._told[[one.tool for one in found]]
        scores: Floats = base + np.array([one.features for one in found]) @ model.of_pair + told
        return scores

    def _words(self, need: Need) -> float:
        return self._model.words_of("n", split_name(need.field.name).split())

    def _fits(self, need: Need) -> tuple[dict[int, tuple[float, int]], dict[int, float]]:
        """Tool -> the fit of its best field and its row, and tool -> the fit of its name.

        ::

            fit = c * (1 + p) / 2    with c, p: shares of the need's and of the value's weights that both have
        """
        rows, shared = self._near(need)
        whole = sum(need.words.values()) or 1.0
        fit = shared / whole * (0.5 + 0.5 * shared / np.maximum(self._mass[rows], 1e-9))
        fields: dict[int, tuple[float, int]] = {}
        names: dict[int, float] = {}
        places = np.argsort(-fit, kind="stable")[:_INSPECTED]
        best = rows[places]
        columns = (best, self._tool[best], self._is_name[best], fit[places])
        for row, tool, is_name, how_well in zip(*(column.tolist() for column in columns), strict=True):
            if is_name and tool != need.tool:
                names[tool] = how_well
            elif tool != need.tool:
                fields.setdefault(tool, (how_well, row))
        return fields, names

    def _near(self, need: Need) -> tuple[Rows, Floats]:
        """Rows of the values with words of the need, and the weights that they share with it."""
        system = self._number[self._ends.systems[need.tool]]
        rows, weights = [_NONE[0]], [_NONE[1]]
        for word, weight in need.words.items():
            if weight >= _LEAST_WEIGHT:
                own, held = self._postings.get((system, word), _NONE)
                trusted, held_there = self._postings.get((_TRUSTED, word), _NONE)
                elsewhere = self._system[trusted] != system
                rows += [own, trusted[elsewhere]]
                weights += [np.minimum(weight, held), np.minimum(weight, held_there[elsewhere])]
        near, places = np.unique(np.concatenate(rows), return_inverse=True)
        shared: Floats = np.bincount(places, np.concatenate(weights), minlength=len(near)).astype(np.float64)
        return near, shared

    def _candidate(
        self, need: Need, tool: int, fit: float, row: int, name: float, named: float, rare: float
    ) -> Candidate:
        ends = self._ends
        value = ends.values[row] if row >= 0 else None
        field = value.field if value else None
        required, mine = ends.required[tool], ends.required[need.tool]
        echo = 1.0 if need.own in required else 0.5 * (need.own in ends.takes[tool])
        listed = float(bool(field and field.many))
        types = field.types if field else frozenset[str]()
        known = bool(types and need.field.types)
        alike = bool(types & need.field.types) or (_is_number(types) and _is_number(need.field.types))
        features = (
            fit,
            name,
            0.0 if self._fields[tool] else name,
            _share(need, self._names[tool].words, self._model),
            rare * (value is not None and value.own == need.own),
            self._cosine(need.text.union(need.words), self._names[tool].text),
            self._cosine(need.text, value.text) if value else 0.0,
            listed * fit,
            self._cosine(self._named_words[need.tool], self._named_words[tool]),
            float(ends.tools[tool].agent == ends.tools[need.tool].agent),
            float(ends.systems[tool] != ends.systems[need.tool]),
            echo,
            echo * listed,
            self._inputs[tool],
            math.log1p(min(20, sum(count for own, count in required.items() if own not in mine))),
            float(known and not alike),
            named,
        )
        return Candidate(tool, value, features)

    def _cosine(self, some: frozenset[str], others: frozenset[str]) -> float:
        shared = some & others
        return self._mass_of(shared) / math.sqrt(self._mass_of(some) * self._mass_of(others)) if shared else 0.0

    def _mass_of(self, words: frozenset[str]) -> float:
        if (found := self._masses.get(words)) is None:  # fsum: the order of a set is not that of another process
            found = self._masses[words] = math.fsum(self._idf.get(word, self._unknown) for word in words)
        return found

    def named_in(self, row: int, text: str) -> list[int]:
        """Rows of other tools of the system whose composed names are in a text, in order, at most 10."""
        words = IDENTIFIER.findall(shown(text).casefold()) if text else ()
        found = (self._called.get((self._ends.systems[row], word)) for word in words)
        return list(dict.fromkeys(other for other in found if other is not None and other != row))[:_CANDIDATES]


def _share(need: Need, name: Words, model: EdgeModel) -> float:
    """The share of the words of an input's own name that are in a tool's name."""
    whole = math.fsum(map(model.rarity, need.own))
    return math.fsum(model.rarity(word) for word in need.own & name.keys()) / whole if whole else 0.0


def _is_number(types: Set[str]) -> bool:
    return bool(types) and types <= _NUMBERS


def _arrays(entries: list[tuple[float, int, float]]) -> tuple[Rows, Floats]:
    entries = sorted(entries)[:_MOST_VALUES]
    return np.array([row for _, row, _ in entries], np.intp), np.array([weight for *_, weight in entries])
