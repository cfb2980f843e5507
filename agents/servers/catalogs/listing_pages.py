"""The requests that list what a server offers, page by page."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

import anyio

from callsheet.agents.servers.catalogs.server_resources import LISTS, entries_of
from callsheet.agents.servers.limits import Limits
from callsheet.agents.servers.transport.loop_share import beside_if_large
from callsheet.agents.tools.tool_result import Fault
from callsheet.graphs.text.sanitizing import one_line

Ask = Callable[[str, Mapping[str, Any], float], Awaitable[dict[str, Any]]]
"""Sends a request: method, parameters, and timeout in seconds."""
MOST_RESOURCES = 1_000
"""Resources, templates or prompts of one server; the rest is left out."""
_MOST_PAGES, _SECONDS, _UNKNOWN_METHOD, _LONGEST = 200, 5.0, -32601, 300


async def listed_tools(ask: Ask, limits: Limits) -> list[Any]:
    """All pages of a server's tools, as sent.

    Raises:
        Fault: There was no answer, it was an error, or it is too large.
    """
    tools, size = list[Any](), 0
    deadline, cursor, seen = anyio.current_time() + limits.list, None, set[str]()
    while True:
        params: dict[str, str] = {} if cursor is None else {"cursor": cursor}
        page = await ask("tools/list", params, max(0.01, deadline - anyio.current_time()))
        if not isinstance(found := page.get("tools"), list):
            raise Fault("protocol", "its answer to tools/list has no list of tools")
        tools.extend(found)
        if len(tools) > limits.tools:
            raise Fault("too_large", _too_many(len(tools), limits.tools), effect="none")
        cursor = page.get("nextCursor")
        if seen or isinstance(cursor, str):  # a single page is limited by the message size
            size += await beside_if_large(_size, found)
        if size > limits.message:
            raise Fault("too_large", _too_long(limits.message), effect="none")
        if not isinstance(cursor, str) or cursor in seen:
            return tools
        if len(seen) >= _MOST_PAGES:
            raise Fault("too_large", f"its list of tools has more than {_MOST_PAGES:,} pages", effect="none")
        seen.add(cursor)


async def listed_resources(ask: Ask, capabilities: Any, limits: Limits) -> tuple[list[dict[str, Any]], str]:
    """Resources, templates and prompts in the form of tools, and why some are missing.

    A server that does not offer them is not asked. One that does not answer loses them, but not its tools.

    Args:
        ask: Sends a request; errors of any kind are caught.
        capabilities: What the server says that it can do.
        limits: Limits on time and size.
    """
    offered = {method: field for method, field in LISTS.items() if getattr(capabilities, method.split("/")[0], None)}
    lists = [_pages(ask, method, field, limits) for method, field in offered.items()]
    # Each error is a value: the library also cancels a request when the connection breaks.
    answers = await asyncio.gather(*lists, return_exceptions=True)
    entries, missing = list[dict[str, Any]](), list[str]()
    for method, answer in zip(offered, answers, strict=True):
        if not isinstance(answer, BaseException):
            found, why = answer
            entries += await beside_if_large(partial(entries_of, method), found)
            missing += [why] if why else []
        elif getattr(answer, "code", None) != _UNKNOWN_METHOD:
            missing.append(one_line(f"no answer to {method}: {type(answer).__name__}: {answer}")[:_LONGEST])
    return entries, "; ".join(missing)


async def _pages(ask: Ask, method: str, field: str, limits: Limits) -> tuple[list[Any], str]:
    listed, size, cursor, seen = list[Any](), 0, None, set[str]()
    seconds = min(_SECONDS, limits.list)
    async with asyncio.timeout(seconds):
        while True:
            page = await ask(method, {} if cursor is None else {"cursor": cursor}, seconds)
            found = page.get(field)
            if not isinstance(found, list):
                raise Fault("protocol", f"its answer has no list of {field}")
            size += await beside_if_large(_size, found)
            listed.extend(found)
            if len(listed) > MOST_RESOURCES or size > limits.message:
                return listed[
                    :MOST_RESOURCES
                ], f"{method}: only the first {min(len(listed), MOST_RESOURCES):,} are used"
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or cursor in seen:
                return listed, ""
            if len(seen) >= _MOST_PAGES:
                return listed, f"{method}: only the first {len(seen) + 1:,} pages are used"
            seen.add(cursor)


def _too_many(tools: int, most: int) -> str:
    return f"it lists {tools:,} tools or more, and at most {most:,} are allowed: raise its limit 'tools' if necessary"


def _size(page: list[Any]) -> int:
    return len(json.dumps(page))


def _too_long(most: float) -> str:
    return f"its list of tools, in several pages, has more than {most:,} bytes: raise its limit 'message' if necessary"
