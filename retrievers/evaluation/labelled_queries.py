"""Labelled queries in JSON Lines: requests with their relevant agents, tools and skills."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from callsheet.graphs import CallsheetError, Catalog
from callsheet.graphs.catalog.errors import near_names
from callsheet.graphs.text.sanitizing import counted

Wanted = tuple[tuple[str, ...], ...]

_FIELDS = ("id", "query", "agents", "tools", "skills", "arguments")
_CURE = 'write one JSON object a line, as {"id": "1", "query": "...", "tools": ["agent/tool"]}'
_MOST_SHOWN = 5


class QueriesError(CallsheetError, ValueError):
    """A file of labelled queries is not valid."""


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """One request with its labels.

    Attributes:
        id: Its id; by default, the number of its line.
        query: The request.
        agents: One tuple of alternatives per relevant agent; empty if only skills are labelled.
        tools: One tuple of alternatives per relevant tool; empty if none is labelled.
        agents_from_tools: Whether the agents are the owners of the tools, because the line has no agents.
        arguments: Tool id -> arguments that a right call has; others are free. For ``callsheet eval --model``.
        skills: One tuple of alternatives per relevant skill, by id.
    """

    id: str
    query: str
    agents: Wanted
    tools: Wanted = ()
    agents_from_tools: bool = False
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict, hash=False)
    skills: Wanted = ()


def read_queries(path: str | Path, catalog: Catalog) -> tuple[LabelledQuery, ...]:
    """The labelled queries of a JSON Lines file, checked against a catalog.

    A line is ``{"id": "1", "query": "...", "agents": ["a", ["b", "c"]], "tools": ["a/x", ["b/y", "c/y"]]}``. An inner
    list has alternatives: any one of them counts. A line has agents, tools, ``"skills": ["pdf"]``, or several of
    these. A bare tool name is allowed if it is unique. ``"arguments": {"a/x": {"city": "Oslo"}}`` has arguments of a
    right call, for ``callsheet eval --model``. Blank lines and other fields are ignored.

    Args:
        path: The file.
        catalog: The agents, tools and skills of the labels.

    Raises:
        QueriesError: The file cannot be read, is empty, or has invalid lines. For the first five, the message says
            what is wrong and how to correct it.
    """
    reader = _Reader(catalog)
    queries: list[LabelledQuery] = []
    problems: list[str] = []
    for number, line in _lines(Path(path)):
        try:
            queries.append(reader.query(number, line))
        except QueriesError as error:
            problems.append(f"{path}, line {number}: {error}")
    if problems:
        more = [f"and {counted(len(problems) - _MOST_SHOWN, 'more line')}"] if len(problems) > _MOST_SHOWN else []
        raise QueriesError("\n".join(problems[:_MOST_SHOWN] + more))
    if not queries:
        raise QueriesError(f"{path} holds no labelled query: {_CURE}")
    return tuple(queries)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The non-blank lines with their numbers; only a line feed ends a line, because JSON text may contain others."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise QueriesError(f"{path} cannot be read: {error.strerror}; give a file of labelled queries") from error
    except UnicodeDecodeError as error:
        raise QueriesError(f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8") from error
    return ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())


class _Reader:
    """Reads lines with the names of one catalog."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._bare: dict[str, list[str]] = {}
        for tool in catalog.tools.values():
            self._bare.setdefault(tool.name, []).append(tool.id)

    def query(self, number: int, line: str) -> LabelledQuery:
        entry = _entry(line)
        query, name = entry.get("query"), entry.get("id", number)
        if not isinstance(query, str) or not query.strip():
            raise QueriesError('"query" must be a text that is not empty')
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise QueriesError(f'"id" must be a text or a number, not {name!r}')
        tools = tuple(tuple(map(self._tool, group)) for group in _groups(entry, "tools"))
        agents = tuple(tuple(map(self._agent, group)) for group in _groups(entry, "agents"))
        skills = tuple(tuple(map(self._skill, group)) for group in _groups(entry, "skills"))
        if not tools and not agents and not skills:
            raise QueriesError('no "agents", "tools" or "skills" are given: label the query or leave the line out')
        owners = tuple(tuple(dict.fromkeys(self._catalog.tool(tool).agent for tool in group)) for group in tools)
        arguments = {self._tool(tool): args for tool, args in _arguments(entry).items()}
        if stray := sorted(arguments.keys() - {tool for group in tools for tool in group}):
            raise QueriesError(f'"arguments" has {", ".join(stray)}, which "tools" has not: add it there')
        return LabelledQuery(
            str(name), query, agents or owners, tools,
            agents_from_tools=bool(owners and not agents), arguments=arguments, skills=skills,
        )  # fmt: skip

    def _agent(self, name: str) -> str:
        if name not in self._catalog.by_id:
            raise QueriesError(f"no agent {name!r} in the catalog{near_names(name, self._catalog.by_id)}: correct it")
        return name

    def _skill(self, name: str) -> str:
        known = {skill.name: skill.id for skill in self._catalog.skills}
        if name not in known and name not in known.values():
            raise QueriesError(f"no skill {name!r} in the catalog{near_names(name, known)}: correct it")
        return known.get(name, name)

    def _tool(self, name: str) -> str:
        if name in self._catalog.tools:
            return name
        candidates = self._bare.get(name, [])
        if len(candidates) > 1:
            raise QueriesError(f"{len(candidates)} agents have a tool {name!r}: write one of {', '.join(candidates)}")
        if not candidates:
            known = self._catalog.tools if "/" in name else self._bare
            raise QueriesError(f"no tool {name!r} in the catalog{near_names(name, known)}: correct it")
        return candidates[0]


def _entry(line: str) -> Mapping[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError as error:
        raise QueriesError(f"not JSON ({error}): {_CURE}") from error
    if not isinstance(entry, dict):
        raise QueriesError(f"not a JSON object: {_CURE}")
    for name in entry:
        if name not in _FIELDS and (near := near_names(name, _FIELDS)):
            raise QueriesError(f"unknown field {name!r}{near}: rename it")
    return entry


def _arguments(entry: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    arguments = entry.get("arguments", {})
    if not isinstance(arguments, dict) or not all(isinstance(args, dict) for args in arguments.values()):
        raise QueriesError('"arguments" must hold an object for each tool, as {"forecast": {"city": "Oslo"}}')
    return arguments


def _groups(entry: Mapping[str, Any], field: str) -> Iterator[tuple[str, ...]]:
    """The labels of a field, each as a tuple of alternatives."""
    items = entry.get(field)
    if items is None:
        return
    if not isinstance(items, list):
        raise QueriesError(f'"{field}" must be a list, as ["a", ["b", "c"]], not {items!r}')
    for item in items:
        group = item if isinstance(item, list) else [item]
        if not group or not all(isinstance(name, str) and name for name in group):
            raise QueriesError(f'"{field}" must hold names, or lists of names that are alternatives, not {item!r}')
        yield tuple(dict.fromkeys(group))
