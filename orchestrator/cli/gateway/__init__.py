"""Commands around the gateway: ``callsheet mcp install`` and its undo."""
