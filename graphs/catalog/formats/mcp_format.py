"""MCP's ``tools/list``: entries read as an agent with its tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pydantic import ConfigDict, Field

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.model import Agent, Dependency, Name, Record, Tool
from callsheet.graphs.text.sanitizing import clean, encodable

_LONGEST_NAME, _LONGEST_LIST = 1_024, 1_000
NOT_CALLABLE, UNREAD = "not_callable", "unread"
"""Kinds of problems that leave nothing out: tools that nobody knows where to call, and settings without effect."""
SERVER_TROUBLE = frozenset(("start", "sign_in", "timeout", "crash", "protocol", "too_large", "unheard"))
"""Kinds of problems with a server as a whole."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A part of a source that was left out or not read when the rest was loaded, or whose tools cannot be called.

    Attributes:
        agent: The agent or the file that has the problem.
        kind: Kind of problem: ``start``, ``timeout``, ``crash``, ``malformed``, ``NOT_CALLABLE``, ``UNREAD`` ...
        message: What is wrong and how to correct it.
    """

    agent: str
    kind: str
    message: str

    @property
    def word(self) -> str:
        """What became of it."""
        return {NOT_CALLABLE: "not callable", UNREAD: "not read"}.get(self.kind, "left out")

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.agent}: {self.message}"


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries of a listing, valid and invalid.

    Attributes:
        tools: Name -> entry. A name with several entries that differ is ambiguous and has none; equal ones are one.
        repeated: Name -> count, for names with entries that differ.
        nameless: Positions, from 1, of entries without a name, or with a name that is too long.
    """

    tools: Mapping[str, dict[str, Any]]
    repeated: Mapping[str, int]
    nameless: tuple[int, ...]

    @classmethod
    def of(cls, listing: Sequence[Any]) -> Self:
        """The entries of a listing as a server sent it."""
        named: dict[str, list[Any]] = {}
        for entry in listing:
            named.setdefault(name_of(entry), []).append(entry)
        nameless = [at for at, entry in enumerate(listing, 1) if not name_of(entry)] if named.pop("", ()) else []
        repeated = {name: len(entries) for name, entries in named.items() if not _equal(entries)}
        return cls(
            {name: entries[0] for name, entries in named.items() if name not in repeated}, repeated, tuple(nameless)
        )


def _equal(entries: Sequence[Any]) -> bool:
    """Whether entries are the same JSON; in Python, 1 and True are equal."""
    return len(entries) == 1 or len({json.dumps(entry, sort_keys=True) for entry in entries}) == 1


@dataclass(frozen=True, slots=True)
class Difference:
    """Changes between two answers of a server, by tool name."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    @classmethod
    def of(cls, before: Sequence[Any], after: Sequence[Any]) -> Self:
        """The changes between two listings as a server sent them."""
        old, new = Entries.of(before).tools, Entries.of(after).tools
        return cls(
            tuple(name for name in new if name not in old),
            tuple(name for name, entry in new.items() if name in old and old[name] != entry),
            tuple(name for name in old if name not in new),
        )


class _Declared(Record):
    """What ``_meta`` of an entry says in words of Callsheet."""

    model_config = ConfigDict(extra="ignore")

    core: Any = Field(default=False, alias="callsheet/core")
    depends_on: tuple[Dependency, ...] | None = Field(
        default=None, alias="callsheet/depends_on", max_length=_LONGEST_LIST
    )
    capabilities: tuple[Name, ...] | None = Field(
        default=None, alias="callsheet/capabilities", max_length=_LONGEST_LIST
    )


def name_of(entry: Any) -> str:
    """The name of an entry, encodable as UTF-8; empty if it has no valid name."""
    name = entry.get("name") if isinstance(entry, dict) else None
    if not isinstance(name, str) or not name.strip() or len(name) > _LONGEST_NAME:
        return ""
    return encodable(name)


def agent_from_listing(
    agent_id: str,
    tools: Sequence[object],
    *,
    name: str = "",
    description: str = "",
    instructions: str = "",
    category: str = "",
) -> tuple[Agent, tuple[Problem, ...]]:
    """An agent from the entries that a server returns for ``tools/list``, and a problem for each that is left out.

    Dependencies may still use bare tool names; ``load`` resolves them.
    """
    agent_id = clean(agent_id)
    entries, valid, messages = Entries.of(tools), list[Tool](), list[str]()
    for entry in entries.tools.values():
        try:
            valid.append(tool_from_entry(agent_id, entry))
        except CatalogError as error:
            messages.append(str(error))
    messages += [f"{count} tools are named {name!r}: none of them is used" for name, count in entries.repeated.items()]
    messages += [_nameless(position) for position in entries.nameless]
    texts = {"name": name, "description": description, "instructions": instructions, "category": category}
    agent = Agent(id=agent_id, tools=tuple(valid), **clean(texts))
    return agent, tuple(Problem(agent_id, "malformed", message) for message in messages)


def tool_from_entry(agent_id: str, entry: Any) -> Tool:
    """A tool from one entry of ``tools/list``, or ``CatalogError``."""
    if not name_of(entry):
        raise CatalogError(_nameless(1))
    try:
        entry = clean(entry)
    except CatalogError as error:
        raise CatalogError(f"tool {clean(entry['name'])!r}: {error}: it is left out") from error
    name, schema = entry["name"], entry.get("inputSchema")
    if schema is not None and not isinstance(schema, dict):
        raise CatalogError(f"tool {name!r}: inputSchema is not an object: it is left out")
    meta, annotations, output = entry.get("_meta"), entry.get("annotations"), entry.get("outputSchema")
    try:
        declared = _Declared(**meta) if isinstance(meta, dict) else _Declared()
    except CatalogError as error:
        raise CatalogError(f"tool {name!r}: {str(error).removeprefix('_Declared: ')}: it is left out") from error
    return Tool(
        agent=agent_id,
        name=name,
        title=text_of(entry.get("title")),
        description=text_of(entry.get("description")),
        input_schema=schema or {"type": "object", "properties": {}},
        output_schema=output if isinstance(output, dict) else None,
        annotations=annotations if isinstance(annotations, dict) else {},
        core=declared.core is True,
        depends_on=declared.depends_on or (),
        capabilities=tuple(dict.fromkeys(declared.capabilities or ())),
    )


def _nameless(position: int) -> str:
    expected = f"an object with a name of {_LONGEST_NAME:,} characters at most"
    return f"entry {position} of the tools is not {expected}: it is left out"


def text_of(value: object) -> str:
    """The value if it is a text, otherwise an empty text."""
    return value if isinstance(value, str) else ""
