"""Lets a worker read a result piece by piece, if it is too long to be shown whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, ToolCall, ToolMessage

from callsheet.agents.planning.plan import Call, StepResult
from callsheet.agents.tools.binding import READ_RESULT
from callsheet.agents.work.context import reports, written
from callsheet.agents.work.value_references import (
    CALL,
    ResultValueError,
    call_value,
    calls_of_steps,
    parsed,
    result_value,
    shape,
)

_LONGEST, _BEGINNING = 20_000, 8_000
"""Characters of the answer to its own call that a worker sees whole; of a longer one, it sees the beginning."""
_PIECE = 4_000
READ_DEFINITION: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": READ_RESULT,
        "description": f"Read more of a result that is shown in part: up to {_PIECE:,} characters at once.",
        "parameters": {
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "Id of the result of a step (1) or of a call (c2, 1/c2)."},
                "path": {"type": "string", "description": "A part of it, such as items[0]; empty for all of it."},
                "start": {"type": "integer", "minimum": 0, "description": "The first character, from 0."},
            },
            "required": ["id"],
        },
    },
}


def shown_in_part(results: Sequence[StepResult], calls: Sequence[Call]) -> bool:
    """Whether an earlier result, or the answer to one of the worker's calls, is shown only in part."""
    return READ_RESULT in reports(results) or any(len(call.output) > _LONGEST for call in calls)


def abbreviated(messages: Sequence[AnyMessage], calls: Sequence[Call]) -> list[AnyMessage]:
    """A worker's conversation for its model: of each long answer, the beginning and the shape."""
    ids = {call.output: call.id for call in calls if len(call.output) > _LONGEST}
    return [
        message.model_copy(update={"content": _beginning(message.text, ids[message.text])})
        if isinstance(message, ToolMessage) and message.text in ids
        else message
        for message in messages
    ]


def _beginning(answer: str, name: str) -> str:
    about = f"{len(answer):,} characters in all, {shape(parsed(answer))}"
    return f"{answer[:_BEGINNING]}…\n[{about}; read more with {READ_RESULT}, id {name!r}]"


def answer_reading(call: ToolCall, results: Sequence[StepResult], calls: Sequence[Call]) -> ToolMessage:
    """A piece of a result, as the answer to a call of ``read_result``."""
    args = call["args"]
    try:
        whole = written(_value(str(args.get("id")), args.get("path") or "", results, calls))
    except ResultValueError as error:
        return _message(call, str(error), error=True)
    start = args.get("start") or 0
    if not isinstance(start, int) or not 0 <= start < max(1, len(whole)):
        return _message(call, f"start must be a number from 0 to {len(whole) - 1}", error=True)
    piece = whole[start : start + _PIECE]
    left = len(whole) - start - len(piece)
    return _message(call, f"{piece}\n[{left:,} characters follow: start={start + len(piece)}]" if left else piece)


def _value(name: str, path: object, results: Sequence[StepResult], calls: Sequence[Call]) -> Any:
    if not isinstance(path, str):
        raise ResultValueError(f"the path of a result must be a text, not {path!r}")
    known = [*calls, *calls_of_steps(results)]
    if name in {made.id for made in known}:
        return call_value({CALL: name, "path": path}, known)
    return result_value(name, path, results)


def _message(call: ToolCall, text: str, *, error: bool = False) -> ToolMessage:
    status: Any = "error" if error else "success"
    return ToolMessage(
        text, tool_call_id=call["id"] or "", name=READ_RESULT, status=status, artifact={"effect": "none"}
    )
