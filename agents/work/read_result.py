"""Lets a worker read a result piece by piece, if it is too long to be shown whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AnyMessage, ToolCall, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from callsheet.agents.calls.plan import Call, StepResult
from callsheet.agents.registry.binding import READ_RESULT
from callsheet.agents.work.context import reports, written
from callsheet.agents.work.value_references import ResultValueError, named_value, shape, value_of

_LONGEST, _BEGINNING = 20_000, 8_000
"""Characters of the answer to its own call that a worker sees whole; of a longer one, it sees the beginning."""
_WORTH_AN_ID = 500
"""Characters from which an answer is worth a reference, so that its id is shown."""
_PIECE = 4_000


class _Reading(BaseModel):
    """Read more of a result that is shown in part: up to 4,000 characters at once."""

    model_config = ConfigDict(title=READ_RESULT)

    id: str = Field(description="Id of the result of a step (1) or of a call (c2, 1/c2)")
    path: str = Field(default="", description="A part of it, such as items[0]; empty for all of it")
    start: int = Field(default=0, ge=0, description="The first character, from 0")


READ_DEFINITION = convert_to_openai_tool(_Reading)


def shown_in_part(results: Sequence[StepResult], calls: Sequence[Call]) -> bool:
    """Whether an earlier result, or the answer to one of the worker's calls, is shown only in part."""
    return READ_RESULT in reports(results) or any(len(call.output) > _LONGEST for call in calls)


def abbreviated(messages: Sequence[AnyMessage], calls: Sequence[Call]) -> list[AnyMessage]:
    """A worker's conversation for its model: a longer answer has its id; of a long one, there is the beginning."""
    long = {call.output: call for call in calls if call.id and len(call.output) > _WORTH_AN_ID}
    return [
        message.model_copy(update={"content": _beginning(long[message.text])})
        if isinstance(message, ToolMessage) and message.text in long
        else message
        for message in messages
    ]


def _beginning(call: Call) -> str:
    if len(call.output) <= _LONGEST:
        return f"{call.output}\n[{call.id}]"
    about = f"{len(call.output):,} characters in all, {shape(value_of(call))}"
    return f"{call.output[:_BEGINNING]}…\n[{about}; read more with {READ_RESULT}, id {call.id!r}]"


def answer_reading(call: ToolCall, results: Sequence[StepResult], calls: Sequence[Call]) -> ToolMessage:
    """A piece of a result, as the answer to a call of ``read_result``."""
    told: Any = {"tool_call_id": call["id"] or "", "name": READ_RESULT, "artifact": {"effect": "none"}}
    try:
        asked = _Reading.model_validate(call["args"])
        whole = written(named_value(asked.id, asked.path, results, calls))
        if asked.start >= max(1, len(whole)):
            raise ResultValueError(f"start must be a number from 0 to {len(whole) - 1}")
    except (ValidationError, ResultValueError) as error:
        return ToolMessage(str(error), status="error", **told)
    piece = whole[asked.start : asked.start + _PIECE]
    left = len(whole) - asked.start - len(piece)
    more = f"\n[{left:,} characters follow: start={asked.start + len(piece)}]" if left else ""
    return ToolMessage(piece + more, **told)
