"""Reads the servers of an ``mcp.json``: how to reach each, and the options that the user sets for it."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from pydantic import ConfigDict, Field

from callsheet.graphs.catalog.formats.manifests import UNREAD, Problem, read_env_file
from callsheet.graphs.catalog.model import Record
from callsheet.graphs.errors import CatalogError
from callsheet.graphs.text.json_schema import JsonObject
from callsheet.graphs.text.regex import linear
from callsheet.graphs.text.unicode import clean

A2A = "a2a"
OPENAPI = "openapi"
TOOLKIT = "toolkit"
KEY = "documents"
ROOTS = ("mcpServers", "servers", "context_servers")
"""The keys under which most clients, VS Code and Zed write their servers."""
_VARIABLE = linear(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{([^}]+)\}")
_OWN_VALUE = linear(r"\$\{user:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_OWN = "${user:"
_FOREIGN = linear(r"(?:\w+ )?(?:\$[A-Za-z_]\w*|%\w+%|\{env:\w+\})")
_HTTP = ("http", "streamable-http", "streamable_http", "streamableHttp")
_TRANSPORTS = {"stdio": "stdio", "local": "stdio", "sse": "sse", **dict.fromkeys(_HTTP, "http")}
_URLS = ("url", "serverUrl", "httpUrl")
_ONLY = ("includeTools", "tools")
_WITHOUT = ("excludeTools", "disabledTools")
# The keys of an entry: of every kind, of a server by its transport, and of the kinds that only Callsheet knows.
_SHARED = frozenset({"description", "callsheet", "disabled", "enabled", *_ONLY, *_WITHOUT})
_STDIO = frozenset({"type", "transport", "command", "args", "env", "envFile", "cwd"})
_REMOTE = frozenset({"type", "transport", "headers", *_URLS})
_KINDS = {A2A: {A2A, "headers"}, OPENAPI: {OPENAPI, "url", "headers"}, TOOLKIT: {TOOLKIT, "arguments"}, KEY: {KEY}}
# The options of 'callsheet' that do not apply to a kind.
_LOCAL = {"trusted", "limits", "tools", "roots", "session"}
_NO_OPTIONS = {A2A: {"trusted", "tools", "roots", "session", "always"}, OPENAPI: {"roots", "session"}, TOOLKIT: _LOCAL}
_NO_OPTIONS[KEY] = _LOCAL | {"approval", "allow", "reads", "always"}

APPROVAL = "callsheet/approval"
"""The metadata key of a LangChain tool's own policy: ``metadata={"callsheet/approval": "never"}``."""
ApprovalPolicy = Literal["always", "ask", "never"]
"""Which calls need approval: all, those of tools that are not known to be harmless, or none."""


class ServerOptions(Record):
    """The options in the object ``callsheet`` of a server's entry in an ``mcp.json``; other programs ignore it.

    Attributes:
        trusted: Whether to trust the server's hints about its tools (``readOnlyHint``, ``idempotentHint``).
        limits: Limits of this server by name (``call``, ``output`` ...).
        tools: Limits of single tools, by tool name.
        roots: Folders that path arguments must stay in; none: no restriction.
        approval: When to ask a person before a call; None: the setting of the run.
        allow: Names of tools whose calls need no approval; also without a model, as ``--allow AGENT/TOOL``.
        reads: Names of tools that only read, according to the user; each counts as a trusted ``readOnlyHint``.
        always: Names of tools that come with every other tool of the server.
        session: ``shared`` if the process of a server may serve several runs of the same user; ``run`` if it must end
            with the run, because it stores what the next run must not see.
    """

    trusted: bool = False
    limits: dict[str, float] = Field(default_factory=dict)
    tools: dict[str, dict[str, float]] = Field(default_factory=dict)
    roots: tuple[str, ...] = ()
    approval: ApprovalPolicy | None = None
    allow: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    always: tuple[str, ...] = ()
    session: Literal["shared", "run"] = "shared"


