"""Configurations of MCP clients: reading and editing them, installing Callsheet in them, and undoing that."""

from callsheet.orchestrator.server.gateway.clients.change import ConfigChange, FileChange
from callsheet.orchestrator.server.gateway.clients.installation import Installation
from callsheet.orchestrator.server.gateway.clients.mcp_clients import McpClient, config_file

__all__ = ["ConfigChange", "FileChange", "Installation", "McpClient", "config_file"]
