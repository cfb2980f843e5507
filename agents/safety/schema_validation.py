"""Validates values against foreign schemas: without network access, with a time limit, and without silent gaps."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import attrs
import regex
from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError
from jsonschema.validators import validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from callsheet.graphs.text.sanitizing import shown

_BROKEN = (Unresolvable, RecursionError, regex.error, TypeError, ValueError, AttributeError)
_SECONDS, _PATTERN_SECONDS = 1.0, 0.25
_KNOWN, _LONGEST = 1_024, 200
_UNTIL: ContextVar[float] = ContextVar("callsheet_schema_until", default=float("inf"))
_extended: Any = validators.extend
Keyword = Callable[[Any, Any, Any, Any], Iterator[ValidationError] | None]


@dataclass(frozen=True, slots=True)
class Checked:
    """Result of a validation.

    Attributes:
        unchecked: Why the value could not be validated; empty if it was. There are no errors then, which does not mean
            that the value fits.
    """

    errors: tuple[ValidationError, ...] = ()
    unchecked: str = ""


def checked(schema: Any, value: Any) -> Checked:
    """Validates a value against a schema.

    Args:
        schema: JSON Schema from any source. External references are never fetched. The check may take one second of
            processor time, so that a busy machine makes no difference.
        value: The value.
    """
    until = _UNTIL.set(time.thread_time() + _SECONDS)
    try:
        return Checked(tuple(sorted(_validator_of(json.dumps(schema)).iter_errors(value), key=_order)))
    except TimeoutError:
        return Checked(unchecked="the check against its schema takes too long")
    except _BROKEN as error:
        said = shown(f"{type(error).__name__}: {error}")[:_LONGEST]
        return Checked(unchecked=f"its schema cannot be used ({said})")
    finally:
        _UNTIL.reset(until)


def _order(error: ValidationError) -> tuple[str, list[str]]:
    """By message and place; the error's own text would contain the whole value and schema each time."""
    return error.message, [str(part) for part in error.absolute_path]


@lru_cache(maxsize=_KNOWN)
def _validator_of(schema: str) -> Any:
    """Compiles a validator; errors are not cached.

    Raises:
        ValueError: The schema itself is invalid.
        TimeoutError: It is too large to validate in time.
    """
    read = json.loads(schema)
    draft = validator_for(read, default=Draft202012Validator)
    if (wrong := next(_timely(draft, {})(draft.META_SCHEMA).iter_errors(read), None)) is not None:
        raise ValueError(wrong.message)
    more: dict[str, Any] = {"pattern": _pattern, "patternProperties": _pattern_properties}
    if "patternProperties" in schema:
        # The library's versions match names against the same patterns, without a limit.
        more |= {"additionalProperties": _additional_properties, "unevaluatedProperties": _beyond_us}
    return _timely(draft, more)(read, registry=Registry())


def _timely(draft: Any, more: dict[str, Any]) -> Any:
    """The validators of a draft, some replaced, which stop at the deadline."""
    known: dict[str, Keyword] = {**draft.VALIDATORS, **more}
    timely: Any = _extended(draft, {name: _bounded(check) for name, check in known.items()})
    # jsonschema's own switches back to the library's validators where a subschema has its own "$schema".
    timely.evolve = attrs.evolve
    return timely


def _bounded(check: Keyword) -> Keyword:
    """Checks the deadline at every keyword: nested references can make a small schema take forever."""

    def bounded(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
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
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
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
    """Whether a server's pattern matches a text.

    Raises:
        TimeoutError: It takes too long.
    """
    _check_deadline()
    return regex.search(pattern, text, timeout=_PATTERN_SECONDS) is not None
