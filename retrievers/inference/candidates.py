"""The inputs and outputs of tools as weighted words, from which possible dependencies are found."""

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
_LONGEST = 200
"""Number of characters of a text whose words count."""
_LEAST = 0.02
"""What must be left of 1 for the words of a further name to count."""


@lru_cache(maxsize=65_536)
def stems(name: str) -> tuple[str, ...]:
    """Returns the stems of a name in order, without stop words."""
    return tuple(dict.fromkeys(tokens(split_name(name))))


def stems_in(text: str) -> frozenset[str]:
    """Returns the stems of the words at the beginning of a text."""
    return frozenset(tokens(split_name(shown(text[: 4 * _LONGEST])[:_LONGEST])))


@dataclass(frozen=True, slots=True)
class ArgumentValue:
    """A value that a tool returns: a field of its result, or, if no fields are known, what its name describes.

    Attributes:
        tool: Row of the tool.
        own: The stems of the value's own name.
        words: The stems that describe the value, with weights; see ``value_words``.
        text: The stems of the value's name and description.
    """

    tool: int
    field: Field | None
    own: frozenset[str]
    words: Words
    text: frozenset[str]


@dataclass(frozen=True, slots=True)
class Need(ArgumentValue):
    """An input of a tool; the attributes are those of ``ArgumentValue``."""

    field: Field

    @property
    def parameter(self) -> str:
        """Returns the names on the path from the root of the schema to the input, joined by dots."""
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
        trusted: Ids of agents on which tools of other systems may depend; None: all agents.
    """

    tools: Sequence[Tool]
    systems: Sequence[str]
    needs: Sequence[Need]
    values: Sequence[ArgumentValue]
    required: Sequence[Counter[frozenset[str]]]
    takes: Sequence[Collection[frozenset[str]]]
    trusted: Collection[str] | None = None

    @classmethod
    def of(
        cls, tools: Sequence[Tool], systems: Mapping[str, str], trusted: Collection[str] | None, model: EdgeModel
    ) -> Ends:
        """Derives the inputs and outputs from names, schemas and descriptions.

        ``systems`` maps each agent to its system.
        """
        needs: list[Need] = []
        values: list[ArgumentValue] = []
        required = [Counter[frozenset[str]]() for _ in tools]
        takes = [set[frozenset[str]]() for _ in tools]
        for row, tool in enumerate(tools):
            for field in fields_of(tool.input_schema):
                need = Need(row, field, *_words(field, tool, model))
                needs.append(need)
                takes[row].add(need.own)
                if field.required:
                    required[row][need.own] += 1
            results = fields_of(tool.output_schema or {})
            values += [ArgumentValue(row, field, *_words(field, tool, model)) for field in results]
            values.append(_value_of_name(row, tool, model))
        systems_of_tools = [systems.get(tool.agent, tool.agent) for tool in tools]
        return cls(tools, systems_of_tools, needs, values, required, takes, trusted)


def _value_of_name(row: int, tool: Tool, model: EdgeModel) -> ArgumentValue:
    """Returns what a tool returns as its name says: most tools have no output schema."""
    rarities = {word: model.rarity(word) for word in stems(tool.name)}
    text = stems_in(f"{tool.name}: {first_sentence(tool.description)}")
    return ArgumentValue(row, None, frozenset(), rarities, text)


def _words(field: Field, tool: Tool, model: EdgeModel) -> tuple[frozenset[str], Words, frozenset[str]]:
    """Returns ``own``, ``words`` and ``text`` of a field."""
    text = stems_in(f"{field.name}: {field.description}")
    return frozenset(stems(field.name)), value_words(field, tool.name, model), text


def value_words(field: Field, tool: str, model: EdgeModel) -> Words:
    """Returns the words that describe a value, each with its weight.

    Words are taken from four places in turn: the name of the value, the names of its parents, the name of the tool, and
    the description. The weight of a word is its rarity, times the weight that the earlier places left. So the more
    common the own name of a value, the more the other words count: ``id`` of ``get_an_artists_albums`` is that of an
    artist.
    """
    name = stems(tool)
    described = stems_in(field.description) if field.description else frozenset()
    name_words = tuple(word for word in name if word in described) or name
    words: dict[str, float] = {}
    left = 1.0
    for part in (*map(stems, reversed(field.path)), name_words):
        for word in part:
            words.setdefault(word, left * model.rarity(word))
        left *= 1 - max(map(model.rarity, part), default=0.0)
        if left <= _LEAST:
            break
    return words


MOST_NEEDS = 40_000
"""Maximum number of inputs for which dependencies are inferred."""
_MOST_VALUES = 1_000
"""Maximum number of values that are looked up by one word."""
_CANDIDATES = 10
_INSPECTED = 100
"""Number of the best fitting values of which candidates are made."""
_LEAST_WEIGHT = 0.02
"""Words with less weight are not looked up."""
_BESIDE = 0.6
"""Weight of the fit of a tool's name if the tool also describes the fields of its result."""
_NUMBERS = frozenset({"number", "integer", "int", "float"})
_LOG = logging.getLogger(__name__)
Rows = NDArray[np.intp]
_TRUSTED = -1
"""In place of the number of a system: the agents that every system may use."""
_NONE = (np.empty(0, np.intp), np.empty(0))


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tool that may be the source of an input.

    Attributes:
        tool: Row of the tool.
        value: The field of its result that fits best; None if none does.
        features: ``PAIR`` in order.
    """

    tool: int
    value: ArgumentValue | None
    features: Sequence[float]


class Candidates:
    """Finds candidates by their words, at most 10 per input; the time is linear in the number of inputs."""

    def __init__(self, ends: Ends, model: EdgeModel) -> None:
        self._ends = ends
        self._model = model
        self._masses: dict[frozenset[str], float] = {}
        self._index_values()
        self._index_tools()

    def _index_values(self) -> None:
        """Makes arrays over all values, and their postings by word."""
        values = self._ends.values
        numbers = {system: number for number, system in enumerate(dict.fromkeys(self._ends.systems))}
        self._number = numbers
        self._tool = np.array([value.tool for value in values], np.intp)
        self._is_name = np.array([value.field is None for value in values], bool)
        self._mass = np.array([sum(value.words.values()) for value in values])
        self._system = np.array([numbers[self._ends.systems[value.tool]] for value in values], np.intp)
        self._postings = self._value_postings()

    def _index_tools(self) -> None:
        """Makes what is looked up by the row of a tool, or by its system."""
        ends = self._ends
        names = [value for value in ends.values if value.field is None]
        self._names = names
        self._named_words = [frozenset(value.words) for value in names]
        self._has_fields = np.bincount(self._tool[~self._is_name], minlength=len(ends.tools)) > 0
        self._prior = np.array([self._model.words_of("t", split_name(tool.name).split()) for tool in ends.tools])
        self._inputs = [math.log1p(min(20, required.total())) for required in ends.required]
        documents = Counter(word for value in names for word in value.text)
        self._idf = {word: math.log(1 + len(ends.tools) / (1 + n)) + 0.1 for word, n in documents.items()}
        self._unknown = math.log(1 + len(ends.tools)) + 0.1
        self._sizes = Counter(ends.systems)
        takers = {(ends.systems[need.tool], need.own, need.tool) for need in ends.needs}
        self._alike = Counter((system, own) for system, own, _ in takers)
        # A name of one word would be found in any description.
        self._by_composed_name = {
            (ends.systems[row], tool.name.casefold()): row
            for row, tool in enumerate(ends.tools)
            if COMPOSED.search(tool.name)
        }

    def _value_postings(self) -> Mapping[tuple[int, str], tuple[Rows, Floats]]:
        """Returns the values with a word, the shortest first: by system, and of the agents that every system may use.

        The weights of the word in them come with their rows.
        """
        ends = self._ends
        postings: defaultdict[tuple[int, str], list[tuple[float, int, float]]] = defaultdict(list)
        trusted = [ends.trusted is None or tool.agent in ends.trusted for tool in ends.tools]
        for row, value in enumerate(ends.values):
            systems = [int(self._system[row])]
            if trusted[value.tool]:
                systems.append(_TRUSTED)
            for word, weight in value.words.items():
                if weight >= _LEAST_WEIGHT:
                    for system in systems:
                        postings[system, word].append((float(self._mass[row]), row, weight))
        return {key: _arrays(entries) for key, entries in postings.items()}

    def needs(self, least: float) -> Iterator[tuple[Need, Floats]]:
        """Iterates over the inputs that can reach a confidence of ``least``, with their features ``NEED``.

        If there are too many inputs, each agent contributes the same number, beginning with its first tools.
        """
        possible: list[tuple[Need, Floats]] = []
        for need in self._ends.needs:
            features = self.need_features(need)
            if self._can_reach(least, need, features):
                possible.append((need, features))
        if len(possible) > MOST_NEEDS:
            _LOG.warning(
                "dependencies are inferred for %s of %s arguments only", f"{MOST_NEEDS:,}", f"{len(possible):,}"
            )
        counts: Counter[str] = Counter()
        turns: list[int] = []
        for need, _ in possible:
            agent = self._ends.tools[need.tool].agent
            counts[agent] += 1
            turns.append(counts[agent])
        by_turn = sorted(range(len(possible)), key=turns.__getitem__)
        for place in sorted(by_turn[:MOST_NEEDS]):
            yield possible[place]

    def _can_reach(self, least: float, need: Need, features: Floats) -> bool:
        words = self._words(need)
        if self._model.bound(features, words, named=False) >= least:
            return True
        # To look for names in the description costs more, so it is done only if that could help.
        if self._model.bound(features, words, named=True) < least:
            return False
        return bool(self.named_in(need.tool, need.field.description))

    def need_features(self, need: Need) -> Floats:
        """Returns the features of an input, ``(len(NEED),)``."""
        field = need.field
        system = self._ends.systems[need.tool]
        return np.array(
            [
                float(field.required),
                float(field.default),
                float(field.closed),
                float(_is_number(field.types)),
                float(len(field.path) > 1),
                self._rarest(need),
                self._alike[system, need.own] / self._sizes[system],
                float(bool({"id", "identifi"} & need.text)),
            ]
        )

    def of(self, need: Need) -> list[Candidate]:
        """Returns the likeliest source tools of an input, the best match of words first."""
        named = self.named_in(need.tool, need.field.description)
        fields, names = self._fits(need)
        best: dict[int, float] = dict.fromkeys(named, 1.0)
        for tool, (fit, _) in fields.items():
            best[tool] = best.get(tool, 0.0) + fit
        for tool, fit in names.items():
            weight = _BESIDE if self._has_fields[tool] else 1
            best[tool] = best.get(tool, 0.0) + fit * weight
        likeliest = sorted(best, key=lambda tool: (-best[tool], tool))[:_CANDIDATES]
        candidates = []
        for tool in likeliest:
            fit, row = fields.get(tool, (0.0, None))
            value = None if row is None else self._ends.values[row]
            features = self._pair_features(
                need, tool, value, fit=fit, name_fit=names.get(tool, 0.0), is_named=tool in named
            )
            candidates.append(Candidate(tool, value, features))
        return candidates

    def scores(self, need: Need, features: Floats, candidates: Sequence[Candidate]) -> Floats:
        """Returns the scores of candidates by the first step of the model, ``(n,)``."""
        model = self._model
        base = model.bias + features @ model.of_need + self._words(need)
        priors = self._prior[[candidate.tool for candidate in candidates]]
        pairs = np.array([candidate.features for candidate in candidates])
        scores: Floats = base + pairs @ model.of_pair + priors
        return scores

    def _words(self, need: Need) -> float:
        """Returns what the model learned for the words of an input's name."""
        return self._model.words_of("n", split_name(need.field.name).split())

    def _fits(self, need: Need) -> tuple[dict[int, tuple[float, int]], dict[int, float]]:
        """Returns tool -> the fit of its best field and its row, and tool -> the fit of its name.

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
        for row, tool, is_name, fit_of_row in zip(*(column.tolist() for column in columns), strict=True):
            if tool == need.tool:
                continue
            if is_name:
                names[tool] = fit_of_row
            else:
                fields.setdefault(tool, (fit_of_row, row))
        return fields, names

    def _near(self, need: Need) -> tuple[Rows, Floats]:
        """Returns the rows of the values with words of the need, and the weights that they share with it."""
        system = self._number[self._ends.systems[need.tool]]
        rows = [_NONE[0]]
        weights = [_NONE[1]]
        for word, weight in need.words.items():
            if weight < _LEAST_WEIGHT:
                continue
            own, own_weights = self._postings.get((system, word), _NONE)
            trusted, trusted_weights = self._postings.get((_TRUSTED, word), _NONE)
            # Those of the own system are in both postings.
            elsewhere = self._system[trusted] != system
            rows += [own, trusted[elsewhere]]
            weights += [np.minimum(weight, own_weights), np.minimum(weight, trusted_weights[elsewhere])]
        near, places = np.unique(np.concatenate(rows), return_inverse=True)
        shared: Floats = np.bincount(places, np.concatenate(weights), minlength=len(near)).astype(np.float64)
        return near, shared

    def _pair_features(
        self, need: Need, tool: int, value: ArgumentValue | None, *, fit: float, name_fit: float, is_named: bool
    ) -> Sequence[float]:
        """Returns the features ``PAIR`` in order.

        ``value`` is the field of the tool's result that fits best, ``fit`` how well; ``name_fit`` is how well the
        tool's name fits; ``is_named`` is whether the description of the input names the tool.
        """
        ends = self._ends
        name = self._names[tool]
        is_list = float(bool(value and value.field and value.field.many))
        echo = self._echo(need, tool)
        return (
            fit,
            name_fit,
            0.0 if self._has_fields[tool] else name_fit,
            _share(need, name.words, self._model),
            self._rarest(need) * (value is not None and value.own == need.own),
            self._cosine(need.text.union(need.words), name.text),
            self._cosine(need.text, value.text) if value else 0.0,
            is_list * fit,
            self._cosine(self._named_words[need.tool], self._named_words[tool]),
            float(ends.tools[tool].agent == ends.tools[need.tool].agent),
            float(ends.systems[tool] != ends.systems[need.tool]),
            echo,
            echo * is_list,
            self._inputs[tool],
            self._further_inputs(need, tool),
            float(_types_differ(need, value)),
            float(is_named),
        )

    def _rarest(self, need: Need) -> float:
        """Returns the rarity of the rarest word of an input's name."""
        return max(map(self._model.rarity, need.own), default=0.0)

    def _echo(self, need: Need, tool: int) -> float:
        """Returns 1 if the tool requires an input of this name itself, so that it is no source; .5 if it takes one."""
        if need.own in self._ends.required[tool]:
            return 1.0
        return 0.5 if need.own in self._ends.takes[tool] else 0.0

    def _further_inputs(self, need: Need, tool: int) -> float:
        """Returns the logarithm of how many inputs the tool requires that the one with the need does not."""
        mine = self._ends.required[need.tool]
        further = sum(count for own, count in self._ends.required[tool].items() if own not in mine)
        return math.log1p(min(20, further))

    def _cosine(self, some: frozenset[str], others: frozenset[str]) -> float:
        """Returns the cosine of two sets of words, each weighted by its rarity."""
        shared = some & others
        if not shared:
            return 0.0
        return self._mass_of(shared) / math.sqrt(self._mass_of(some) * self._mass_of(others))

    def _mass_of(self, words: frozenset[str]) -> float:
        if words not in self._masses:
            # fsum, because another process has another order of a set, and a plain sum depends on the order.
            self._masses[words] = math.fsum(self._idf.get(word, self._unknown) for word in words)
        return self._masses[words]

    def named_in(self, row: int, text: str) -> list[int]:
        """Returns the rows of other tools of the system whose composed names occur in a text, at most 10."""
        if not text:
            return []
        rows: dict[int, None] = {}
        for word in IDENTIFIER.findall(shown(text).casefold()):
            other = self._by_composed_name.get((self._ends.systems[row], word))
            if other is not None and other != row:
                rows[other] = None
        return list(rows)[:_CANDIDATES]


def _share(need: Need, name: Words, model: EdgeModel) -> float:
    """Returns the share of the words of an input's own name that are in a tool's name."""
    whole = math.fsum(map(model.rarity, need.own))
    return math.fsum(model.rarity(word) for word in need.own & name.keys()) / whole if whole else 0.0


def _types_differ(need: Need, value: ArgumentValue | None) -> bool:
    """Returns whether both types are known, and no value fits both; all kinds of numbers fit each other."""
    wanted = need.field.types
    types = value.field.types if value and value.field else frozenset[str]()
    if not types or not wanted:
        return False
    return not (types & wanted or (_is_number(types) and _is_number(wanted)))


def _is_number(types: Set[str]) -> bool:
    return bool(types) and types <= _NUMBERS


def _arrays(entries: list[tuple[float, int, float]]) -> tuple[Rows, Floats]:
    """Returns the rows and weights of the entries with the least mass."""
    entries = sorted(entries)[:_MOST_VALUES]
    return np.array([row for _, row, _ in entries], np.intp), np.array([weight for *_, weight in entries])
