"""The servers of an ``mcp.json``: how each is reached, and what the user sets for it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.documents import wrong_field
from callsheet.graphs.catalog.model import Record
from callsheet.graphs.text.regex import linear

A2A, OPENAPI, TOOLKIT, KEY = "a2a", "openapi", "toolkit", "documents"
_VARIABLE = linear(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_HTTP = ("http", "streamable-http", "streamable_http", "streamableHttp")
_TRANSPORTS = {"stdio": "stdio", "sse": "sse", **dict.fromkeys(_HTTP, "http")}
_URLS = ("url", "serverUrl", "httpUrl")
# What an entry of this kind is, and which fields and which options of 'callsheet' it must not have.
_KINDS: Mapping[str, tuple[str, frozenset[str], frozenset[str]]] = {
    A2A: (
        "an A2A agent, reached by its address alone",
        frozenset({"command", "transport", "type", *_URLS}),
        frozenset({"trusted", "tools", "roots"}),
    ),
    OPENAPI: (
        "an API, described by its specification",
        frozenset({"command", "args", "env", "cwd", "transport", "type", "tag"}),
        frozenset({"roots"}),
    ),
}

APPROVAL = "callsheet/approval"
"""The metadata key of a LangChain tool's own policy: ``metadata={"callsheet/approval": "never"}``."""
ApprovalPolicy = Literal["always", "risky", "never"]
"""Which calls need approval: all, those of tools that are not known to be harmless, or none."""


class ServerOptions(Record):
    """The object ``callsheet`` of a server's entry in an ``mcp.json``; other programs ignore it.

    Attributes:
        trusted: Whether to trust the server's hints about its tools (``readOnlyHint``, ``idempotentHint``).
        limits: Limits of this server by name (``call``, ``output`` ...).
        tools: Limits of single tools, by tool name.
        roots: Folders that path arguments must stay in; none: no restriction.
        approval: When to ask a person before a call: ``always``, ``risky`` or ``never``; None: the setting of the run.
        allow: Names of tools whose calls need no approval; also without a model, as ``--allow AGENT/TOOL``.
    """

    trusted: bool = False
    limits: dict[str, float] = Field(default_factory=dict)
    tools: dict[str, dict[str, float]] = Field(default_factory=dict)
    roots: tuple[str, ...] = ()
    approval: ApprovalPolicy | None = None
    allow: tuple[str, ...] = ()


class ServerConfig(BaseModel):
    """How to reach one MCP server, A2A agent, API or toolkit, with ``${VAR}`` and ``${VAR:-default}`` not yet expanded.

    Attributes:
        command: Program of a stdio server, or import path of a toolkit.
        args: Arguments of the program; of a toolkit, one JSON object.
        env: Environment variables of the program.
        cwd: Working folder of the program; for a toolkit, the folder of its catalog.
        url: Address of an HTTP server, of an A2A agent or of an API.
        headers: HTTP headers of each request.
        transport: Transport of the connection.
        openapi: File or address of the OpenAPI specification of an API over HTTP.
        tag: The tag of the specification whose operations are the agent's tools, in the form of an id.
        description: What the server is for, from the user; empty: the server's own description.
        callsheet: Trust, limits, roots and approval.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    transport: Literal["stdio", "http", "sse", "a2a", "openapi", "toolkit"] = "stdio"
    openapi: str = ""
    tag: str = ""
    description: str = ""
    callsheet: ServerOptions = Field(default_factory=ServerOptions)

    def expanded(self, environ: Mapping[str, str]) -> ServerConfig:
        """The configuration with all variables expanded.

        Raises:
            CatalogError: A variable without a default is not set; the message names it.
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

        update: dict[str, Any] = {
            "args": tuple(map(fill, self.args)),
            "env": {key: fill(text) for key, text in self.env.items()},
            "headers": {key: fill(text) for key, text in self.headers.items()},
        }
        for name in ("command", "cwd", "url", "openapi"):
            if (text := getattr(self, name)) is not None:
                update[name] = fill(text)
        return self.model_copy(update=update)


