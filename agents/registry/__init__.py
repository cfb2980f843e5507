"""Binds the tools of a catalog to their agents, and checks each call before it is sent."""
