"""Consent, pins, quarantine and policies: decisions as data, and pure functions over them.

``orchestrator`` asks people for decisions, and ``agents.safety`` refuses calls.
"""
