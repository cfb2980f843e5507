"""Adds a server to the text of an ``mcp.json``, and keeps all the rest: order, layout, comments, unknown keys."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from callsheet.graphs.catalog.formats.manifests import parse_json, plain_json, without_comments
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.text.json_schema import JsonObject

ROOT = "mcpServers"
_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"\s*")
_STEP = "  "


@dataclass(frozen=True, slots=True)
class _Member:
    """A member of an object in a text, with the places where its key begins, and its value begins and ends."""

    key: str
    start: int
    value: int
    end: int


def with_entry(text: str, name: str, entry: JsonObject, where: str) -> str:
    """Returns the text of an ``mcp.json`` with another server.

    Args:
        text: The present text; blank for a new file.
        name: Name of the server.
        entry: Its entry.
        where: The file, for errors.

    Raises:
        CatalogError: The text is not an ``mcp.json``, or has a server of this name.
    """
    if not text.strip():
        return json.dumps({ROOT: {name: entry}}, indent=len(_STEP), ensure_ascii=False) + "\n"
    before = parse_json(text.encode(), where)
    if not isinstance(before, dict) or not isinstance(before.get(ROOT, {}), dict):
        raise CatalogError(f"{where}: {ROOT!r} must be an object of servers by name")
    servers = before.get(ROOT, {})
    if name in servers:
        raise CatalogError(f"{where} has a server {name!r} already: choose another name with --name")
    plain = plain_json(text)
    start = _after_blanks(plain, 1 if plain.startswith("\ufeff") else 0)
    roots = [member for member in _members(plain, start) if member.key == ROOT]
    if roots:
        # Of several, the last one counts.
        after = _with_member(text, plain, roots[-1].value, name, entry)
    else:
        after = _with_member(text, plain, start, ROOT, {name: entry})
    if parse_json(after.encode(), where) != {**before, ROOT: {**servers, name: entry}}:
        raise CatalogError(f"{where}: it cannot be changed safely: add the entry by hand")
    return after


def _members(plain: str, start: int) -> Iterator[_Member]:
    """Yields the members of the object at ``start`` of a valid JSON text."""
    at = _after_blanks(plain, start + 1)
    while plain[at] != "}":
        first = at
        key, at = _DECODER.raw_decode(plain, at)
        value = _after_blanks(plain, _after_blanks(plain, at) + 1)
        _, end = _DECODER.raw_decode(plain, value)
        yield _Member(key, first, value, end)
        at = _after_blanks(plain, end)
        if plain[at] == ",":
            at = _after_blanks(plain, at + 1)


def _after_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at


def _with_member(text: str, plain: str, start: int, key: str, value: JsonObject) -> str:
    """Returns the text with another member at the end of the object at ``start``."""
    members = list(_members(plain, start))
    _, end = _DECODER.raw_decode(plain, start)
    closing = end - 1
    outer = _indent(text, start)
    inner = _indent(text, members[0].start) if members else ""
    if len(inner) <= len(outer):
        inner = outer + _STEP
    # After the comments that stand behind the last member.
    place = len(text[:closing].rstrip())
    head = text[:place]
    if members:
        last = members[-1].end
        # JSON as editors write it may have a comma there already.
        if "," not in without_comments(text)[last:closing]:
            head = f"{text[:last]},{text[last:place]}"
    body = json.dumps(value, indent=len(_STEP), ensure_ascii=False).replace("\n", f"\n{inner}")
    added = f"\n{inner}{json.dumps(key, ensure_ascii=False)}: {body}"
    if "\n" not in text[place:closing]:
        added += f"\n{outer}"
    if "\r\n" in text:
        added = added.replace("\n", "\r\n")
    return f"{head}{added}{text[place:]}"


def _indent(text: str, at: int) -> str:
    """Returns the blanks at the beginning of the line of a place."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]
