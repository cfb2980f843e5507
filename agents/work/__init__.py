"""One step of a plan: the worker, its task, its requests for tools, and the final answer.

The tools of a worker are made in ``agents.tools``.
"""
