"""MCP servers: sessions, transports, limits and the catalogs that live servers give.

One session per run and server, owned by one task. `session_pool` calls tools; `catalogs` lists them.
"""
