"""Colours and words of dependencies, which the explorer shows."""
