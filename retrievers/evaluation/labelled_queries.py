"""Labelled queries in JSON Lines: requests with their relevant agents, tools and skills."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from callsheet.graphs import CallsheetError, Catalog
from callsheet.graphs.errors import near_names
from callsheet.graphs.text.messages import counted

Wanted = tuple[tuple[str, ...], ...]
Arguments = Mapping[str, Mapping[str, Any]]
"""The arguments of a correct call, by the id of the tool."""
_Entry = Mapping[str, Any]
_Names = Mapping[str, Mapping[str, list[str]]]

_FIELDS = ("id", "query", "agents", "tools", "skills", "arguments")
_CURE = 'write one JSON object a line, as {"id": "1", "query": "...", "tools": ["agent/tool"]}'
_MOST_SHOWN = 5


class QueriesError(CallsheetError, ValueError):
    """Raised if a file of labelled queries is not valid."""


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A request with its relevant agents, tools and skills.

    Attributes:
        id: Its id; by default, the number of its line.
        agents, tools, skills: One tuple of alternatives per relevant one, by id.
        agents_from_tools: Whether the agents are the owners of the tools, because the line has no agents.
        arguments: Tool id -> arguments that a correct call has; other arguments are free. For ``callsheet eval
            --model``.
    """

    id: str
    query: str
    agents: Wanted
    tools: Wanted = ()
    agents_from_tools: bool = False
    arguments: Arguments = field(default_factory=dict, hash=False)
    skills: Wanted = ()


def read_queries(path: str | Path, catalog: Catalog) -> tuple[LabelledQuery, ...]:
    """Reads the labelled queries of a JSON Lines file, and checks them against a catalog.

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
    names = _names(catalog)
    queries: list[LabelledQuery] = []
    problems: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):  # JSON text may contain other ends of lines
        if not line.strip():
            continue
        try:
            queries.append(_query(number, line, names, catalog))
        except QueriesError as error:
            problems.append(f"{path}, line {number}: {error}")
    if problems:
        lines = problems[:_MOST_SHOWN]
        if len(problems) > _MOST_SHOWN:
            lines.append(f"and {counted(len(problems) - _MOST_SHOWN, 'more line')}")
        raise QueriesError("\n".join(lines))
    if not queries:
        raise QueriesError(f"{path} has no labelled query: {_CURE}")
    return tuple(queries)


def _names(catalog: Catalog) -> _Names:
    """Returns what each name may stand for, by kind: tools of several agents may have one bare name."""
    tools: dict[str, list[str]] = {}
    for tool in catalog.tools.values():
        tools.setdefault(tool.name, []).append(tool.id)
    # An id stands for its tool alone, even if another agent's tool has it as its name.
    tools.update({tool: [tool] for tool in catalog.tools})
    skills: dict[str, list[str]] = {}
    for skill in catalog.skills:
        skills[skill.id] = [skill.id]
        skills[skill.name] = [skill.id]
    return {"agent": {agent: [agent] for agent in catalog.by_id}, "tool": tools, "skill": skills}


def _query(number: int, line: str, names: _Names, catalog: Catalog) -> LabelledQuery:
    entry = _entry(line)
    query = entry.get("query")
    if not isinstance(query, str) or not query.strip():
        raise QueriesError('"query" must be a text that is not empty')
    name = entry.get("id", number)
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise QueriesError(f'"id" must be a text or a number, not {name!r}')
    tools = _labels(entry, "tool", names)
    agents = _labels(entry, "agent", names)
    skills = _labels(entry, "skill", names)
    if not tools and not agents and not skills:
        raise QueriesError('no "agents", "tools" or "skills" are given: label the query or leave the line out')
    agents_from_tools = bool(tools and not agents)
    if agents_from_tools:
        agents = tuple(tuple(dict.fromkeys(catalog.tool(tool).agent for tool in group)) for group in tools)
    return LabelledQuery(
        id=str(name),
        query=query,
        agents=agents,
        tools=tools,
        agents_from_tools=agents_from_tools,
        arguments=_arguments(entry, tools, names),
        skills=skills,
    )


def _labels(entry: _Entry, kind: str, names: _Names) -> Wanted:
    """Returns the labels of one kind: for each relevant item, the ids of its alternatives."""
    field = f"{kind}s"
    items = entry.get(field)
    if items is None:
        return ()
    if not isinstance(items, list):
        raise QueriesError(f'"{field}" must be a list, as ["a", ["b", "c"]], not {items!r}')
    labels = []
    for item in items:
        group = item if isinstance(item, list) else [item]
        if not group or not all(isinstance(name, str) and name for name in group):
            raise QueriesError(f'"{field}" must hold names, or lists of names that are alternatives, not {item!r}')
        labels.append(tuple(_id(kind, name, names) for name in dict.fromkeys(group)))
    return tuple(labels)


def _arguments(entry: _Entry, tools: Wanted, names: _Names) -> Arguments:
    """Returns the labelled arguments by the ids of their tools, which must be labelled too."""
    arguments = entry.get("arguments", {})
    if not isinstance(arguments, dict) or not all(isinstance(args, dict) for args in arguments.values()):
        raise QueriesError('"arguments" must hold an object for each tool, as {"forecast": {"city": "Oslo"}}')
    by_tool = {_id("tool", name, names): args for name, args in arguments.items()}
    labelled = {tool for group in tools for tool in group}
    stray = sorted(by_tool.keys() - labelled)
    if stray:
        raise QueriesError(f'"arguments" has {", ".join(stray)}, which "tools" has not: add it there')
    return by_tool


def _id(kind: str, name: str, names: _Names) -> str:
    ids = names[kind].get(name, [])
    if len(ids) > 1:
        raise QueriesError(f"{len(ids)} agents have a {kind} {name!r}: write one of {', '.join(ids)}")
    if not ids:
        # A name is near to names only, and an id to ids.
        alike = [other for other in names[kind] if ("/" in other) == ("/" in name)]
        raise QueriesError(f"no {kind} {name!r} in the catalog{near_names(name, alike)}: correct it")
    return ids[0]


def _entry(line: str) -> _Entry:
    """Reads a line as a JSON object; a field that is nearly the name of a known one is an error."""
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
