"""What may be used, and by whom: consent, pins, quarantine and policy.

Decisions as data and pure functions over them. Asking a person is the orchestrator's work, refusing a call is
the work of ``agents.safety``.
"""
