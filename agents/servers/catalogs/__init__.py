"""Loads catalogs that can change while the program runs: those of MCP servers and Python objects."""