class ServerConfig(Record):
    """How to reach one MCP server, A2A agent, API or toolkit, with ``${VAR}`` and ``${VAR:-default}`` not yet expanded.

    Attributes:
        command: Program of a stdio server, or import path of a toolkit.
        args: Arguments of the program; of a toolkit, one JSON object.
        literal: Names in ``env`` whose values are from a file, where ``${VAR}`` has no meaning.
        cwd: Working folder of the program, or of a toolkit: by default that of its file.
        openapi: File or address of the OpenAPI specification of an API over HTTP.
        documents: A folder of documents that acts as an agent, as an absolute path.
        tag: The tag whose operations in the specification are the agent's tools, in the form of an id.
        description: What the server is for, from the user; empty: the server's own description.
        only: Names of the tools that the user has switched on; None: all.
        without: Names of the tools that the user has switched off.
    """

    model_config = ConfigDict(extra="ignore")

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = Field(default_factory=dict)
    literal: frozenset[str] = frozenset()
    cwd: str | None = None
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict)
    transport: Literal["stdio", "http", "sse", "a2a", "openapi", "toolkit", "documents"] = "stdio"
    openapi: str = ""
    documents: str = ""
    tag: str = ""
    description: str = ""
    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    callsheet: ServerOptions = Field(default_factory=ServerOptions)

    def offers(self, tool: str) -> bool:
        """Returns whether the user has this tool switched on."""
        return tool not in self.without and (self.only is None or tool in self.only)

    def expanded(self, environ: Mapping[str, str], own: Mapping[str, str] | None = None) -> ServerConfig:
        """Returns the configuration with all variables expanded.

        ``own`` has the user's own values; a header that needs another one is left out.

        Raises:
            CatalogError: A variable without a default is not set, or another program fills it in; the message names it.
        """
        fill = partial(_filled, environ=environ)
        headers: dict[str, str] = {}
        for key, text in self.headers.items():
            filled = _with_own_values(text, own or {}, fill)
            if filled is not None:
                headers[key] = filled
        update: JsonObject = {
            "args": tuple(map(fill, self.args)),
            "env": {key: text if key in self.literal else fill(text) for key, text in self.env.items()},
            "headers": headers,
        }
        for name in ("command", "cwd", "url", "openapi"):
            text = getattr(self, name)
            if text is not None:
                update[name] = fill(text)
        return self.model_copy(update=update)


def variables_in(text: str) -> tuple[str, ...]:
    """Returns the names of the variables that a text contains, each once, in alphabetical order.

    They are those of the environment, and the user's own values as ``user:NAME``.
    """
    names = {match[1] for match in _VARIABLE.finditer(text)}
    names |= {f"user:{match[1]}" for match in _OWN_VALUE.finditer(text)}
    return tuple(sorted(filter(None, names)))


def own_values_in(server: ServerConfig) -> dict[str, bool]:
    """Returns the names of the user's own values in the headers of a server, and whether each has a default."""
    needed: dict[str, bool] = {}
    for text in server.headers.values():
        for match in _OWN_VALUE.finditer(text):
            needed[match[1]] = needed.get(match[1], True) and match[2] is not None
    return needed


def _with_own_values(text: str, own: Mapping[str, str], fill: Callable[[str], str]) -> str | None:
    """Returns a header with the user's own values and with the variables around them; None if a value is missing."""
    parts: list[str] = []
    end = 0
    for match in _OWN_VALUE.finditer(text):
        default: str | None = match[2]
        value = own.get(match[1], default)
        if value is None:
            return None
        # A value is plain text: what looks like a variable in it is none.
        parts += [fill(text[end : match.start()]), value]
        end = match.end()
    return "".join([*parts, fill(text[end:])])


