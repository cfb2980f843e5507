"""The clients whose configuration is written: where it lies and what form it has.

Sources: code.claude.com/docs/en/mcp, cursor.com/docs/mcp,
code.visualstudio.com/docs/agents/reference/mcp-configuration, developers.openai.com/codex/mcp.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from callsheet.orchestrator.server.gateway.clients.config_document import ConfigDocument, text_of


class McpClient(StrEnum):
    """An MCP client, by its name on the command line."""

    CLAUDE_CODE = "claude-code"
    CURSOR = "cursor"
    VSCODE = "vscode"
    CODEX = "codex"


_IN_PROJECT = {
    McpClient.CLAUDE_CODE: ".mcp.json",
    McpClient.CURSOR: ".cursor/mcp.json",
    McpClient.VSCODE: ".vscode/mcp.json",
    McpClient.CODEX: ".codex/config.toml",
}
_KEYS = {
    McpClient.CLAUDE_CODE: "mcpServers",
    McpClient.CURSOR: "mcpServers",
    McpClient.VSCODE: "servers",
    McpClient.CODEX: "mcp_servers",
}


def config_file(client: McpClient, project: Path | None, environ: Mapping[str, str]) -> Path:
    """The configuration of a client.

    Args:
        client: The client.
        project: Folder of the project; None: the user's own configuration.
        environ: Environment variables: ``CLAUDE_CONFIG_DIR`` and ``CODEX_HOME`` move the user's configuration.
    """
    if project is not None:
        return project / _IN_PROJECT[client]
    match client:
        case McpClient.CLAUDE_CODE:
            return Path(environ.get("CLAUDE_CONFIG_DIR") or "~").expanduser() / ".claude.json"
        case McpClient.CURSOR:
            return Path("~/.cursor/mcp.json").expanduser()
        case McpClient.VSCODE:
            from platformdirs import user_config_path

            return user_config_path("Code", appauthor=False, roaming=True) / "User" / "mcp.json"
        case McpClient.CODEX:
            return Path(environ.get("CODEX_HOME") or "~/.codex").expanduser() / "config.toml"


def read_document(client: McpClient, content: bytes, file: Path) -> ConfigDocument:
    """A configuration of a client.

    Raises:
        SettingsError: It is not valid.
    """
    if client is McpClient.CODEX:
        from callsheet.orchestrator.server.gateway.clients.toml_document import TomlDocument

        return TomlDocument(text_of(content, file), _KEYS[client], file)
    from callsheet.orchestrator.server.gateway.clients.jsonc_document import JsoncDocument

    return JsoncDocument(text_of(content, file), _KEYS[client], file)
