"""A catalog behind three tools, for any MCP client: find, read, call.

``catalog_gateway`` knows catalog, policy and calls; ``mcp_gateway`` speaks MCP; ``serving`` knows transports and users.
Nothing in here ranks or runs a model.
"""