def _filled(text: str, environ: Mapping[str, str]) -> str:
    """Returns a text with the values of its variables."""

    def value(match: re.Match[str]) -> str:
        name, default, foreign = match.groups()
        if foreign:
            raise CatalogError(f"{match.group()} is filled in by another program only: write ${{NAME}}, and set NAME")
        if name in environ:
            return environ[name]
        if default is None:
            raise CatalogError(f"the variable {name} is not set: set it in the environment")
        return str(default)

    return _VARIABLE.sub(value, text)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The usable entries of an ``mcp.json`` by name, and the problems with the others."""

    servers: Mapping[str, ServerConfig]
    problems: tuple[Problem, ...]


def read_configuration(document: Mapping[str, Any], path: Path) -> Configuration:
    """Reads an ``mcp.json``; an entry that cannot work is left out, and a problem names it."""
    entries = next((document[root] for root in ROOTS if root in document), None)
    if not isinstance(entries, dict):
        raise CatalogError(f"{path}: 'mcpServers' must be an object of servers by name")
    switches = document.get("mcp")  # of Gemini CLI, for all servers
    if not isinstance(switches, dict):
        switches = {}
    servers = dict[str, ServerConfig]()
    problems = list[Problem]()
    for key, written in entries.items():
        name = clean(key)
        try:
            entry = _placed(clean(written), path)
            if not isinstance(entry, dict):
                raise CatalogError("its entry must be an object")
            if not _is_off(name, entry, switches):
                servers[name] = _server(entry, path)
                problems += [Problem(name, UNREAD, f"{message} (in {path})") for message in _unread(entry)]
        except (OSError, RuntimeError, ValueError) as error:  # the last two also of a path such as "~nobody"
            problems.append(Problem(name, "malformed", f"{error} (in {path})"))
    return Configuration(servers, tuple(problems))


def _is_off(name: str, entry: Mapping[str, Any], switches: Mapping[str, Any]) -> bool:
    """Returns whether a server is switched off, by its entry or by the lists for all servers."""
    for key in ("disabled", "enabled"):
        if not isinstance(entry.get(key, True), bool):
            raise CatalogError(f"{key!r} must be true or false")
    excluded = name in _names(switches, "excluded") or name not in _names(switches, "allowed", (name,))
    return excluded or entry.get("disabled") is True or entry.get("enabled") is False


def _names(holder: Mapping[str, Any], key: str, default: Any = ()) -> Any:
    """Returns the list of names under a key, or the default; ``CatalogError``: it is no such list."""
    names = holder.get(key, default)
    if key in holder and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise CatalogError(f"{key!r} must be a list of names")
    return names


def _project_of(path: Path) -> Path:
    """Returns the folder that editors call the workspace: that of the file, or the one around ``.vscode``."""
    folder = path.expanduser().absolute().parent
    return folder.parent if folder.name.startswith(".") else folder


def _placed(written: Any, path: Path) -> Any:
    """Returns an entry with what editors fill in of their own accord: ``${workspaceFolder}`` and the like."""
    project = _project_of(path)
    places = {
        "workspaceFolder": str(project),
        "workspaceFolderBasename": project.name,
        "pathSeparator": os.sep,
        "/": os.sep,
        "userHome": os.environ.get("HOME", ""),
    }
    text = json.dumps(written)
    for name, place in places.items():
        text = text.replace(f"${{{name}}}", json.dumps(place)[1:-1])
    return json.loads(text)


def _server(entry: Mapping[str, Any], path: Path) -> ServerConfig:
    """Returns the configuration of an entry of any kind, or raises ``CatalogError`` or another ``ValueError``."""
    kind = _kind_of(entry)
    if kind:
        _check_keys(entry, kind)
    _check_own_values(entry, kind)
    lists = [_names(entry, key, ["*"]) for key in _ONLY]
    only = [set(names) for names in lists if "*" not in names]
    without = set[str]()
    for key in _WITHOUT:
        without.update(_names(entry, key))
    fields: JsonObject = {
        **entry,
        # These are not an entry's to say.
        "literal": (),
        "tag": "",
        "only": set.intersection(*only) if only else None,
        "without": without,
        **_FIELDS[kind](entry, path),
    }
    return ServerConfig(**fields)


def _check_keys(entry: Mapping[str, Any], kind: str) -> None:
    """Refuses keys and options of other kinds: they would have no effect."""
    foreign = (_STDIO | _REMOTE).union(*_KINDS.values()) - _KINDS[kind]
    for key in sorted(foreign & entry.keys()):
        raise CatalogError(f"leave out {key!r}: an entry with {kind!r} cannot have it")
    options = entry.get("callsheet", {})
    if isinstance(options, dict):
        for key in sorted(_NO_OPTIONS[kind] & options.keys()):
            raise CatalogError(f"{key!r} of 'callsheet' does not apply to an entry with {kind!r}")


def _check_own_values(entry: Mapping[str, object], kind: str) -> None:
    """Refuses the user's own values where one session, or one process, serves all users."""
    headers = entry.get("headers")
    has_own_sessions = kind in ("", OPENAPI) and not entry.get("command")
    elsewhere = {key: text for key, text in entry.items() if key != "headers" or not has_own_sessions}
    if _OWN in json.dumps(elsewhere):
        raise CatalogError("${user:NAME} can stand in the headers of an MCP server or an API only")
    for name, text in headers.items() if isinstance(headers, dict) else ():
        if _OWN in _OWN_VALUE.sub("", str(text)):
            raise CatalogError(f"the header {name!r} has a malformed ${{user:NAME}}: a name has letters, digits and _")


def _kind_of(entry: Mapping[str, Any]) -> str:
    """Returns the kind that only Callsheet knows; empty for an MCP server."""
    return next((kind for kind in _KINDS if kind in entry), "")


