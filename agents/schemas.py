"""Validators of servers' schemas: made once each, never fetching anything, never taking long over a pattern."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import regex
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

SCHEMA_TROUBLE = (
    *(SchemaError, Unresolvable, RecursionError, regex.error, TypeError, ValueError, AttributeError),
    TimeoutError,
)
"""What a schema that cannot be used raises."""
_PATTERN_SECONDS = 0.05
_KNOWN = 1_024
_extended: Any = validators.extend


@lru_cache(maxsize=_KNOWN)
def validator_of(schema: str) -> Any | None:
    """What checks against a schema; None if the schema is not valid itself.

    Args:
        schema: As JSON. What it refers to elsewhere is not fetched.

    Raises:
        ValueError: It is not JSON.
        RecursionError: It is nested too deeply.
    """
    read = json.loads(schema)
    draft = validator_for(read, default=Draft202012Validator)
    try:
        draft.check_schema(read)
    except SchemaError:
        return None
    more: dict[str, Any] = {"pattern": _pattern, "patternProperties": _pattern_properties}
    if "patternProperties" in schema:
        # These compare names with the same patterns, without a limit; what they forbid is left to the server.
        more |= dict.fromkeys(("additionalProperties", "unevaluatedProperties"), _unchecked)
    patient: Any = _extended(draft, more)
    return patient(read, registry=Registry())


def _unchecked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    return iter(())


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not _matches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    for pattern, subschema in patterns.items() if validator.is_type(instance, "object") else ():
        for name, value in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _matches(pattern: str, text: str) -> bool:
    """Whether a server's pattern is in a text; one that would take for ever is not held against the text."""
    try:
        return regex.search(pattern, text, timeout=_PATTERN_SECONDS) is not None
    except TimeoutError:
        return True
