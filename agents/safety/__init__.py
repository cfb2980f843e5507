"""Checks of calls and results: arguments, schemas, secrets, definitions, effects."""
