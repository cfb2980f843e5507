"""Checks calls and results: arguments, schemas, paths and secrets."""
