"""Values of earlier results: reading them by path, and passing them to tools by reference."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError

from callsheet.agents.planning.plan import StepResult
from callsheet.agents.tools.binding import RUN_PROGRAM
from callsheet.graphs.catalog.errors import CallsheetError

FROM, PATH = "$from", "path"
_LONGEST_PATH = 500


class ResultValueError(CallsheetError, ValueError):
    """There is no such result, or no value at a path in it."""


def value_of(result: StepResult) -> Any:
    """The value of a step: the output of its last successful call or program, parsed if JSON; otherwise its answer."""
    told = [call for call in result.calls if call.agent or call.tool == RUN_PROGRAM]
    outputs = [call.output for call in told if not call.error and call.output]
    text = outputs[-1] if outputs else result.result
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def value_at(value: Any, path: str) -> Any:
    """The value at a path such as ``items[0].id`` (JMESPath); the value itself for an empty path.

    Raises:
        ResultValueError: The path is malformed, or there is no value.
    """
    if not path:
        return value
    try:
        at = jmespath.search(path[:_LONGEST_PATH], value)
    except JMESPathError as error:
        raise ResultValueError(f"{path!r} is not a path such as items[0].id: {error}") from error
    if at is None:
        raise ResultValueError(f"there is nothing at {path!r}; there is {shape(value)}")
    return at


def resolved(arguments: Mapping[str, Any], results: Sequence[StepResult]) -> dict[str, Any]:
    """The arguments of a call, with each ``{"$from": "1", "path": "items[0].id"}`` replaced by its value.

    Raises:
        ResultValueError: A reference has no result, or no value at its path.
    """

    def fill(value: Any) -> Any:
        if isinstance(value, Mapping):
            if FROM in value and value.keys() <= {FROM, PATH}:
                return result_value(value[FROM], value.get(PATH), results)
            return {key: fill(item) for key, item in value.items()}
        return [fill(item) for item in value] if isinstance(value, list) else value

    return {name: fill(value) for name, value in arguments.items()}


def shape(value: Any) -> str:
    """A short description of a value: type, size and fields."""
    match value:
        case dict():
            names = ", ".join(map(str, list(value)[:12]))
            return f"an object of {len(value)} fields ({names})"
        case list():
            inside = f", the first {shape(value[0])}" if value else ""
            return f"a list of {len(value)} items{inside}"
        case str():
            return f"a text of {len(value):,} characters"
        case _:
            return json.dumps(value)


def result_value(name: object, path: object, results: Sequence[StepResult]) -> Any:
    """The value at a path of the result with this id.

    Raises:
        ResultValueError: There is no such result, or no value at the path.
    """
    known = {result.id: result for result in results}
    if (result := known.get(str(name))) is None:
        raise ResultValueError(f"there is no earlier result {str(name)!r}; there are: {', '.join(known) or 'none'}")
    if not isinstance(path, str | None):
        raise ResultValueError(f"the path of a reference must be a text, not {path!r}")
    return value_at(value_of(result), path or "")
