"""Tasks and costs over installed MCP servers."""
