"""Validates values against foreign JSON Schemas: without network access, and with a time limit."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from copy import copy
from functools import lru_cache
from typing import Any

import regex
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError
from jsonschema.validators import validator_for

from callsheet.agents.calls.call_context import within

_SECONDS = 1.0
_PATTERN_SECONDS = 0.25
_KNOWN = 1_024
_UNTIL: ContextVar[float] = ContextVar("callsheet_schema_until", default=float("inf"))
_library: Any = validators
Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


def schema_errors(schema: Mapping[str, object], value: Mapping[str, object]) -> list[ValidationError]:
    """Returns what does not fit a schema, in the order of messages and places.

    Raises:
        TimeoutError: It takes more than a second of processor time.
        Exception: The schema cannot be used.
    """
    with within(_UNTIL, time.thread_time() + _SECONDS):
        found = _validator_of(json.dumps(schema)).iter_errors(dict(value))
        # By message and place: an error's own text would contain the whole value and schema each time.
        return sorted(found, key=lambda error: (error.message, [str(part) for part in error.absolute_path]))


@lru_cache(maxsize=_KNOWN)
def _validator_of(schema: str) -> Any:
    """Compiles a validator; errors are not cached: the schema is invalid, or too large to validate in time."""
    read = json.loads(schema)
    draft = validator_for(read, default=Draft202012Validator)
    wrong = next(_timely(draft, {})(draft.META_SCHEMA).iter_errors(read), None)
    if wrong is not None:
        raise ValueError(wrong.message)
    more: dict[str, Any] = {"pattern": _pattern, "patternProperties": _pattern_properties}
    if "patternProperties" in schema:
        # The library's versions match names against the same patterns, without a limit.
        more |= {"additionalProperties": _additional_properties, "unevaluatedProperties": _beyond_us}
    # Without the library's own registry, which fetches what a reference names.
    return _timely(draft, more)(read, registry=_library.SPECIFICATIONS)


def _timely(draft: Any, more: dict[str, Any]) -> Any:
    """Makes a validator class of a draft, with some keywords replaced, that stops at the deadline."""
    known: dict[str, Keyword] = {**draft.VALIDATORS, **more}
    timely: Any = _library.extend(draft, {name: _bounded(check) for name, check in known.items()})
    # jsonschema's own switches back to the library's validators where a subschema has its own "$schema".
    timely.evolve = _evolved
    return timely


def _evolved(validator: Any, **changes: Any) -> Any:
    other = copy(validator)
    for name, value in changes.items():
        setattr(other, name, value)
    other.__attrs_post_init__()  # what the library has prepared for the other schema
    return other


def _bounded(check: Keyword) -> Keyword:
    """Checks the deadline at every keyword: nested references can make a small schema take forever."""

    def bounded(validator: object, value: object, instance: object, schema: object) -> Iterator[ValidationError]:
        _check_deadline()
        yield from check(validator, value, instance, schema) or ()

    return bounded


def _check_deadline() -> None:
    if time.thread_time() > _UNTIL.get():
        raise TimeoutError


def _beyond_us(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "object") and value is not True:
        raise ValueError("unevaluatedProperties beside patternProperties is not supported")
    return iter(())


def _additional_properties(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    known = schema.get("properties", {})
    patterns = schema.get("patternProperties", {})
    for name, item in instance.items() if validator.is_type(instance, "object") else ():
        if name in known or any(_matches(pattern, name) for pattern in patterns):
            continue
        if value is False:
            yield ValidationError(f"Additional properties are not allowed ({name!r} was unexpected)")
        else:
            yield from validator.descend(item, value, path=name)


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(instance, "string") and not _matches(pattern, instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    for pattern, subschema in patterns.items() if validator.is_type(instance, "object") else ():
        for name, value in instance.items():
            if _matches(pattern, name):
                yield from validator.descend(value, subschema, path=name, schema_path=pattern)


def _matches(pattern: str, text: str) -> bool:
    """Returns whether a server's pattern matches a text; raises a TimeoutError if that takes too long."""
    _check_deadline()
    return regex.search(pattern, text, timeout=_PATTERN_SECONDS) is not None
