"""Values beside a server's schema: nothing is fetched, and no schema takes long, whatever is in it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

import attrs
import regex
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

_TROUBLE = (Unresolvable, RecursionError, regex.error, TypeError, ValueError, AttributeError, TimeoutError)
_SECONDS, _PATTERN_SECONDS = 1.0, 0.05
_KNOWN = 1_024
_UNTIL: ContextVar[float] = ContextVar("callsheet_schema_until", default=float("inf"))
_extended: Any = validators.extend
Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


def errors_of(schema: Any, value: Any) -> list[ValidationError] | None:
    """What of a value does not fit a schema.

    Args:
        schema: JSON Schema, by anybody. What it refers to elsewhere is never fetched; a pattern that takes long is
            not held against the value.
        value: What is to fit.

    Returns:
        What does not, empty if all does; None if the schema cannot be used: it is broken, or takes longer than a
        second.
    """
    until = _UNTIL.set(time.monotonic() + _SECONDS)
    try:
        validator = _validator_of(json.dumps(schema))
        return sorted(validator.iter_errors(value), key=str) if validator else None
    # What a schema that cannot be used raises.
    except _TROUBLE:
        return None
    finally:
        _UNTIL.reset(until)


@lru_cache(maxsize=_KNOWN)
def _validator_of(schema: str) -> Any | None:
    """What checks against a schema; None if the schema is not valid itself, or too large to tell in time."""
    read = json.loads(schema)
    draft = validator_for(read, default=Draft202012Validator)
    more: dict[str, Any] = {"pattern": _pattern, "patternProperties": _pattern_properties}
    if "patternProperties" in schema:
        # These compare names with the same patterns, without a limit; what they forbid is left to the server.
        more |= dict.fromkeys(("additionalProperties", "unevaluatedProperties"), _unchecked)
    try:
        if next(_timely(draft, {})(draft.META_SCHEMA).iter_errors(read), None) is not None:
            return None
    except TimeoutError:
        return None
    return _timely(draft, more)(read, registry=Registry())


def _timely(draft: Any, more: dict[str, Any]) -> Any:
    """The validators of a draft, with others for some keywords, which give up when time is over."""
    known: dict[str, Keyword] = {**draft.VALIDATORS, **more}
    timely: Any = _extended(draft, {name: _bounded(check) for name, check in known.items()})
    # jsonschema's own takes the library's validators wherever a part of a schema has a "$schema" of its own.
    timely.evolve = attrs.evolve
    return timely


def _bounded(check: Keyword) -> Keyword:
    """References that double at each level make a small schema take for ever, so every keyword looks at the time."""

    def bounded(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
        if time.monotonic() > _UNTIL.get():
            raise TimeoutError
        yield from check(validator, value, instance, schema) or ()

    return bounded


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
    if time.monotonic() > _UNTIL.get():
        raise TimeoutError
    try:
        return regex.search(pattern, text, timeout=_PATTERN_SECONDS) is not None
    except TimeoutError:
        return True
