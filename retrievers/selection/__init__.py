"""From a query to agents with tools within a budget.

Ranking, scoring, the budget and reranking meet in `selector`; `result` is what comes out, with its trace.
"""
