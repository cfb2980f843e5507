"""One step of a plan: the worker, what it is told, what it asks for, and the final answer.

What a worker sees and does comes in here; the tools it holds are made in ``agents.tools``.
"""
