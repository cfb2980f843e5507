"""Evaluates a retriever on labelled queries: queries, metrics and error analysis."""
