"""Tools that repeat those of other agents: nobody gains places by copying."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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
"""What a system imitates: so many others, with this share of its tools."""
_MOST = 10_000
_BLOCK = 512
_NONE = -2.0
"""Below every cosine: there is no such pair."""
Rows = NDArray[np.intp]
Words = tuple[str, str]
"""The words of the name of a tool, and those of its description."""


@dataclass(frozen=True, slots=True)
class Copies:
    """The tools of a catalog that repeat others.

    Attributes:
        originals: Id of a tool -> id of the one of another system that it stands behind.
        imitators: Ids of the agents that imitate.
    """

    originals: Mapping[str, str] = field(default_factory=dict)
    imitators: frozenset[str] = frozenset()


def find_copies(loaded: Loaded, vectors: Vectors | None) -> Copies:
    """Returns the tools that nearly repeat one that was pinned earlier, except those of trusted agents.

    A system is an API that is split into agents, or agents of one program, as for two accounts. It *imitates* if two
    fifths of its tools are like those of five other systems, none of them pinned later. All its tools stand behind the
    nearest tools of others; the tools of any other system only behind those that are nearly identical. Of systems that
    were pinned together or not at all, those that imitate come last, and the others are in the order of the catalog.

    ``vectors`` has one row per tool in the order of the catalog, ``(n, d)``. Without them, only tools with the same
    words in name and description are alike. Of more than 10,000 tools, each stands behind the first one with its words.
    """
    tools = list(loaded.catalog.tools.values())
    number = _system_numbers(loaded)
    of = np.array([number[tool.agent] for tool in tools], np.intp)
    pinned = np.zeros(len({*number.values()}), np.intp)
    for agent in number.keys() & loaded.places.keys():
        pinned[number[agent]] = loaded.places[agent]
    trusted = np.isin(of, [number[agent] for agent in number.keys() & loaded.trusted])
    words = [(split_name(tool.name), " ".join(shown(tool.description).casefold().split())) for tool in tools]
    if len(tools) > _MOST:
        first = _first_of_same_words(words, of, pinned)
        return Copies({tools[row].id: tools[first[row]].id for row in first.keys() - np.flatnonzero(trusted).tolist()})
    if vectors is not None:
        vectors = np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9), np.float32)
    cosines = _best_cosines(words, vectors, of, len(pinned))

    alike = (cosines >= ALIKE) | _named_after_arguments(tools, of, len(pinned))
    alike &= pinned <= pinned[of][:, None]
    sizes = np.bincount(of, minlength=len(pinned))
    largely = np.bincount(of, alike.any(axis=1), len(pinned)) >= np.maximum(LARGELY * sizes, 1)
    largely[of[trusted]] = False
    imitates = np.zeros(len(pinned), bool)
    for own in np.flatnonzero(largely):
        imitates[own] = _number_of_models(alike[of == own]) >= BROAD

    order = np.lexsort((imitates, pinned)).argsort()
    cosines[order >= order[of][:, None]] = _NONE
    best = cosines.max(axis=1, initial=_NONE)
    behind = (best >= NEAR) | ((best > _NONE) & imitates[of])
    originals: dict[str, str] = {}
    for row in np.flatnonzero(behind & ~trusted).tolist():
        rows = np.flatnonzero(of == cosines[row].argmax())
        originals[tools[row].id] = tools[_nearest(row, rows, words, vectors)].id
    return Copies(originals, frozenset(agent for agent, own in number.items() if imitates[own]))


def _system_numbers(loaded: Loaded) -> dict[str, int]:
    """Returns the number of the system of each agent with tools; agents of one system have the same."""
    numbers: dict[str, int] = {}
    of_agents: dict[str, int] = {}
    for agent in loaded.catalog.agents:
        if agent.tools:
            system = _system_of(agent, loaded.connections.get(agent.id))
            of_agents[agent.id] = numbers.setdefault(system, len(numbers))
    return of_agents


def _system_of(agent: Agent, connection: object) -> str:
    """Returns the API that an agent is a part of, the program or address behind it, or the agent itself."""
    if agent.system or not isinstance(connection, ServerConfig):
        return agent.system_key
    first = next((n for n, text in enumerate(connection.args, 1) if not text.startswith("-")), 0)
    rest = (text for text in connection.args[first:] if not PurePath(text).is_absolute())
    return repr((connection.command, *connection.args[:first], *rest, connection.url, connection.openapi))


def _best_cosines(words: Sequence[Words], vectors: Vectors | None, of: Rows, systems: int) -> Vectors:
    """Returns the best cosine of each tool with the tools of each other system, ``(n, systems)``.

    That of tools with the same words is 1, of all others without vectors -1.
    """
    best = np.full((len(words), systems), -1, np.float32)
    if vectors is not None:
        order = np.argsort(of, kind="stable")
        starts = np.searchsorted(of[order], np.arange(systems))
        columns = vectors[order].T
        # In blocks, because all cosines of 10,000 tools are 400 MB.
        for start in range(0, len(words), _BLOCK):
            cosines = vectors[start : start + _BLOCK] @ columns
            best[start : start + _BLOCK] = np.maximum.reduceat(cosines, starts, axis=1)
    rows_of: defaultdict[Words, list[int]] = defaultdict(list)
    for row, its in enumerate(words):
        rows_of[its].append(row)
    for rows in rows_of.values():
        if len(rows) > 1:
            best[np.array(rows)[:, None], of[rows]] = 1
    best[np.arange(len(words)), of] = _NONE
    return best


def _named_after_arguments(tools: Sequence[Tool], of: Rows, systems: int) -> NDArray[np.bool_]:
    """Returns which tools are sources of required arguments of other systems, ``(n, systems)``: nothing but such.

    A source needs no argument and has the name of one, or one word more, as in ``get_path``.
    """
    needing: defaultdict[frozenset[str], set[int]] = defaultdict(set)
    for tool, own in zip(tools, of.tolist(), strict=True):
        for parameter in tool.parameters:
            if parameter.required:
                needing[frozenset(split_name(parameter.name).split())].add(own)
    are_sources = np.zeros((len(tools), systems), bool)
    for row, tool in enumerate(tools):
        if not any(parameter.required for parameter in tool.parameters):
            words = frozenset(split_name(tool.name).split())
            for name in (words, *(words - {word} for word in words)):
                are_sources[row, list(needing.get(name, ()))] = True
    are_sources[np.arange(len(tools)), of] = False
    return are_sources


def _number_of_models(alike: NDArray[np.bool_]) -> int:
    """Returns about how many systems it takes to have all that these tools are like, ``(tools, systems)``."""
    by_size = alike[alike.any(axis=1)][:, np.argsort(-alike.sum(axis=0), kind="stable")]
    return len(np.unique(by_size.argmax(axis=1)))


def _first_of_same_words(words: Sequence[Words], of: Rows, pinned: Rows) -> dict[int, int]:
    """Returns the rows of the tools that have the words of one of another system, each with the first of them."""
    first: dict[Words, int] = {}
    originals: dict[int, int] = {}
    for row in np.lexsort((of, pinned[of])).tolist():
        original = first.setdefault(words[row], row)
        if of[original] != of[row]:
            originals[row] = original
    return originals


def _nearest(row: int, rows: Rows, words: Sequence[Words], vectors: Vectors | None) -> int:
    """Returns which of these rows has the same words, or is the nearest; the first, if that is not known."""
    own: list[int] = rows.tolist()
    for other in own:
        if words[other] == words[row]:
            return other
    return own[0] if vectors is None else own[int(np.argmax(vectors[rows] @ vectors[row]))]
