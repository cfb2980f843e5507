"""Selects agents and tools for a query, within a budget.

`selector` combines ranking, scoring, budget and reranking; `result` has the selection and its trace.
"""
