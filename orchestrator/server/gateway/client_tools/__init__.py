"""The tools that a client of the gateway sees."""
