"""MCP servers: sessions, transports, limits, and the catalogs of running servers.

One session per run and server, owned by one task. `session_pool` calls tools; `catalogs` lists them.
"""
