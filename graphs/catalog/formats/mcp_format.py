"""MCP's own forms: server configurations and tool listings, read into the catalog's types."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.document_folders import is_folder
from callsheet.graphs.catalog.formats.listing_entries import LONGEST_NAME, Entries, name_of
from callsheet.graphs.catalog.formats.malformed import wrong_field
from callsheet.graphs.catalog.formats.server_options import Terms
from callsheet.graphs.catalog.model import Agent, Dependency, Tool
from callsheet.graphs.text.regex import linear

_Item = TypeVar("_Item")
DEEPEST = 100
_MOST_SAID = 1_000
A2A = "a2a"
_VARIABLE = linear(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_TRANSPORTS: Mapping[str, Literal["stdio", "http", "sse"]] = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "sse": "sse",
}


@dataclass(frozen=True, slots=True)
class Problem:
    """Something of a source that was left out while the rest went on.

    Attributes:
        agent: The agent, or the file, that it is about.
        kind: A word for the sort of trouble: ``start``, ``timeout``, ``crash``, ``malformed`` ...
        message: What happened and how to cure it.
    """

    agent: str
    kind: str
    message: str

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.agent}: {self.message}"


class ServerConfig(BaseModel):
    """How to reach one MCP server, or A2A agent; ``${VAR}`` and ``${VAR:-default}`` are still unexpanded.

    Attributes:
        command: Program of a stdio server.
        args: Its arguments.
        env: Variables that are set for it.
        cwd: Folder that it is started in.
        url: Address of an HTTP server, or of an A2A agent.
        headers: HTTP headers that are sent to it.
        transport: How it is spoken to.
        description: What it is for, in the user's words; its own where nothing is said.
        callsheet: What the user says of it: trust, limits, roots.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    transport: Literal["stdio", "http", "sse", "a2a"] = "stdio"
    description: str = ""
    callsheet: Terms = Field(default_factory=Terms)

    def expanded(self, environ: Mapping[str, str]) -> ServerConfig:
        """The same with every variable replaced.

        Raises:
            CatalogError: A variable without default is not set; the message names it.
        """

        def fill(text: str) -> str:
            def value(match: re.Match[str]) -> str:
                name, default = match.groups()
                if name in environ:
                    return environ[name]
                if default is None:
                    raise CatalogError(f"the variable {name} is not set: set it in the environment")
                return str(default)

            return _VARIABLE.sub(value, text)

        return self.model_copy(
            update={
                "command": None if self.command is None else fill(self.command),
                "args": tuple(map(fill, self.args)),
                "env": {key: fill(text) for key, text in self.env.items()},
                "cwd": None if self.cwd is None else fill(self.cwd),
                "url": None if self.url is None else fill(self.url),
                "headers": {key: fill(text) for key, text in self.headers.items()},
            }
        )


def read_servers(document: Mapping[str, Any], where: str) -> dict[str, ServerConfig]:
    """The servers of an ``mcp.json`` (``mcpServers``, or VS Code's ``servers``); disabled ones are left out.

    Folders of documents are no servers; ``read_folders`` reads those.

    Args:
        document: The parsed file.
        where: Its name, for messages.

    Raises:
        CatalogError: A server has neither command nor url, both, or a field of the wrong type.
    """
    servers = document.get("mcpServers", document.get("servers"))
    if not isinstance(servers, dict):
        raise CatalogError(f"{where}: 'mcpServers' must be an object of servers by name")
    return {
        name: _server(name, entry, where)
        for name, entry in servers.items()
        if not (isinstance(entry, dict) and entry.get("disabled") is True) and not is_folder(entry)
    }


def _server(name: str, entry: object, where: str) -> ServerConfig:
    if not isinstance(entry, dict):
        raise CatalogError(f"{where}: server {name!r} must be an object")
    if A2A in entry:
        return _config(name, _of_agent(name, entry, where), where)
    declared = entry.get("transport", entry.get("type"))
    fields = {key: value for key, value in entry.items() if key not in ("transport", "type")}
    url = fields.get("url") or fields.get("serverUrl") or fields.get("httpUrl")
    if bool(url) == bool(fields.get("command")):
        raise CatalogError(f"{where}: server {name!r} needs either a 'command' or a 'url'")
    if declared is not None and (not isinstance(declared, str) or declared not in _TRANSPORTS):
        raise CatalogError(f"{where}: server {name!r} has the unknown transport {declared!r}: use stdio, http or sse")
    transport = _TRANSPORTS[declared] if declared else ("http" if url else "stdio")
    if (transport == "stdio") == bool(url):
        raise CatalogError(f"{where}: server {name!r} says {declared!r} but gives {'a url' if url else 'a command'}")
    return _config(name, {**fields, "url": url, "transport": transport}, where)


