"""Tool objects for selected tools, each bound to its own agent, and their results."""
