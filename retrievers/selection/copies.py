"""Tools that repeat those of other agents: nobody gains places by copying."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from callsheet.graphs import Agent, Loaded, Tool, shown, split_name
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.retrievers.index.rows import Vectors

NEAR = 0.9
ALIKE = 0.75
"""Least cosine of tools that are nearly identical, and of tools that are alike."""
BROAD = 5
LARGELY = 0.4
"""What an agent imitates: so many other agents, with this share of its tools."""
_MOST = 10_000
_BLOCK = 512
_SYSTEMS = 20
Pair = tuple[int, int, float]
"""Row of a tool, number of another system, and the best cosine with a tool of it; at most 20 systems a tool."""


@dataclass(frozen=True, slots=True)
class Copies:
    """The tools of a catalog that repeat others.

    Attributes:
        originals: Id of a tool -> id of the one that it repeats, of a system that was there before: it is nearly
            identical, or its agent imitates and it is alike.
        last: Ids of the tools of agents that imitate.
        bounded: Id of a tool -> its agent, of which only a few tools are selected: the tools of an agent that imitates,
            and those of any agent that is like five others, as far as they are alike.
    """

    originals: Mapping[str, str] = field(default_factory=dict)
    last: frozenset[str] = frozenset()
    bounded: Mapping[str, str] = field(default_factory=dict)


def copies_in(loaded: Loaded, vectors: Vectors | None) -> Copies:
    """Returns the copies in a catalog, except those of trusted agents.

    Tools are alike by their vectors, or if one needs no argument and is named after a required argument of the other.
    A system is an API that is split into agents, or agents of one program, as for two accounts. The system that was
    pinned first was there first. Of those that were pinned together or not at all, those that imitate come last, and
    the others are in the order of the catalog. What came later makes nobody an imitator.

    ``vectors`` has one row per tool in the order of the catalog, ``(n, d)``. Without them, and for more than 10,000
    tools, only those with the same words in name and description are alike.
    """
    tools = list(loaded.catalog.tools.values())
    if vectors is not None:
        vectors = _unit(vectors) if len(tools) <= _MOST else None
    number = _system_numbers(loaded)
    of = np.array([number[tool.agent] for tool in tools], np.intp)
    trusted = {number[agent] for agent in loaded.trusted}
    place = _places(loaded, number)
    pairs = [*_equal(tools, of), *_named_after(tools, of)]
    if vectors is not None:
        pairs += _alike(vectors, of)
    broad = _broad_systems(pairs, of, place, trusted)
    sizes = np.bincount(of, minlength=len(place))
    imitating = {own for own, rows in broad.items() if len(rows) >= LARGELY * sizes[own]}
    order = [(when, own in imitating, own) for own, when in place.items()]
    best = _best_pairs(pairs, of, order, trusted, imitating)
    originals: dict[str, str] = {}
    for row, other, _ in best:
        nearest = _nearest(row, np.flatnonzero(of == other), tools, vectors)
        originals[tools[row].id] = tools[nearest].id
    bounded: dict[str, str] = {}
    last: set[str] = set()
    for row, tool in enumerate(tools):
        own = int(of[row])
        if own in imitating:
            last.add(tool.id)
        if own in imitating or row in broad.get(own, ()):
            bounded[tool.id] = tool.agent
    return Copies(originals, frozenset(last), bounded)


def _broad_systems(
    pairs: Iterable[Pair], of: NDArray[np.intp], place: Mapping[int, int], trusted: Collection[int]
) -> dict[int, set[int]]:
    """Returns the systems that are like so many others, each with the rows of its tools that are like one of theirs."""
    like: defaultdict[int, defaultdict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for row, other, _ in pairs:
        own = int(of[row])
        # What came later makes nobody an imitator.
        if own not in trusted and place[other] <= place[own]:
            like[own][other].add(row)
    return {own: set[int]().union(*there.values()) for own, there in like.items() if _breadth(there) >= BROAD}


def _best_pairs(
    pairs: Iterable[Pair],
    of: NDArray[np.intp],
    order: Sequence[tuple[int, bool, int]],
    trusted: Collection[int],
    imitating: Collection[int],
) -> Iterable[Pair]:
    """Returns the pair of the highest cosine for each tool that repeats one of a system that was there first."""
    best: dict[int, Pair] = {}
    for row, other, cosine in pairs:
        own = int(of[row])
        if own in trusted or order[other] >= order[own]:
            continue
        is_copy = cosine >= NEAR or own in imitating
        if is_copy and (row not in best or cosine > best[row][2]):
            best[row] = (row, other, cosine)
    return best.values()


def _system_numbers(loaded: Loaded) -> dict[str, int]:
    """Returns the number of the system of each agent; agents of one system have the same."""
    numbers: dict[str, int] = {}
    of_agents: dict[str, int] = {}
    for agent in loaded.catalog.agents:
        system = _system_of(agent, loaded.connections.get(agent.id))
        of_agents[agent.id] = numbers.setdefault(system, len(numbers))
    return of_agents


def _places(loaded: Loaded, number: Mapping[str, int]) -> dict[int, int]:
    """Returns when each system was first pinned, by its number; 0 for one that was not."""
    places = dict.fromkeys(number.values(), 0)
    for agent, when in loaded.places.items():
        if agent in number:
            places[number[agent]] = when
    return places


def _system_of(agent: Agent, connection: object) -> str:
    """Returns the API that an agent is a part of, the program or address behind it, or the agent itself."""
    if agent.system or not isinstance(connection, ServerConfig):
        return agent.system_key
    first = next((n for n, text in enumerate(connection.args, 1) if not text.startswith("-")), 0)
    rest = (text for text in connection.args[first:] if not PurePath(text).is_absolute())
    return repr((connection.command, *connection.args[:first], *rest, connection.url, connection.openapi))


def _breadth(there: Mapping[int, set[int]]) -> int:
    """Returns how many other systems it takes to have everything that is like one of theirs, found greedily."""
    left = set[int]().union(*there.values())
    count = 0
    while left:
        left -= max(there.values(), key=lambda rows: len(rows & left))
        count += 1
    return count


def _alike(vectors: Vectors, of: NDArray[np.intp]) -> Iterator[Pair]:
    """Yields each tool with each other system that has a tool like it."""
    order = np.argsort(of, kind="stable")
    systems, starts = np.unique(of[order], return_index=True)
    columns = vectors[order].T
    for start in range(0, len(of), _BLOCK):
        cosines = np.maximum.reduceat(vectors[start : start + _BLOCK] @ columns, starts, axis=1)
        for row, own in enumerate(of[start : start + _BLOCK].tolist()):
            there = np.flatnonzero((cosines[row] >= ALIKE) & (systems != own))
            for column in there[np.argsort(-cosines[row, there], kind="stable")[:_SYSTEMS]].tolist():
                yield start + row, int(systems[column]), float(cosines[row, column])


def _equal(tools: Sequence[Tool], of: NDArray[np.intp]) -> Iterator[Pair]:
    """Yields each tool with each other system that has a tool of the same words."""
    holders: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for row, tool in enumerate(tools):
        holders[_words_of(tool)].append(row)
    for rows in holders.values():
        systems = dict.fromkeys(of[rows].tolist())
        for row in rows if len(systems) > 1 else ():
            yield from _pairs(row, systems, of, 1.0)


def _named_after(tools: Sequence[Tool], of: NDArray[np.intp]) -> Iterator[Pair]:
    """Yields each tool without required arguments with each other system that has a required argument of its name.

    The name may have one word more, as in ``get_path``.
    """
    needing: defaultdict[frozenset[str], dict[int, None]] = defaultdict(dict)
    for tool, system in zip(tools, of.tolist(), strict=True):
        for parameter in tool.parameters:
            if parameter.required:
                needing[frozenset(split_name(parameter.name).split())][system] = None
    for row, tool in enumerate(tools):
        if not any(parameter.required for parameter in tool.parameters):
            words = frozenset(split_name(tool.name).split())
            systems = {s: None for name in (words, *(words - {word} for word in words)) for s in needing.get(name, ())}
            yield from _pairs(row, systems, of, ALIKE)


def _pairs(row: int, systems: Iterable[int], of: NDArray[np.intp], cosine: float) -> Iterator[Pair]:
    others = (system for system in systems if system != of[row])
    return ((row, system, cosine) for system in islice(others, _SYSTEMS))


def _words_of(tool: Tool) -> tuple[str, str]:
    return split_name(tool.name), " ".join(shown(tool.description).casefold().split())


def _nearest(row: int, rows: NDArray[np.intp], tools: Sequence[Tool], vectors: Vectors | None) -> int:
    """Of these rows, that of the tool that is most like the one of a row."""
    if vectors is None:
        same = (other for other in rows.tolist() if _words_of(tools[other]) == _words_of(tools[row]))
        return next(same, int(rows[0]))
    return int(rows[np.argmax(vectors[rows] @ vectors[row])])


def _unit(vectors: Vectors) -> Vectors:
    lengths = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return np.asarray(vectors / lengths, np.float32)
