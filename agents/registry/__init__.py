"""The tools of a catalog, bound to their agents, and what is checked before a call is sent."""