def read_servers(document: Mapping[str, Any], where: str) -> dict[str, ServerConfig]:
    """The servers of an ``mcp.json`` (``mcpServers``, or VS Code's ``servers``), without disabled ones.

    Folders of documents are read by ``read_folders``.

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
    if kind := next((kind for kind in _KINDS if kind in entry), ""):
        return _config(name, _fields_of_kind(kind, name, entry, where), where)
    if TOOLKIT in entry:
        return _config(name, _toolkit_fields(name, entry, where), where)
    declared = entry.get("transport", entry.get("type"))
    fields = {key: value for key, value in entry.items() if key not in ("transport", "type")}
    url = next(filter(None, map(fields.get, _URLS)), None)
    if bool(url) == bool(fields.get("command")):
        raise CatalogError(f"{where}: server {name!r} needs either a 'command' or a 'url'")
    if declared is not None and (not isinstance(declared, str) or declared not in _TRANSPORTS):
        raise CatalogError(f"{where}: server {name!r} has the unknown transport {declared!r}: use stdio, http or sse")
    transport = _TRANSPORTS[declared] if declared else ("http" if url else "stdio")
    if (transport == "stdio") == bool(url):
        raise CatalogError(f"{where}: server {name!r} says {declared!r} but has {'a url' if url else 'a command'}")
    return _config(name, {**fields, "url": url, "transport": transport}, where)


def _fields_of_kind(kind: str, name: str, entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of ``"name": {"a2a": "https://..."}`` or ``{"openapi": "spec.yaml", "url": "https://..."}``.

    The file of a specification is relative to ``where``.
    """
    what, fields, options = _KINDS[kind]
    told, given, url = f"{where}: {name!r} is {what}", entry.get("callsheet"), entry.get("url")
    if other := sorted(fields & entry.keys()):
        raise CatalogError(f"{told}: leave out {other[0]!r}")
    if isinstance(given, dict) and (other := sorted(options & given.keys())):
        raise CatalogError(f"{told}, to which {other[0]!r} of 'callsheet' does not apply")
    if kind == A2A:
        return {**entry, "url": entry[A2A], "transport": A2A}
    specification = entry[OPENAPI]
    if not isinstance(specification, str) or not specification.strip():
        raise CatalogError(f"{told}: 'openapi' must be the file or the address of its specification")
    if entry.get("headers") and not url:
        raise CatalogError(f"{told}, with headers: name the address that they are for as 'url'")
    if url is not None and not is_address(str(url)) and not str(url).startswith("${"):
        raise CatalogError(f"{told}: its 'url' must be an address with http:// or https://, not {url!r}")
    if not is_address(specification):
        specification = str((Path(where).parent / Path(specification).expanduser()).absolute())
    return {**entry, "openapi": specification, "transport": OPENAPI}


def _toolkit_fields(name: str, entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The fields of ``"name": {"toolkit": "package.module.Class", "arguments": {...}}``."""
    told, toolkit, arguments = f"{where}: {name!r} is a toolkit", entry[TOOLKIT], entry.get("arguments", {})
    if other := sorted(entry.keys() - {TOOLKIT, "arguments", "description", "callsheet", "disabled"}):
        raise CatalogError(f"{told}, made by its class and 'arguments' alone: leave out {other[0]!r}")
    options = entry.get("callsheet")
    if isinstance(options, dict) and (other := sorted(options.keys() - {"approval", "allow"})):
        raise CatalogError(f"{told}, to which {other[0]!r} of 'callsheet' does not apply")
    if (
        not isinstance(toolkit, str)
        or not all(part.isidentifier() for part in toolkit.split("."))
        or "." not in toolkit
    ):
        raise CatalogError(f"{told}: 'toolkit' must be the import path of its class, as package.module.Class")
    if not isinstance(arguments, dict):
        raise CatalogError(f"{told}: 'arguments' must be an object of the arguments of its class by name")
    folder = str(Path(where).expanduser().absolute().parent)
    given = json.dumps(arguments, ensure_ascii=False)
    return {**entry, "command": toolkit, "args": (given,), "cwd": folder, "transport": TOOLKIT}


def is_address(text: str) -> bool:
    """Whether a text is an address on the web."""
    return text.lower().startswith(("http://", "https://"))


def _config(name: str, fields: Mapping[str, Any], where: str) -> ServerConfig:
    if not isinstance(options := fields.get("callsheet", {}), dict):
        raise CatalogError(f"{where}: server {name!r}: 'callsheet' must be an object, such as {{'trusted': true}}")
    try:
        return ServerConfig(**{**fields, "callsheet": ServerOptions(**options)})
    except CatalogError as error:
        raise CatalogError(f"{where}: server {name!r}, callsheet: {error}") from error
    except ValidationError as error:
        raise CatalogError(f"{where}: server {name!r}, {wrong_field(error.errors()[0])}") from error


class FolderConfig(Record):
    """A folder of documents that acts as an agent.

    Attributes:
        documents: The folder; ``read_folders`` resolves it to an absolute path.
        description: What the folder contains; by default, the headings of its documents.
    """

    documents: Path
    description: str = ""


def read_folders(document: Mapping[str, Any], path: Path) -> dict[str, FolderConfig]:
    """The entries ``"name": {"documents": "folder/"}`` of an ``mcp.json`` at ``path``, without disabled ones.

    Raises:
        CatalogError: An entry has another field than ``documents`` and ``description``, or one of the wrong type.
    """
    servers = document.get("mcpServers", document.get("servers"))
    folders: dict[str, FolderConfig] = {}
    for name, entry in servers.items() if isinstance(servers, dict) else ():
        if is_folder(entry) and entry.get("disabled") is not True:
            fields = {key: value for key, value in entry.items() if key != "disabled"}
            try:
                config = FolderConfig(**fields)
                folder = (path.parent / config.documents.expanduser()).resolve()
            except (CatalogError, OSError, RuntimeError, ValueError) as error:
                raise CatalogError(f"{path}: {name!r} is a folder of documents, but: {error}") from error
            folders[name] = config.model_copy(update={KEY: folder})
    return folders


def is_folder(entry: object) -> bool:
    """Whether an entry among the servers of an ``mcp.json`` is a folder of documents."""
    return isinstance(entry, dict) and KEY in entry
