"""Decisions of the supervisor's nodes: the request, the way to plan, limits, mapped steps."""
