"""Serves a catalog to any MCP client through three tools: find, read and call.

``catalog_gateway`` has the operations, ``mcp_gateway`` speaks MCP, and ``serving`` handles transports and users. No
module here ranks tools or runs a model.
"""
