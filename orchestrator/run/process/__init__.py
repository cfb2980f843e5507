"""Holds what the whole process shares: its environment, its catalog, and the updates of the catalog."""
