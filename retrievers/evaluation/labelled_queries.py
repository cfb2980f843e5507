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
_Names = Mapping[str, Mapping[str, list[str]]]

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
        agents, tools, skills: One tuple of alternatives per relevant one, by id.
        agents_from_tools: Whether the agents are the owners of the tools, because the line has no agents.
        arguments: Tool id -> arguments that a right call has; others are free. For ``callsheet eval --model``.
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

    Raises:
        QueriesError: The file cannot be read, is empty, or has invalid lines; the message says what is wrong with the
            first five.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise QueriesError(f"{path} cannot be read: {error.strerror}; give a file of labelled queries") from error
    except UnicodeDecodeError as error:
        raise QueriesError(f"{path} is not UTF-8 text (byte {error.start}): save it as UTF-8") from error
    known, queries, problems = _known(catalog), list[LabelledQuery](), list[str]()
    for number, line in enumerate(text.split("\n"), 1):  # JSON text may contain other ends of lines
        try:
            queries += [_query(number, line, known, catalog)] if line.strip() else []
        except QueriesError as error:
            problems.append(f"{path}, line {number}: {error}")
    if problems:
        more = [f"and {counted(len(problems) - _MOST_SHOWN, 'more line')}"] if len(problems) > _MOST_SHOWN else []
        raise QueriesError("\n".join(problems[:_MOST_SHOWN] + more))
    if not queries:
        raise QueriesError(f"{path} holds no labelled query: {_CURE}")
    return tuple(queries)


def _known(catalog: Catalog) -> _Names:
    """What each name may stand for, by kind: several tools have one bare name."""
    tools: dict[str, list[str]] = {}
    for tool in catalog.tools.values():
        tools.setdefault(tool.name, []).append(tool.id)
    skills = {name: [skill.id] for skill in catalog.skills for name in (skill.id, skill.name)}
    agents = {agent: [agent] for agent in catalog.by_id}
    return {"agent": agents, "tool": {**tools, **{tool: [tool] for tool in catalog.tools}}, "skill": skills}


def _query(number: int, line: str, known: _Names, catalog: Catalog) -> LabelledQuery:
    entry = _entry(line)
    query, name = entry.get("query"), entry.get("id", number)
    if not isinstance(query, str) or not query.strip():
        raise QueriesError('"query" must be a text that is not empty')
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise QueriesError(f'"id" must be a text or a number, not {name!r}')
    tools, agents, skills = (
        tuple(tuple(_id(kind, one, known) for one in group) for group in _groups(entry, f"{kind}s"))
        for kind in ("tool", "agent", "skill")
    )
    if not tools and not agents and not skills:
        raise QueriesError('no "agents", "tools" or "skills" are given: label the query or leave the line out')
    owners = tuple(tuple(dict.fromkeys(catalog.tool(tool).agent for tool in group)) for group in tools)
    given = entry.get("arguments", {})
    if not isinstance(given, dict) or not all(isinstance(args, dict) for args in given.values()):
        raise QueriesError('"arguments" must hold an object for each tool, as {"forecast": {"city": "Oslo"}}')
    arguments = {_id("tool", tool, known): args for tool, args in given.items()}
    if stray := sorted(arguments.keys() - {tool for group in tools for tool in group}):
        raise QueriesError(f'"arguments" has {", ".join(stray)}, which "tools" has not: add it there')
    derived = bool(owners and not agents)
    return LabelledQuery(str(name), query, agents or owners, tools, derived, arguments, skills)


def _id(kind: str, name: str, known: _Names) -> str:
    found = known[kind].get(name, [])
    if len(found) > 1:
        raise QueriesError(f"{len(found)} agents have a {kind} {name!r}: write one of {', '.join(found)}")
    if not found:
        alike = [one for one in known[kind] if ("/" in one) == ("/" in name)]
        raise QueriesError(f"no {kind} {name!r} in the catalog{near_names(name, alike)}: correct it")
    return found[0]


def _entry(line: str) -> Mapping[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise QueriesError(f"not JSON ({error}): {_CURE}") from error
    if not isinstance(entry, dict):
        raise QueriesError(f"not a JSON object: {_CURE}")
    for name in entry:
        if name not in _FIELDS and (near := near_names(name, _FIELDS)):
            raise QueriesError(f"unknown field {name!r}{near}: rename it")
    return entry


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