def _of_agent(name: str, entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of ``"name": {"a2a": "https://..."}``."""
    if other := sorted({"command", "url", "serverUrl", "httpUrl", "transport", "type"} & entry.keys()):
        raise CatalogError(f"{where}: {name!r} is an A2A agent, reached by its address alone: leave out {other[0]!r}")
    terms = entry.get("callsheet")
    if isinstance(terms, dict) and (other := sorted({"trusted", "tools", "roots"} & terms.keys())):
        raise CatalogError(f"{where}: {name!r} is an A2A agent, to which {other[0]!r} of 'callsheet' does not apply")
    return {**entry, "url": entry[A2A], "transport": A2A}


def _config(name: str, fields: Mapping[str, Any], where: str) -> ServerConfig:
    if not isinstance(terms := fields.get("callsheet", {}), dict):
        raise CatalogError(f"{where}: server {name!r}: 'callsheet' must be an object, such as {{'trusted': true}}")
    try:
        return ServerConfig(**{**fields, "callsheet": Terms(**terms)})
    except CatalogError as error:
        raise CatalogError(f"{where}: server {name!r}, callsheet: {error}") from error
    except ValidationError as error:
        raise CatalogError(f"{where}: server {name!r}, {wrong_field(error.errors()[0])}") from error


def agent_from_listing(
    agent_id: str,
    tools: Sequence[object],
    *,
    name: str = "",
    description: str = "",
    instructions: str = "",
    category: str = "",
) -> tuple[Agent, tuple[Problem, ...]]:
    """An agent of the entries that a server answers to ``tools/list``.

    Args:
        agent_id: Id of the agent.
        tools: Entries in MCP's wire form; what is malformed is left out and named.
        name: A name for people.
        description: What the agent is for.
        instructions: What it tells a model that uses it.
        category: A word for its field.

    Returns:
        The agent, and a problem for each entry that was left out. Dependencies may still name
        tools by their bare names: ``assemble`` resolves them.
    """
    agent_id = clean(agent_id)
    entries, kept, wrong = Entries.of(tools), list[Tool](), list[str]()
    for entry in entries.tools.values():
        try:
            kept.append(tool_from_entry(agent_id, entry))
        except CatalogError as error:
            wrong.append(str(error))
    wrong += [f"{count} tools are named {name!r}: none of them is used" for name, count in entries.repeated.items()]
    wrong += [_nameless(position) for position in entries.nameless]
    agent = Agent(
        id=agent_id,
        name=clean(name),
        description=clean(description),
        instructions=clean(instructions),
        category=clean(category),
        tools=tuple(kept),
    )
    return agent, tuple(Problem(agent_id, "malformed", message) for message in wrong)


def tool_from_entry(agent_id: str, entry: Any, position: int = 1) -> Tool:
    """One entry of ``tools/list`` as a tool.

    Raises:
        CatalogError: It has no name, or a field of the wrong type; the message says which.
    """
    if not name_of(entry):
        raise CatalogError(_nameless(position))
    try:
        entry = clean(entry)
    except CatalogError as error:
        raise CatalogError(f"tool {clean(entry['name'])!r}: {error}: it is left out") from error
    name, schema = entry["name"], entry.get("inputSchema")
    if schema is not None and not isinstance(schema, dict):
        raise CatalogError(f"tool {name!r}: inputSchema is not an object: it is left out")
    meta = entry.get("_meta") if isinstance(entry.get("_meta"), dict) else {}
    annotations, output = entry.get("annotations"), entry.get("outputSchema")
    return Tool(
        agent=agent_id,
        name=name,
        title=_text(entry.get("title")),
        description=_text(entry.get("description")),
        input_schema=schema or {"type": "object", "properties": {}},
        output_schema=output if isinstance(output, dict) else None,
        annotations=annotations if isinstance(annotations, dict) else {},
        core=meta.get("callsheet/core") is True,
        depends_on=_dependencies(name, meta.get("callsheet/depends_on")),
        capabilities=_capabilities(name, meta.get("callsheet/capabilities")),
    )


def _nameless(position: int) -> str:
    what = f"an object with a name of {LONGEST_NAME:,} characters at most"
    return f"entry {position} of the tools is not {what}: it is left out"


def _dependencies(name: str, edges: object) -> tuple[Dependency, ...]:
    if edges is None:
        return ()
    fields = _list_of(dict, edges, f"tool {name!r}: callsheet/depends_on")
    try:
        return tuple(Dependency(**edge) for edge in fields)
    except (CatalogError, TypeError) as error:
        raise CatalogError(f"tool {name!r}: callsheet/depends_on: {error}: it is left out") from error


def _capabilities(name: str, ids: object) -> tuple[str, ...]:
    if ids is None:
        return ()
    named = _list_of(str, ids, f"tool {name!r}: callsheet/capabilities")
    if not all(map(str.strip, named)):
        raise CatalogError(f"tool {name!r}: callsheet/capabilities must not hold an empty id: it is left out")
    return tuple(dict.fromkeys(named))


def _list_of(kind: type[_Item], value: object, where: str) -> list[_Item]:
    if isinstance(value, list) and len(value) <= _MOST_SAID and all(isinstance(item, kind) for item in value):
        return value
    what = "objects" if kind is dict else "texts"
    raise CatalogError(f"{where} must be a list of at most {_MOST_SAID:,} {what}: it is left out")


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def clean(value: Any, *, deepest: int = DEEPEST) -> Any:
    """The same value with lone surrogates replaced, which no UTF-8 sink would take.

    Raises:
        CatalogError: Objects and lists are nested deeper than this, which would not survive being written again.
    """
    if deepest < 0:
        raise CatalogError(f"nested more than {DEEPEST} levels deep")
    match value:
        case str():
            return value.encode("utf-8", "replace").decode("utf-8")
        case dict():
            return {clean(key): clean(item, deepest=deepest - 1) for key, item in value.items()}
        case list():
            return [clean(item, deepest=deepest - 1) for item in value]
        case _:
            return value