def _unread(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yields a message for each part of an entry that has no effect here."""
    kind = _kind_of(entry)
    if kind:
        own: Collection[str] = _KINDS[kind]
    else:
        own = _STDIO if entry.get("command") else _REMOTE
    unread = [repr(key) for key in entry if key not in own and key not in _SHARED]
    if unread:
        yield f"Callsheet does not read {', '.join(unread)} of its entry"
    for key, text in _values(entry):
        if isinstance(text, str) and _FOREIGN.fullmatch(text):
            yield f"the variable in {key!r} is not filled in: write it as ${{NAME}}"


def _values(entry: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yields the values of an entry, and those in its arguments, variables and headers, each with its key."""
    yield from entry.items()
    args = entry.get("args")
    if isinstance(args, list):
        for text in args:
            yield "args", text
    for key in ("env", "headers"):
        group = entry.get(key)
        if isinstance(group, dict):
            yield from group.items()


def _client_fields(entry: Mapping[str, Any], path: Path) -> JsonObject:
    """Returns the fields of an MCP server, as clients write them."""
    url = next(filter(None, map(entry.get, _URLS)), None)
    if bool(url) == bool(entry.get("command")):
        raise CatalogError("it needs either a 'command' or a 'url'")
    declared = entry.get("transport", entry.get("type"))
    if declared is not None and (not isinstance(declared, str) or declared not in _TRANSPORTS):
        raise CatalogError(f"it has the unknown transport {declared!r}: use stdio, http or sse")
    usual = "http" if url else "stdio"
    transport = _TRANSPORTS[declared] if declared else usual
    if (transport == "stdio") == bool(url):
        raise CatalogError(f"it declares the transport {declared!r} but has {'a url' if url else 'a command'}")
    fields = {"url": url, "transport": transport}
    if not url:
        fields["cwd"] = _folder_of(entry.get("cwd"), path)
    file = entry.get("envFile")
    env = entry.get("env", {})
    if url or file is None or not isinstance(env, dict):
        return fields
    if not isinstance(file, str):
        raise CatalogError("'envFile' must be the path of a file")
    of_file = read_env_file(_project_of(path) / Path(_filled(file, os.environ)).expanduser())
    # In the file, ${NAME} is plain text; a variable of the entry goes before one of the file.
    return {**fields, "env": {**of_file, **env}, "literal": of_file.keys() - env.keys()}


def _folder_of(written: Any, path: Path) -> Any:
    """Returns the working folder of a program: relative to the file, so that it is the same from everywhere."""
    if written is None:
        return str(_project_of(path))
    if not isinstance(written, str) or written.startswith("${"):
        return written
    return os.path.normpath(_project_of(path) / Path(written).expanduser())


def _api_fields(entry: Mapping[str, Any], path: Path) -> JsonObject:
    """Returns the fields of ``{"openapi": "spec.yaml", "url": "https://..."}``; a path is relative to the catalog."""
    specification = entry[OPENAPI]
    url = entry.get("url")
    if not isinstance(specification, str) or not specification.strip():
        raise CatalogError("'openapi' must be the file or the address of an OpenAPI specification")
    if entry.get("headers") and not url:
        raise CatalogError("its headers need an address to which they may be sent: name it as 'url'")
    if url is not None and not is_address(str(url)) and not str(url).startswith("${"):
        raise CatalogError(f"its 'url' must be an address with http:// or https://, not {url!r}")
    if not is_address(specification):
        specification = str((path.parent / Path(specification).expanduser()).absolute())
    return {"openapi": specification, "transport": OPENAPI}


def _toolkit_fields(entry: Mapping[str, Any], path: Path) -> JsonObject:
    """Returns the fields of ``{"toolkit": "package.module.Class", "arguments": {...}}``."""
    toolkit = entry[TOOLKIT]
    arguments = entry.get("arguments", {})
    parts = toolkit.split(".") if isinstance(toolkit, str) else []
    if len(parts) < 2 or not all(part.isidentifier() for part in parts):
        raise CatalogError("'toolkit' must be the import path of its class, as package.module.Class")
    if not isinstance(arguments, dict):
        raise CatalogError("'arguments' must be an object of the arguments of its class by name")
    text = json.dumps(arguments, ensure_ascii=False)
    return {"command": toolkit, "args": (text,), "cwd": str(path.absolute().parent), "transport": TOOLKIT}


def _folder_fields(entry: Mapping[str, Any], path: Path) -> JsonObject:
    """Returns the fields of ``{"documents": "folder"}``; the folder is relative to the catalog's file."""
    folder = entry[KEY]
    if not isinstance(folder, str) or not folder.strip():
        raise CatalogError("'documents' must be the path of a folder of documents")
    return {KEY: str((path.parent / Path(folder).expanduser()).resolve()), "transport": KEY}


_FIELDS: Mapping[str, Callable[[Mapping[str, Any], Path], JsonObject]] = {
    "": _client_fields,
    A2A: lambda entry, _: {"url": entry[A2A], "transport": A2A},
    OPENAPI: _api_fields,
    TOOLKIT: _toolkit_fields,
    KEY: _folder_fields,
}


def is_address(text: str) -> bool:
    """Returns whether a text is an address on the web."""
    return text.lower().startswith(("http://", "https://"))
