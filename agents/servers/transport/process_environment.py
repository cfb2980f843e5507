"""The environment of a server's process: its variables and its program."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping

from mcp.client.stdio import get_default_environment

from callsheet.agents.tools.tool_result import Fault
from callsheet.graphs.catalog.formats.server_config import ServerConfig

# Paths, not secrets. Behind a company's TLS proxy, uvx and npx cannot download without them.
CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
_COMES_WITH = {
    "uv": "install it: pip install uv",
    "uvx": "install it: pip install uv",
    "node": "install Node.js",
    "npx": "install Node.js",
}


def environment_of(server: ServerConfig) -> dict[str, str]:
    """The variables of a server's process: MCP's safe defaults, certificate paths, and those of its entry."""
    certificates = {name: value for name in CERTIFICATES if (value := os.environ.get(name))}
    return get_default_environment() | certificates | server.env


def program_of(command: str, environment: Mapping[str, str]) -> str:
    """The path of a command's program.

    Raises:
        Fault: It is not found; the message says how to install it.
    """
    program = shutil.which(command, path=environment.get("PATH"))
    if program is None:
        raise Fault("start", f"the command {command!r} was not found: {_cure(command)}")
    return program


def _cure(command: str) -> str:
    first, *rest = command.split()[:4] or [""]
    if rest and shutil.which(first):
        return f"no shell reads it; write the program alone, {first!r}, and {shlex.join(rest)!r} word by word in 'args'"
    return _COMES_WITH.get(command, "install it or correct the path")
