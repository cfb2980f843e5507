"""Values of results: reading them by path, and passing them to tools by reference."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError

from callsheet.agents.planning.plan import Call, StepResult
from callsheet.graphs.catalog.errors import CallsheetError

FROM, CALL, PATH = "$from", "$call", "path"
_LONGEST_PATH = 500


class ResultValueError(CallsheetError, ValueError):
    """There is no such result, or no value at a path in it."""


def value_of(result: StepResult) -> Any:
    """The value of a step, as its worker gave it: its data, else its text, parsed if that is JSON.

    Raises:
        ResultValueError: The data refer to a call that is not there, or to nothing in its result.
    """
    if result.data is None:
        return parsed(result.result)
    return call_value(result.data, result.calls) if refers_to_call(result.data) else result.data


def refers_to_call(value: object) -> bool:
    """Whether a value is a reference such as ``{"$call": "c2", "path": "items"}``."""
    return isinstance(value, Mapping) and CALL in value and value.keys() <= {CALL, PATH}


def call_value(reference: Mapping[str, Any], calls: Sequence[Call]) -> Any:
    """The value that a reference to a call stands for.

    Raises:
        ResultValueError: There is no such call with a result, or no value at the path.
    """
    made = {call.id: call.output for call in calls if call.id and not call.error}
    return value_at(parsed(_known(str(reference[CALL]), made, "call")), _path(reference))


def parsed(text: str) -> Any:
    """The value that a text is, if it is JSON; otherwise the text."""
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


def resolved(arguments: Mapping[str, Any], results: Sequence[StepResult], calls: Sequence[Call] = ()) -> dict[str, Any]:
    """The arguments of a call, with each reference replaced by its value.

    ``{"$from": "1", "path": "items[0].id"}`` is what step 1 said; ``{"$call": "c2"}`` is what the worker's second call
    returned, and ``{"$call": "1/c2"}`` the second call of step 1.

    Args:
        arguments: The arguments, which may contain references at any place.
        results: The results of earlier steps.
        calls: The worker's own calls.

    Raises:
        ResultValueError: A reference has no result, or no value at its path.
    """

    def fill(value: Any) -> Any:
        if isinstance(value, Mapping):
            if FROM in value and value.keys() <= {FROM, PATH}:
                return result_value(value[FROM], _path(value), results)
            if refers_to_call(value):
                return call_value(value, [*calls, *calls_of_steps(results)])
            return {key: fill(item) for key, item in value.items()}
        return [fill(item) for item in value] if isinstance(value, list) else value

    return {name: fill(value) for name, value in arguments.items()}


def calls_of_steps(results: Sequence[StepResult]) -> list[Call]:
    """The calls of earlier steps, by ids such as ``1/c2``."""
    return [call.model_copy(update={"id": f"{result.id}/{call.id}"}) for result in results for call in result.calls]


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


def result_value(name: object, path: str, results: Sequence[StepResult]) -> Any:
    """The value at a path of the result with this id.

    Raises:
        ResultValueError: There is no such result, or no value at the path.
    """
    return value_at(value_of(_known(str(name), {result.id: result for result in results}, "earlier result")), path)


def _known(name: str, known: Mapping[str, Any], kind: str) -> Any:
    if name not in known:
        raise ResultValueError(f"there is no {kind} {name!r}; there are: {', '.join(known) or 'none'}")
    return known[name]


def _path(reference: Mapping[str, Any]) -> str:
    path = reference.get(PATH)
    if not isinstance(path, str | None):
        raise ResultValueError(f"the path of a reference must be a text, not {path!r}")
    return path or ""
