"""Connects to MCP servers, A2A agents and APIs, with limits, and lists their tools.

One session per run and server, owned by one task. `session_pool` calls tools; `catalogs` lists them.
"""
