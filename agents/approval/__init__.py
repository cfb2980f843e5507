"""Asks a person for approval of calls, reads the answer, and ensures that a single run acts on it."""
