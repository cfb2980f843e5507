"""Lists what servers offer (tools, resources, templates and prompts), and stores the last answers.

Resources, templates and prompts have the form of tools, so search, policy, limits and approval treat them like tools.
Their names show the kind: ``resource:URI``, ``template:URI_TEMPLATE`` or ``prompt:NAME``. They are never listed among
the tools of a catalog.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import starmap
from typing import Any

from callsheet.agents.calls.call_context import Limits
from callsheet.agents.calls.outcome import Fault, Kind, Outcome, failed_outcome
from callsheet.agents.calls.tool_result import Keep, cap_texts, text_of
from callsheet.graphs.catalog.formats.manifests import Entries, Problem, agent_from_listing
from callsheet.graphs.catalog.formats.server_config import ServerConfig
from callsheet.graphs.catalog.model import Agent
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.text.hidden import escaped_line, shown, visible
from callsheet.graphs.text.json_schema import JsonObject
from callsheet.graphs.text.unicode import clean
from callsheet.graphs.trust.pins import hides_text

SKILLS_EXTENSION = "io.modelcontextprotocol/skills"
"""The extension of MCP by which a server lists skills (SEP-2640)."""
RESOURCE = "resource:"
TEMPLATE = "template:"
PROMPT = "prompt:"
Ask = Callable[[str, Mapping[str, Any], float], Awaitable[dict[str, Any]]]
"""A function that sends a request: method, parameters, and timeout in seconds."""
MOST_RESOURCES = 1_000
"""Maximum number of resources, templates or prompts of one server; further ones are left out."""
# Request -> the field of its answer, the kind of its items, and the field that names each.
_LISTS = {
    "resources/list": ("resources", RESOURCE, "uri"),
    "resources/templates/list": ("resourceTemplates", TEMPLATE, "uriTemplate"),
    "prompts/list": ("prompts", PROMPT, "name"),
}
_READS = {"readOnlyHint": True, "idempotentHint": True}
_OFFERS = ("tools", "resources", "prompts")
_MOST_NAMED = 3
_LONGEST_MEDIA = 200
_LONGEST = 300
_MOST_PAGES = 200
_SECONDS = 5.0
_UNKNOWN_METHOD = -32601


@dataclass(frozen=True, slots=True)
class Listing:
    """What a server offers; two listings are equal if they would give the same catalog.

    Attributes:
        tools: Entries of ``tools/list`` as sent by the server.
        resources: Resources, templates and prompts in the form of tools.
        skills: Entries of ``skills/list`` as sent by the server.
        missing: The reason why some of these are missing; empty if the listing is complete.
        error: The reason why the server could not be listed, with the last lines of its standard error; else empty.
        when: Time of a stored answer or failure in UTC, ISO 8601 to the second; empty for a new one.
        seconds: How long it took.
        later: Whether the session had listed its tools before; calls may have changed what a later listing has.
        fresh: Seconds for which the server says that its lists are valid (``ttlMs``); None if it does not say.
        public: Whether the server says that its lists are the same for everybody (``cacheScope``).
    """

    tools: tuple[Any, ...] = ()
    resources: tuple[Any, ...] = ()
    skills: tuple[object, ...] = ()
    missing: str = ""
    name: str = ""
    description: str = ""
    instructions: str = ""
    error: str = field(default="", compare=False)
    kind: Kind = field(default="", compare=False)
    when: str = field(default="", compare=False)
    seconds: float = field(default=0.0, compare=False)
    later: bool = field(default=False, compare=False)
    fresh: float | None = field(default=None, compare=False)
    public: bool = field(default=False, compare=False)


PATIENCE = 8.0
"""Seconds for which a command waits for a server of which an earlier answer or failure is stored."""
UNHEARD = Listing(error="it has not answered yet", kind="unheard", when="never")
"""The listing of a server that has never been asked."""


def own_limits(server: ServerConfig, limits: Limits) -> Limits:
    """Returns the limits of a server; raises a SettingsError if one of them, or of its tools, is invalid."""
    own = limits.own(server.callsheet.limits)
    for more in server.callsheet.tools.values():
        own.own(more)
    return own


def clean_entries(entries: Sequence[object]) -> list[Any]:
    """Makes the strings of entries encodable; an entry that is nested too deeply stays, and is left out later."""

    def one(entry: object) -> Any:
        try:
            return clean(entry)
        except CatalogError:
            return entry

    return [one(entry) for entry in entries]


class CacheHints:
    """How long, and for whom, a server says that its lists are valid; the strictest of its pages decides."""

    def __init__(self) -> None:
        self.seconds: float | None = None
        self._scopes: set[object] = set()

    @property
    def public(self) -> bool:
        """Returns whether every page is valid for all users; a page that does not say so is valid for one user only."""
        return self._scopes == {"public"}

    def heard_by(self, ask: Ask) -> Ask:
        """Returns a function that sends requests as ``ask`` does, and records the cache hints of the answers."""

        async def heard(method: str, params: Mapping[str, object], seconds: float) -> JsonObject:
            page = await ask(method, params, seconds)
            self._scopes.add(page.get("cacheScope"))
            milliseconds = page.get("ttlMs")
            if isinstance(milliseconds, int | float) and not isinstance(milliseconds, bool):
                held = max(0.0, milliseconds / 1000)
                self.seconds = held if self.seconds is None else min(self.seconds, held)
            return page

        return heard


async def listed_skills(ask: Ask, capabilities: object, limits: Limits) -> tuple[list[object], str]:
    """Lists the skills of a server unchanged, with the reason why some are missing; their files are not read.

    A server that does not declare the extension is not asked.
    """
    if SKILLS_EXTENSION not in (getattr(capabilities, "extensions", None) or {}):
        return [], ""
    seconds = min(_SECONDS, limits.list)
    try:
        async with asyncio.timeout(seconds):
            skills, excess, odd = await _pages(
                ask, "skills/list", "skills", limits, most=MOST_RESOURCES, seconds=seconds
            )
    except Exception as error:  # noqa: BLE001 (without its skills, the tools of the server are used all the same)
        return [], escaped_line(f"no answer to skills/list: {type(error).__name__}: {error}")[:_LONGEST]
    return [*skills[:MOST_RESOURCES]], f"skills/list: {excess}, of which the first are used" if excess else odd


async def listed_tools(ask: Ask, capabilities: object, limits: Limits) -> tuple[list[Any], str]:
    """Lists all pages of a server's tools, unchanged, with the reason why some may be missing.

    The list is empty if the server offers only other things. Raises a ``Fault`` if there is no answer, if it is an
    error, or if it is too large.
    """
    offered = [name for name in _OFFERS if getattr(capabilities, name, None) is not None]
    if offered and "tools" not in offered:
        return [], ""
    try:
        tools, excess, odd = await _pages(ask, "tools/list", "tools", limits, most=limits.tools, seconds=limits.list)
    except Fault as fault:
        if getattr(fault.__cause__, "code", None) == _UNKNOWN_METHOD and len(offered) > 1:
            return [], f"it has no tools: {fault}"
        raise
    if excess:
        why = f"it lists {excess}: raise its limit 'tools' or 'message' if necessary"
        raise Fault("too_large", why, effect="none")
    return tools, odd


async def listed_resources(ask: Ask, capabilities: object, limits: Limits) -> tuple[list[dict[str, Any]], str]:
    """Lists resources, templates and prompts in the form of tools, with the reason why some are missing.

    A server that does not offer them is not asked. If it does not answer, only its resources are missing, not its
    tools.
    """
    methods = [method for method in _LISTS if getattr(capabilities, method.partition("/")[0], None)]
    offered = {method: _LISTS[method][0] for method in methods}
    seconds = min(_SECONDS, limits.list)

    async def pages(method: str, field: str) -> tuple[list[Any], str, str]:
        async with asyncio.timeout(seconds):
            return await _pages(ask, method, field, limits, most=MOST_RESOURCES, seconds=seconds)

    # Each error is a value: the library also cancels a request when the connection breaks.
    answers = await asyncio.gather(*starmap(pages, offered.items()), return_exceptions=True)
    entries: list[dict[str, Any]] = []
    missing: list[str] = []
    for method, answer in zip(offered, answers, strict=True):
        if not isinstance(answer, BaseException):
            items, excess, odd = answer
            entries += await asyncio.to_thread(entries_of, method, items[:MOST_RESOURCES])
            if excess:
                missing.append(f"{method}: {excess}, of which the first are used")
            elif odd:
                missing.append(odd)
        elif getattr(answer, "code", None) != _UNKNOWN_METHOD:
            missing.append(escaped_line(f"no answer to {method}: {type(answer).__name__}: {answer}")[:_LONGEST])
    return entries, "; ".join(missing)


async def _pages(
    ask: Ask, method: str, field: str, limits: Limits, *, most: int, seconds: float
) -> tuple[list[Any], str, str]:
    """Requests pages until the last one, or until one exceeds a limit or repeats an earlier one.

    Returns the entries, the limit that was exceeded, and any other fault of the list; both texts may be empty.
    """
    listed: list[Any] = []
    size = 0
    params: dict[str, str] = {}
    cursors: set[str] = set()
    pages: set[str] = set()
    deadline = time.monotonic() + seconds
    while True:
        page = await ask(method, params, max(0.01, deadline - time.monotonic()))
        entries = page.get(field)
        if not isinstance(entries, list):
            raise Fault("protocol", f"its answer to {method} has no list of {field}")
        cursor = page.get("nextCursor")
        if cursors or cursor:  # a single page is limited by the message size
            text = await asyncio.to_thread(json.dumps, entries, sort_keys=True)
            size += len(text)
            if entries and text in pages:
                return listed, "", f"{method}: page {len(cursors) + 1} repeats an earlier one, so the list ends there"
            pages.add(text)
        listed.extend(entries)
        if len(listed) > most:
            return listed, f"more than {most:,} {field}", ""
        if size > limits.message:
            return listed, f"{field}, in several pages, of more than {limits.message:,} bytes", ""
        if not cursor:
            return listed, "", ""
        if not isinstance(cursor, str) or cursor in cursors:
            what = "does not advance" if isinstance(cursor, str) else "is not a text"
            return listed, "", f"{method}: its cursor {what}, so the list may go on" if listed else ""
        if len(cursors) >= _MOST_PAGES:
            return listed, f"more than {_MOST_PAGES:,} pages of {field}", ""
        cursors.add(cursor)
        params = {"cursor": cursor}


def entries_of(method: str, listed: Sequence[object]) -> list[dict[str, Any]]:
    """Converts the items that a server lists to entries of tools; a malformed item becomes an entry without a name."""
    _, kind, key = _LISTS[method]
    return [_entry(kind, item.get(key), item) if isinstance(item, dict) else {} for item in listed]


def _entry(kind: str, name: Any, item: Mapping[str, Any]) -> dict[str, Any]:
    """Writes a resource, template or prompt as an entry of a tool; empty if it is malformed."""
    if not isinstance(name, str) or not name.strip():
        return {}
    arguments: Any = []
    if kind == PROMPT:
        arguments = item.get("arguments")
    elif kind == TEMPLATE:
        arguments = _template_arguments(name)
        if arguments is None:
            return {}
    title = _text(item, "title")
    if not title and kind != PROMPT:  # the name of a prompt is that of the entry
        title = _text(item, "name")
    annotations: dict[str, Any] = dict(_READS)
    if _text(item, "mimeType"):
        annotations["mimeType"] = shown(item["mimeType"], most=_LONGEST_MEDIA)
    return {
        "name": f"{kind}{name}",
        "title": title,
        "description": _text(item, "description"),
        "inputSchema": _schema_of(arguments if isinstance(arguments, list) else []),
        "annotations": annotations,
    }


def _template_arguments(template: str) -> list[dict[str, Any]] | None:
    """Returns the variables of a URI template in the form of a prompt's arguments; None if it is malformed."""
    from mcp.shared.uri_template import InvalidUriTemplate, UriTemplate

    try:
        parsed = UriTemplate.parse(template)
    except InvalidUriTemplate:
        return None
    optional = parsed.query_variable_names
    return [{"name": variable, "required": variable not in optional} for variable in parsed.variable_names]


