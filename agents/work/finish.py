"""How a worker ends its step: in plain words, or by ``finish``, a tool that says how the step ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from pydantic import BaseModel, ConfigDict, ValidationError

from callsheet.agents.planning.plan import Call
from callsheet.agents.work.value_references import ResultValueError, call_value, refers_to_call

FINISH = "finish"
"""The tool by which a worker ends its step; no tool of the catalog gets this name."""
Ending = Literal["done", "cannot", "needs_input", "need_plan"]
OUTCOME = "outcome"
"""Where a worker's last message keeps its outcome, in ``additional_kwargs``."""
_DESCRIPTION = """\
End the task and say how it ended. Call it alone, after you have seen all results. Plain words without a call end the \
task as done, so call it only where that is not all: the task was not done, a person must say something, or later \
steps need data."""
_STATUS = {
    "done": "done",
    "cannot": "it was not done, or only in part",
    "needs_input": "only a person can say what is missing",
    "need_plan": "it takes several workers, or the plan must change",
}


class Finish(BaseModel):
    """A worker's outcome.

    Attributes:
        status: How the step ended.
        answer: What came of it, for people.
        data: The result as JSON, or a reference to the result of a call; None if the text is all that there is.
        missing: What a person must say.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    status: Ending
    answer: str = ""
    data: Any = None
    missing: tuple[str, ...] = ()


def finish_definition(*, replans: bool) -> dict[str, Any]:
    """The tool as a model sees it; ``need_plan`` is offered only if the plan can change."""
    known = [name for name in _STATUS if replans or name != "need_plan"]
    about = "; ".join(f"{name}: {_STATUS[name]}" for name in known)
    properties = {
        "status": {"type": "string", "enum": known, "description": about},
        "answer": {"type": "string", "description": "What came of it; or why it was not done, and what was."},
        "data": {
            "description": 'The result as JSON for later steps, such as a list; or {"$call": "c2", "path": "items"}: '
            "what your second call returned, or the part of it at a path."
        },
        "missing": {"type": "array", "items": {"type": "string"}, "description": "For needs_input: what to ask for."},
    }
    parameters = {"type": "object", "properties": properties, "required": ["status", "answer"]}
    return {"type": "function", "function": {"name": FINISH, "description": _DESCRIPTION, "parameters": parameters}}


def finished(message: BaseMessage, calls: Sequence[Call]) -> AIMessage | None:
    """The last message of a worker that calls ``finish`` alone and correctly; None for any other message.

    Args:
        message: The model's message.
        calls: The worker's calls so far.
    """
    if not isinstance(message, AIMessage) or [call["name"] for call in message.tool_calls] != [FINISH]:
        return None
    told, problem = _read(message.tool_calls[0]["args"], calls)
    if told is None or problem:
        return None
    answer = told.answer.strip() or message.text.strip() or told.status
    kept = {**told.model_dump(mode="json"), "reply": True}
    return message.model_copy(
        update={
            "content": answer,
            "tool_calls": [],
            "additional_kwargs": {**_without_calls(message.additional_kwargs), OUTCOME: kept},
        }
    )


def refused_finish(call: ToolCall, calls: Sequence[Call], *, alone: bool) -> ToolMessage:
    """The answer to a call of ``finish`` that did not end the step."""
    problem = _read(call["args"], calls)[1] if alone else "call finish alone, after you have seen all results"
    return ToolMessage(problem, tool_call_id=call["id"] or "", name=FINISH, status="error", artifact={"effect": "none"})


def _read(args: Mapping[str, Any], calls: Sequence[Call]) -> tuple[Finish | None, str]:
    """The outcome, and what is wrong with it."""
    try:
        told = Finish.model_validate(args)
    except ValidationError as error:
        return None, "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
    try:
        if refers_to_call(told.data):
            call_value(told.data, calls)
    except ResultValueError as error:
        return told, str(error)
    return told, ""


def _without_calls(said: Mapping[str, Any]) -> dict[str, Any]:
    """What a provider said besides the text, without the call in its own form."""
    return {name: value for name, value in said.items() if name not in ("tool_calls", "function_call")}
