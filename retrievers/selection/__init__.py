"""Selects agents and tools for a query, within a budget.

`selector` combines ranking, scoring, and budget; `decision` judges the best tools by a
`decision_models`; `result` has the selection and its trace.
"""
