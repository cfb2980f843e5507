"""The demo of `make run`: three MCP servers and three LangChain toolkits."""
