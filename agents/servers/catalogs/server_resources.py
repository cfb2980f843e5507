"""Resources, resource templates and prompts of an MCP server, in the form of tools.

In this form, search, policy, limits, approval and reports treat them as tools. The name says the kind:
``resource:URI``, ``template:URI_TEMPLATE`` or ``prompt:NAME``. They never stand among the tools of a catalog.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio

from callsheet.agents.calls.limits import Limits
from callsheet.agents.calls.tool_result import Fault, Keep, Outcome, capped, failed, text_of
from callsheet.agents.servers.transport.messages import beside_if_large
from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.mcp_format import Entries, Problem, agent_from_listing
from callsheet.graphs.catalog.model import Agent
from callsheet.graphs.text.sanitizing import clean, one_line, shown
from callsheet.graphs.trust.pins import suspect

RESOURCE, TEMPLATE, PROMPT = "resource:", "template:", "prompt:"
LISTS: Mapping[str, str] = {
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""The requests that list them, with the field of the answer."""
_READS = {"readOnlyHint": True, "idempotentHint": True}
_BYTES = ("blob", "data")
_MOST_NAMED, _LONGEST_MEDIA = 3, 200


def entries_of(method: str, listed: Sequence[Any]) -> list[dict[str, Any]]:
    """What a server lists, as entries of tools; an entry that is malformed has no name."""
    form = {"resources/list": _resource, "resources/templates/list": _template, "prompts/list": _prompt}[method]
    return [form(item) if isinstance(item, dict) else {} for item in listed]


def resources_of(agent_id: str, entries: Sequence[Any]) -> tuple[Agent, tuple[Problem, ...]]:
    """An agent whose tools are the resources, templates and prompts of a server.

    An entry whose texts give a model orders, or hide characters, is left out.
    """
    bad = {name for name, entry in Entries.of(entries).tools.items() if one_line(name) != name or suspect(entry)}
    agent, malformed = agent_from_listing(agent_id, [e for e in entries if not (e and e.get("name") in bad)])
    problems = [Problem(agent_id, p.kind, f"resources and prompts, read as tools: {p.message}") for p in malformed]
    if bad:
        named = ", ".join(map(one_line, sorted(bad)[:_MOST_NAMED])) + ("..." if len(bad) > _MOST_NAMED else "")
        problems.append(Problem(agent_id, "suspect", f"texts that give a model orders or hide something: {named}"))
    return agent, tuple(problems)


def read_request(name: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The method and the parameters that read a resource, or render a prompt.

    Args:
        name: Its name in the form of a tool.
        arguments: Values for the variables of a template, or for the arguments of a prompt.
    """
    if name.startswith(PROMPT):
        return "prompts/get", {"name": name.removeprefix(PROMPT), "arguments": dict(arguments)}
    if name.startswith(TEMPLATE):
        from mcp.shared.uri_template import UriTemplate

        return "resources/read", {"uri": UriTemplate.parse(name.removeprefix(TEMPLATE)).expand(dict(arguments))}
    return "resources/read", {"uri": name.removeprefix(RESOURCE)}


def read_outcome(
    agent_id: str, name: str, result: Mapping[str, Any], limits: Limits, keep: Keep | None = None
) -> Outcome:
    """Converts the raw answer of ``resources/read`` or ``prompts/get``, valid or not, to an outcome.

    ``structured`` is the answer in the form of the protocol, its texts without hidden characters.
    """
    field = "messages" if name.startswith(PROMPT) else "contents"
    if not isinstance(found := result.get(field), list):
        return failed(agent_id, name, "protocol", f"its answer has no list of {field}", "reported")
    try:
        items = [_sanitized(clean(item)) for item in found if isinstance(item, dict)]
    except CatalogError as error:
        return failed(agent_id, name, "protocol", f"its answer is {error}", "reported")
    blocks = _spoken(items) if field == "messages" else [{"type": "resource", "resource": item} for item in items]
    text, media = text_of(blocks, keep)
    told = result.get("description") if field == "messages" else None
    about = {"description": shown(told)} if isinstance(told, str) else {}
    return capped(Outcome(text=text, structured={**about, field: items}, media=media), limits, keep)


def _spoken(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    """The contents of messages; the role is named where there is more than one message."""
    if len(messages) == 1:
        return [messages[0].get("content")]
    return [block for message in messages for block in (f"[{message.get('role')}]", message.get("content"))]


def _sanitized(value: Any) -> Any:
    match value:
        case str():
            return shown(value, most=None)
        case dict():
            return {key: item if key in _BYTES else _sanitized(item) for key, item in value.items()}
        case list():
            return [_sanitized(item) for item in value]
        case _:
            return value


def _resource(item: Mapping[str, Any]) -> dict[str, Any]:
    return _entry(RESOURCE, item.get("uri"), item, {})


def _template(item: Mapping[str, Any]) -> dict[str, Any]:
    from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

    try:
        template = UriTemplate.parse(_text(item, "uriTemplate"))
    except InvalidUriTemplate:
        return {}
    optional = template.query_variable_names
    arguments = [{"name": name, "required": name not in optional} for name in template.variable_names]
    return _entry(TEMPLATE, str(template), item, _schema(arguments))


def _prompt(item: Mapping[str, Any]) -> dict[str, Any]:
    arguments = item.get("arguments")
    given = [one for one in arguments if isinstance(one, dict)] if isinstance(arguments, list) else []
    return _entry(PROMPT, item.get("name"), item, _schema(given))


def _schema(arguments: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    named = [one for one in arguments if isinstance(one.get("name"), str)]
    properties = {
        one["name"]: {"type": "string", **({"description": one["description"]} if _text(one, "description") else {})}
        for one in named
    }
    return {"properties": properties, "required": [one["name"] for one in named if one.get("required") is True]}


def _entry(kind: str, name: Any, item: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(name, str) or not name.strip():
        return {}
    media = {"mimeType": shown(item["mimeType"], most=_LONGEST_MEDIA)} if _text(item, "mimeType") else {}
    label = _text(item, "title") or (_text(item, "name") if kind != PROMPT else "")
    return {
        "name": f"{kind}{name}",
        "title": label,
        "description": _text(item, "description"),
        "inputSchema": {"type": "object", "properties": {}, **schema, "additionalProperties": False},
        "annotations": {**_READS, **media},
    }


def _text(item: Mapping[str, Any], field: str) -> str:
    return value if isinstance(value := item.get(field), str) else ""


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
