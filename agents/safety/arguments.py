"""Says whether arguments fit a tool's schema, with errors that a model can correct, and without silent gaps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from callsheet.agents.calls.refusal import Refusal
from callsheet.graphs.text.hidden import shown

_MOST_SAID = 3
_LONGEST = 300
_LONGEST_REASON = 200
_UNCHECKED = "the arguments were not checked: {}"
_CORRECT = "Nothing was sent: correct them and call again"


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether arguments fit a schema.

    Attributes:
        misfit: What does not fit, in words for a model; None if nothing is wrong with the arguments.
        errors: The first of these problems.
        unchecked: Why they could not be validated; None if they were.
    """

    misfit: Refusal | None = None
    errors: tuple[str, ...] = ()
    unchecked: Refusal | None = None


FitTo = Callable[[Mapping[str, Any]], Fit]
"""A function that validates the arguments of one call against a schema."""


def fit_of(schema: Mapping[str, object], arguments: Mapping[str, object]) -> Fit:
    """Validates arguments against the JSON Schema of an object.

    External references are never fetched. The check may take one second of processor time, so that a busy machine makes
    no difference. A schema that cannot be used checks nothing, and the result says so.
    """
    # The library is imported for the first check: making an agent needs none.
    from callsheet.agents.safety.schema_validators import schema_errors

    try:
        errors = schema_errors(schema, arguments)
    except TimeoutError:
        return Fit(unchecked=Refusal(_UNCHECKED.format("the check against its schema takes too long")))
    except BaseException as error:  # a foreign schema may be anything
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # of a library in Rust
            raise
        said = shown(f"{type(error).__name__}: {error}")[:_LONGEST_REASON]
        return Fit(unchecked=Refusal(_UNCHECKED.format(f"its schema cannot be used ({said})")))
    if not errors:
        return Fit()
    more = f"; and {len(errors) - _MOST_SAID} more" if len(errors) > _MOST_SAID else ""
    words = tuple(map(_in_words, errors[:_MOST_SAID]))
    return Fit(Refusal(f"the arguments do not fit: {'; '.join(words)}{more}. {_CORRECT}"), words)


def fit_of_call(arguments: Mapping[str, object]) -> FitTo:
    """Validates the arguments of one call as ``fit_of`` does; the result is cached while the schema is the same."""
    known: list[tuple[Mapping[str, Any], Fit]] = []

    def fit(schema: Mapping[str, object]) -> Fit:
        if not known or known[0][0] != schema:
            known[:] = [(schema, fit_of(schema, arguments))]
        return known[0][1]

    return fit


def _in_words(error: Any) -> str:
    where = ".".join(map(str, error.absolute_path))
    text = error.message if len(error.message) <= _LONGEST else f"{error.message[:_LONGEST]}…"
    return f"{where}: {text}" if where else str(text)
