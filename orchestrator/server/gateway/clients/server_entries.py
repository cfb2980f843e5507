"""Which servers of a client can stand behind Callsheet, and what their entries are there."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any

from callsheet.graphs.catalog.errors import CatalogError
from callsheet.graphs.catalog.formats.server_config import read_servers
from callsheet.graphs.text.sanitizing import strings_in
from callsheet.graphs.text.secret_patterns import is_secret_name
from callsheet.orchestrator.server.gateway.clients.mcp_clients import McpClient

OWN = "callsheet"
"""Name of the entry of Callsheet in a client's configuration."""
_READ = frozenset("type transport command args env cwd url serverUrl httpUrl headers description disabled".split())
_WITHOUT_EFFECT = frozenset(
    "alwaysAllow alwaysLoad autoApprove dev gallery icon name note required startup_timeout_ms startup_timeout_sec "
    "supports_parallel_tool_calls timeout title tool_timeout_sec version".split()
)
"""Fields that are carried along but not read: no server can do more without them."""
_CODEX = frozenset("bearer_token_env_var enabled env_http_headers env_vars http_headers".split())
_VARIABLE = re.compile(r"\$\{[^}]*\}?")
_OF_EDITORS = re.compile(r"\$\{(?:env:[A-Za-z_][A-Za-z0-9_]*|[A-Z_][A-Z0-9_]*)\}")
_SHARED_VARIABLES = {
    McpClient.CLAUDE_CODE: re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*(?::-[^}$]*)?\}"),
    McpClient.CURSOR: _OF_EDITORS,
    McpClient.VSCODE: _OF_EDITORS,
    McpClient.CODEX: re.compile(r"(?!)"),
}
"""Environment variables in the form of the client; its other variables, as ``${workspaceFolder}``, are its own."""


@dataclass(frozen=True, slots=True)
class Sorting:
    """The servers of a client, sorted.

    Attributes:
        moved: Name -> entry in the catalog, of those that go behind Callsheet.
        stays: Name -> reason, of those that stay in the client.
        ignored: Name -> fields that Callsheet does not read, of those that go.
    """

    moved: dict[str, dict[str, Any]]
    stays: dict[str, str]
    ignored: dict[str, tuple[str, ...]]


def sort_servers(client: McpClient, servers: Mapping[str, Any], keep: Collection[str]) -> Sorting:
    """Sorts the servers of a client; one that Callsheet could not run in the same way stays where it is."""
    moved: dict[str, dict[str, Any]] = {}
    stays: dict[str, str] = {}
    ignored: dict[str, tuple[str, ...]] = {}
    for name, entry in servers.items():
        if name == OWN:
            continue
        if reason := "kept" if name in keep else _reason(client, name, entry):
            stays[name] = reason
            continue
        moved[name] = _of_codex(entry) if client is McpClient.CODEX else dict(entry)
        if fields := tuple(sorted(_WITHOUT_EFFECT & entry.keys())):
            ignored[name] = fields
    return Sorting(moved, stays, ignored)


def variables_in(entries: Mapping[str, Any]) -> list[str]:
    """Names of the environment variables that entries of a catalog refer to."""
    found = {name for text in strings_in(entries) for name in re.findall(r"\$\{(?:env:)?(\w+)", text)}
    return sorted(found)


def secrets_in(value: object) -> frozenset[str]:
    """Values of environment variables and headers, and of all fields with the name of a secret."""
    return frozenset(_secrets(value, inside=False))


def _secrets(value: object, *, inside: bool) -> Iterator[str]:
    match value:
        case str() if inside:
            yield value
        case dict():
            for name, held in value.items():
                secret = inside or name in ("env", "headers", "http_headers") or is_secret_name(str(name))
                yield from _secrets(held, inside=secret)
        case list():
            for held in value:
                yield from _secrets(held, inside=inside)


def _reason(client: McpClient, name: str, entry: object) -> str:
    """Why a server must stay in the client; empty if it can go."""
    if not isinstance(entry, dict):
        return "its entry is not an object"
    known = _READ | _WITHOUT_EFFECT | (_CODEX if client is McpClient.CODEX else set())
    if other := sorted(entry.keys() - known):
        return f"Callsheet does not know its field {other[0]!r}"
    if variable := next(_unknown_variables(client, entry), ""):
        return f"Callsheet does not fill in {variable} as this client does"
    if _is_gateway(entry):
        return "it is Callsheet itself"
    try:
        converted = _of_codex(entry) if client is McpClient.CODEX else entry
        json.dumps({name: converted}, allow_nan=False, ensure_ascii=False).encode()
        read_servers({"mcpServers": {name: {**converted, "disabled": False}}}, "it")
    except CatalogError as error:
        return f"Callsheet cannot read it: {str(error).removeprefix('it: ')}"
    except (TypeError, ValueError):
        return "it has a value that JSON cannot hold"
    return ""


def _unknown_variables(client: McpClient, entry: Mapping[str, Any]) -> Iterator[str]:
    """Texts that are a variable to the client or to Callsheet, but not the same one to both."""
    for text in strings_in(entry):
        for found in _VARIABLE.finditer(text):
            if not _SHARED_VARIABLES[client].fullmatch(found[0]):
                yield found[0]


def _is_gateway(entry: Mapping[str, Any]) -> bool:
    command, args = entry.get("command"), entry.get("args")
    words = [command, *(args if isinstance(args, list) else [])]
    names = {PureWindowsPath(Path(word).name).stem for word in words if isinstance(word, str)}
    return OWN in names and "mcp" in names


def _of_codex(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of Codex in the form of an ``mcp.json``.

    Raises:
        CatalogError: A field has a form without a counterpart.
    """
    fields = {name: value for name, value in entry.items() if name not in _CODEX}
    try:
        headers = {
            **entry.get("http_headers", {}),
            **{header: f"${{{variable}}}" for header, variable in entry.get("env_http_headers", {}).items()},
        }
        passed = {variable: f"${{{variable}:-}}" for variable in entry.get("env_vars", [])}
        env = {**passed, **entry.get("env", {})}
    except (AttributeError, TypeError) as error:
        raise CatalogError("a field has a form that an mcp.json does not have") from error
    if variable := entry.get("bearer_token_env_var"):
        headers["Authorization"] = f"Bearer ${{{variable}}}"
    added = {"headers": headers, "env": env, "disabled": entry.get("enabled") is False}
    return {**fields, **{name: value for name, value in added.items() if value}}
