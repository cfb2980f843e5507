"""Catalogs that can change while the program runs: MCP servers, and Python objects."""