def _schema_of(arguments: Sequence[object]) -> dict[str, Any]:
    """Makes a schema of the arguments of a prompt, which are strings; arguments without a name are left out."""
    properties: dict[str, dict[str, str]] = {}
    required: list[str] = []
    for argument in arguments:
        if not isinstance(argument, dict) or not _text(argument, "name"):
            continue
        name = argument["name"]
        properties[name] = {"type": "string"}
        if _text(argument, "description"):
            properties[name]["description"] = argument["description"]
        if argument.get("required") is True:
            required.append(name)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _text(item: Mapping[str, object], field: str) -> str:
    value = item.get(field)
    return value if isinstance(value, str) else ""


def resources_of(agent_id: str, entries: Sequence[Any]) -> tuple[Agent, tuple[Problem, ...]]:
    """Makes an agent whose tools are the resources, templates and prompts of a server.

    An entry with hidden characters in its name or texts is left out.
    """
    bad = {name for name, entry in Entries.of(entries).tools.items() if escaped_line(name) != name or hides_text(entry)}
    agent, malformed = agent_from_listing(agent_id, [e for e in entries if not (e and e.get("name") in bad)])
    problems = [Problem(agent_id, p.kind, f"resources and prompts, read as tools: {p.message}") for p in malformed]
    if bad:
        named = ", ".join(escaped_line(name) for name in sorted(bad)[:_MOST_NAMED])
        if len(bad) > _MOST_NAMED:
            named += "..."
        problems.append(Problem(agent_id, "suspect", f"hidden characters in the names or texts of: {named}"))
    return agent, tuple(problems)


