"""Evaluation with a chat model: arms, recorded calls, grades and a report."""
