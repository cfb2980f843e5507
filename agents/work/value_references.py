"""Values of results: reading them by path, and passing them to tools by reference."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError

from callsheet.agents.calls.plan import Call, StepResult
from callsheet.graphs.catalog.errors import CallsheetError

FROM, CALL, PATH = "$from", "$call", "path"
_LONGEST_PATH = 500


class ResultValueError(CallsheetError, ValueError):
    """There is no such result, or no value at a path in it."""


def value_of(result: StepResult | Call) -> Any:
    """The value of a step, as its worker gave it: its data, else its text; of a call, what it returned.

    A text that is JSON counts as what it says.

    Raises:
        ResultValueError: The data of the step refer to a call that is not there, or to nothing in its result.
    """
    if isinstance(result, StepResult) and result.data is not None:
        return resolved(result.data, (), result.calls)
    text = result.result if isinstance(result, StepResult) else result.output
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def named_value(name: object, path: object, results: Sequence[StepResult], calls: Sequence[Call] = ()) -> Any:
    """The value at a path of a result.

    Args:
        name: ``1`` is step 1, ``1/c2`` its second call, and ``c2`` the worker's own second call.
        path: JMESPath, such as ``items[0].id``; all of the value if empty.
        results: The results of steps.
        calls: The worker's own calls.

    Raises:
        ResultValueError: There is no such result, or no value at the path.
    """
    made = {call.id: call for call in calls}
    made |= {f"{result.id}/{call.id}": call for result in results for call in result.calls if call.id}
    known: dict[str, StepResult | Call] = {result.id: result for result in results}
    known |= {called: call for called, call in made.items() if called and not call.error}
    if str(name) not in known:
        raise ResultValueError(f"there is no earlier result {str(name)!r}; there are: {', '.join(known) or 'none'}")
    if not isinstance(path, str | None):
        raise ResultValueError(f"the path of a reference must be a text, not {path!r}")
    value = value_of(known[str(name)])
    try:
        at = jmespath.search(path[:_LONGEST_PATH], value) if path else value
    except JMESPathError as error:
        raise ResultValueError(f"{path!r} is not a path such as items[0].id: {error}") from error
    if at is None and path:
        raise ResultValueError(f"there is nothing at {path!r}; there is {shape(value)}")
    return at


def resolved(value: Any, results: Sequence[StepResult], calls: Sequence[Call] = ()) -> Any:
    """A value, such as the arguments of a call, with each reference in it replaced by what it stands for.

    ``{"$from": "1", "path": "items[0].id"}`` is what step 1 said; ``{"$call": "c2"}`` is what a call returned.

    Raises:
        ResultValueError: A reference has no result, or no value at its path.
    """
    if isinstance(value, Mapping):
        for kind in (FROM, CALL):
            if kind in value and value.keys() <= {kind, PATH}:
                return named_value(value[kind], value.get(PATH), results, calls)
        return {key: resolved(item, results, calls) for key, item in value.items()}
    return [resolved(item, results, calls) for item in value] if isinstance(value, list) else value


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
