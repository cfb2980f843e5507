"""Lets a worker read a result piece by piece, if it is too long to be shown whole."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AnyMessage, ToolCall, ToolMessage

from callsheet.agents.planning.plan import StepResult
from callsheet.agents.tools.binding import READ_RESULT
from callsheet.agents.work.answer import report
from callsheet.agents.work.value_references import ResultValueError, result_value, shape, value_of

_HEAD = 1_500
"""Characters of a result that a worker sees at first."""
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
                "id": {"type": "string", "description": "Id of the result."},
                "path": {"type": "string", "description": "A part of it, such as items[0]; empty for all of it."},
                "start": {"type": "integer", "minimum": 0, "description": "The first character, from 0."},
            },
            "required": ["id"],
        },
    },
}


def shown_result(result: StepResult) -> str:
    """An earlier result for a worker: its beginning, and for JSON its shape."""
    value, told = value_of(result), report(result.model_copy(update={"result": _head(result.result)}))
    if isinstance(value, str):
        return told
    written = json.dumps(value, ensure_ascii=False)
    inside = "" if written in result.result else f": {_head(written)}"
    return f"{told}\nThe value of {result.id!r} is {shape(value)}{inside}"


def shown_in_part(results: Sequence[StepResult]) -> bool:
    """Whether one of these results is shown only in part."""
    return any(len(result.result) > _HEAD or len(_written(value_of(result))) > _HEAD for result in results)


def long_answers(messages: Sequence[AnyMessage]) -> tuple[StepResult, ...]:
    """The long answers in a worker's conversation as results; the answer to its second call has the id ``call 2``."""
    answers = [message for message in messages if isinstance(message, ToolMessage)]
    return tuple(
        StepResult(id=f"call {number}", text="", result=message.text)
        for number, message in enumerate(answers, 1)
        if len(message.text) > _LONGEST
    )


def abbreviated(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """A worker's conversation for its model: of each long answer, the beginning and the shape."""
    long = {result.result: result for result in long_answers(messages)}
    return [
        message.model_copy(update={"content": _beginning(long[message.text])})
        if isinstance(message, ToolMessage) and message.text in long
        else message
        for message in messages
    ]


def _beginning(answer: StepResult) -> str:
    about = f"{len(answer.result):,} characters in all, {shape(value_of(answer))}"
    return f"{answer.result[:_BEGINNING]}…\n[{about}; read more with {READ_RESULT}, id {answer.id!r}]"


def answer_reading(call: ToolCall, results: Sequence[StepResult]) -> ToolMessage:
    """A piece of a result, as the answer to a call of ``read_result``."""
    args = call["args"]
    try:
        whole = _written(result_value(args.get("id"), args.get("path"), results))
    except ResultValueError as error:
        return _message(call, str(error), error=True)
    start = args.get("start") or 0
    if not isinstance(start, int) or not 0 <= start < max(1, len(whole)):
        return _message(call, f"start must be a number from 0 to {len(whole) - 1}", error=True)
    piece = whole[start : start + _PIECE]
    left = len(whole) - start - len(piece)
    return _message(call, f"{piece}\n[{left:,} characters follow: start={start + len(piece)}]" if left else piece)


def _written(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _head(text: str) -> str:
    if len(text) <= _HEAD:
        return text
    return f"{text[:_HEAD]}…\n[{len(text):,} characters in all; read more with {READ_RESULT}]"


def _message(call: ToolCall, text: str, *, error: bool = False) -> ToolMessage:
    status: Any = "error" if error else "success"
    return ToolMessage(
        text, tool_call_id=call["id"] or "", name=READ_RESULT, status=status, artifact={"effect": "none"}
    )