def read_request(name: str, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Returns the method and the parameters of the request that reads a resource or renders a prompt."""
    if name.startswith(PROMPT):
        return "prompts/get", {"name": name.removeprefix(PROMPT), "arguments": dict(arguments)}
    if name.startswith(TEMPLATE):
        from mcp.shared.uri_template import UriTemplate

        return "resources/read", {"uri": UriTemplate.parse(name.removeprefix(TEMPLATE)).expand(dict(arguments))}
    return "resources/read", {"uri": name.removeprefix(RESOURCE)}


def read_outcome(
    agent_id: str, name: str, result: Mapping[str, object], limits: Limits, keep: Keep | None = None
) -> Outcome:
    """Makes an outcome from the answer to ``resources/read`` or ``prompts/get``."""
    field = "messages" if name.startswith(PROMPT) else "contents"
    answer = result.get(field)
    if not isinstance(answer, list):
        return failed_outcome(agent_id, name, "protocol", f"its answer has no list of {field}", "reported")
    try:
        items = [clean(item, text=visible) for item in answer if isinstance(item, dict)]
    except CatalogError as error:
        return failed_outcome(agent_id, name, "protocol", f"its answer is {error}", "reported")
    about: dict[str, str] = {}
    if field == "messages":
        blocks = _contents(items)
        description = result.get("description")
        if isinstance(description, str):
            about["description"] = shown(description)
    else:
        # Whoever reads a resource knows its address.
        blocks = [{"type": "resource", "resource": {**item, "uri": None}} for item in items]
    text, media = text_of(blocks, keep)
    return cap_texts(Outcome(text=text, structured={**about, field: items}, media=media), limits, keep)


def _contents(messages: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Returns the contents of messages; if there are several, the role stands before each content."""
    if len(messages) == 1:
        return [messages[0].get("content")]
    contents: list[Any] = []
    for message in messages:
        contents += [f"[{message.get('role')}]", message.get("content")]
    return contents
