"""Agents, tools, parameters and dependencies, read from outside and validated once.

The model (`model`), the ways to read and write it (`loading`, `formats`), and the errors that callers meet
(`errors`). Nothing here starts a process or calls a model.
"""
