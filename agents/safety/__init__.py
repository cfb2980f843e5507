"""Checks on a call before it is sent and on its result: arguments, schemas, secrets, definitions, effects."""
