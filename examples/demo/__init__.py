"""The demo of `make run`: three MCP servers, three LangChain toolkits and a folder of documents."""
