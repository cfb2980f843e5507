"""Configurations of four MCP clients, as they look on somebody's machine."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

from callsheet.orchestrator.server.gateway.clients import McpClient, config_file
from callsheet.orchestrator.server.gateway.clients.jsonc_document import JsoncDocument

FILES = Path(__file__).parents[2] / "orchestrator" / "server" / "gateway" / "clients" / "files"
CLIENTS = tuple(map(str, McpClient))
SECRET = "canary-timezone-7c1"


def configured(client: str) -> Path:
    """The user's configuration of a client, with three servers, of which one or two can be moved."""
    file = config_file(McpClient(client), None, os.environ)
    file.parent.mkdir(parents=True, exist_ok=True)
    (source,) = FILES.glob(f"{client}.*")
    file.write_bytes(source.read_bytes())
    return file


def parsed(file: Path) -> dict[str, Any]:
    """The content of a configuration or of a catalog."""
    text = file.read_text(encoding="utf-8-sig")
    return tomllib.loads(text) if file.suffix == ".toml" else dict(JsoncDocument(text, "", file).value)


def servers(file: Path) -> dict[str, Any]:
    """The servers of a configuration or of a catalog."""
    content = parsed(file)
    return dict(next(content[key] for key in ("mcpServers", "servers", "mcp_servers") if key in content))


def comments(text: str) -> list[str]:
    """The comments that begin a line."""
    marks = ("//", "#", "/*")
    return [line.strip() for line in text.splitlines() if line.strip().startswith(marks)]
