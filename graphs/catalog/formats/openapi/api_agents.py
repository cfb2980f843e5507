"""A specification as agents: one for each tag, and one for the operations without a tag."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.openapi.operation_tools import OperationTools
from callsheet.graphs.text.sanitizing import counted, encodable

_NO_ID = re.compile(r"[^\w.-]+")
_LONGEST_ID, _LONGEST_ABOUT, _MOST_NAMED = 64, 2_000, 3


@dataclass(frozen=True, slots=True)
class ApiAgent:
    """The operations of one tag.

    Attributes:
        name: The tag; the title of the specification for operations without one.
        entries: Its operations as entries of ``tools/list``.
    """

    name: str
    description: str
    entries: tuple[dict[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Api:
    """A specification.

    Attributes:
        server: The first of its ``servers``, variables replaced by their defaults; empty if it names none.
        agents: Its agents by tag, in the form of an id; the empty tag is that of operations without one.
        problems: What was left out, and why.
    """

    title: str
    version: str
    server: str
    agents: Mapping[str, ApiAgent]
    problems: tuple[str, ...] = field(default=())

    @property
    def size(self) -> int:
        """Number of operations."""
        return sum(len(agent.entries) for agent in self.agents.values())


def api_of(document: Mapping[str, Any], *, given: Collection[str] = ()) -> Api:
    """The agents of a specification.

    Args:
        document: The parsed specification, of a version that is read.
        given: Names of headers and query parameters that the catalog sets.
    """
    info = _object(document.get("info"))
    title = _text(info.get("title")) or "API"
    tools, names = OperationTools(document, given), dict[str, str]()
    entries: dict[str, list[dict[str, Any]]] = defaultdict(list)
    left_out: dict[str, list[str]] = defaultdict(list)
    for path, method, operation, item in tools.operations():
        try:
            tag, entry = tools.entry(path, method, operation, item)
        except CatalogError as error:
            left_out[str(error)].append(f"{method.upper()} {path}")
            continue
        slug = id_of(tag)
        names.setdefault(slug, tag if slug else "")
        entries[slug].append(entry)
    abouts = _tag_texts(document.get("tags"))
    agents = {
        slug: ApiAgent(tag or title, _about(tag, abouts.get(tag, ""), title, info), tuple(entries[slug]))
        for slug, tag in names.items()
    }
    problems = tuple(_problem(why, which) for why, which in left_out.items())
    return Api(title, _text(info.get("version")), _server(document.get("servers")), agents, problems)


def id_of(text: str) -> str:
    """A title or a tag as a part of an id."""
    return _NO_ID.sub("-", encodable(text)).strip("-").lower()[:_LONGEST_ID]


def _problem(why: str, which: list[str]) -> str:
    more = f" and {len(which) - _MOST_NAMED} more" if len(which) > _MOST_NAMED else ""
    verb = "is" if len(which) == 1 else "are"
    return f"{', '.join(which[:_MOST_NAMED])}{more}: {why}; {counted(len(which), 'operation')} {verb} left out"


def _tag_texts(tags: Any) -> dict[str, str]:
    listed = tags if isinstance(tags, list) else []
    return {_text(tag.get("name")): _text(tag.get("description")) for tag in listed if isinstance(tag, dict)}


def _about(tag: str, text: str, title: str, info: Mapping[str, Any]) -> str:
    if not tag:
        return (_text(info.get("summary")) or _text(info.get("description")))[:_LONGEST_ABOUT]
    return f"{text or tag}".rstrip(".")[:_LONGEST_ABOUT] + f". Part of {title}."


def _server(servers: Any) -> str:
    first = _object(servers[0]) if isinstance(servers, list) and servers else {}
    address = _text(first.get("url"))
    for name, about in _object(first.get("variables")).items():
        address = address.replace(f"{{{name}}}", str(_object(about).get("default", "")))
    return address


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
