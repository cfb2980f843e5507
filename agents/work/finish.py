"""How a worker ends its task: by the tool ``finish``, or by plain words after a call that succeeded."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from callsheet.agents.calls.plan import Call, ResultValueError, Status, StepEnd, resolved
from callsheet.agents.calls.tool_result import answer_to
from callsheet.agents.models.chat_models import cut_reason
from callsheet.agents.registry.binding import RUN_PROGRAM
from callsheet.graphs.text.sanitizing import error_lines

FINISH = "finish"
"""The tool by which a worker ends its task; no tool of the catalog gets this name."""
OUTCOME = "outcome"
"""Where a worker's last message keeps its outcome, in ``additional_kwargs``."""
_REPLAN = "need_plan"
_NOT_ALONE = "call finish alone, after you have seen all results"
NOTHING_DONE = (
    "No call has succeeded, so plain words do not end this task. Call the tools that it needs; or call finish, and say "
    "how it ended: done if there was nothing to call, cannot if it was not done."
)
"""What a worker is told that ends in plain words and has done nothing."""
_QUOTED = 200
"""Characters of a cut answer in its error."""
_STATUSES: Mapping[str, Status] = {"done": "done", "partly": "partly", "cannot": "failed"}


class StepFinish(BaseModel):
    """How one step ended."""

    model_config = ConfigDict(extra="forbid")

    status: Literal["done", "partly", "cannot"]
    data: Any = None


class Finish(BaseModel):
    """End a task that plain words do not: not all done, a question to a person, or data. Call it alone."""

    model_config = ConfigDict(title=FINISH)

    status: Literal["done", "partly", "cannot", "needs_input", "need_plan"] = Field(
        description="needs_input: only a person can say what is missing; need_plan: the plan must change"
    )
    answer: str = Field(default="", description="For people")
    data: Any = Field(default=None, description='For later steps; or {"$call": "c2", "path": "items"}')
    missing: list[str] = Field(default_factory=list)
    steps: dict[str, StepFinish] = Field(default_factory=dict)


_STEPS = {
    "type": "object",
    "description": 'By step id, only what differs: {"2": {"status": "done" | "partly" | "cannot", "data": ...}}',
}


def finish_definition(*, replans: bool, steps: Sequence[str] = ()) -> dict[str, Any]:
    """The tool as a model sees it.

    ``need_plan`` is offered only if the plan can change, and ``steps`` only to a worker of several.
    """
    definition = convert_to_openai_tool(Finish)
    properties = definition["function"]["parameters"]["properties"]
    del properties["steps"]
    for one in properties.values():
        one.pop("default", None)
    if len(steps) > 1:
        properties["steps"] = _STEPS
    if not replans:
        status = properties["status"]
        status["enum"].remove(_REPLAN)
        status["description"] = status["description"].partition(f"; {_REPLAN}")[0]
    return definition


def finished(message: BaseMessage, calls: Sequence[Call], steps: Sequence[str] = ()) -> AIMessage | None:
    """The last message of a worker that calls ``finish`` alone and correctly; None for any other message.

    Its text is the worker's words; without any, the data.
    """
    if not isinstance(message, AIMessage) or [call["name"] for call in message.tool_calls] != [FINISH]:
        return None
    told = _read(message.tool_calls[0]["args"], calls, steps)
    if isinstance(told, str):
        return None
    said = {**message.additional_kwargs, OUTCOME: {**told.model_dump(mode="json"), "reply": True}}
    said.pop("tool_calls", None)
    words = told.answer.strip() or message.text.strip()
    if not words and told.data is not None:
        value = resolved(told.data, (), calls)
        words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return message.model_copy(update={"content": words or told.status, "tool_calls": [], "additional_kwargs": said})


def refused_finish(call: ToolCall, calls: Sequence[Call], steps: Sequence[str], *, alone: bool) -> ToolMessage:
    """The answer to a call of ``finish`` that did not end the task."""
    problem = str(_read(call["args"], calls, steps)) if alone else _NOT_ALONE
    return answer_to(call, problem, {"effect": "none"}, error=True)


def _read(args: Mapping[str, Any], calls: Sequence[Call], steps: Sequence[str]) -> Finish | str:
    """The outcome, or what is wrong with it."""
    try:
        told = Finish.model_validate(args)
        resolved(told.data, (), calls)
        for step_id, end in told.steps.items():
            if step_id not in steps:
                return f"steps: you have no step {step_id!r}; yours are: {', '.join(steps) or 'none'}"
            resolved(end.data, (), calls)
    except ValidationError as error:
        return error_lines(error)
    except ResultValueError as error:
        return str(error)
    return told


def ends_of(declared: Mapping[str, Any]) -> dict[str, StepEnd]:
    """How steps ended by a declared outcome, by their ids."""
    told: Mapping[str, Any] = declared.get("steps") or {}
    return {step_id: StepEnd(status=_STATUSES[end["status"]], data=end.get("data")) for step_id, end in told.items()}


def something_done(calls: Sequence[Call]) -> bool:
    """Whether a call of an agent's tool has succeeded, or a program that only computes."""
    callers = {call.id.partition(".")[0] for call in calls if "." in call.id}
    for call in calls:
        computes = call.tool == RUN_PROGRAM and call.id not in callers
        if not call.error and (call.agent or computes):
            return True
    return False


def outcome_of(last: AnyMessage, calls: Sequence[Call], *, words_end: bool = False) -> tuple[Status, str]:
    """How the task ended, and why it was not done: by the declared outcome, otherwise by the plain words.

    Plain words mean done if a call has succeeded, or if ``words_end`` a task in any case.
    """
    declared, text = last.additional_kwargs.get(OUTCOME), last.text.strip()
    if isinstance(declared, dict):
        return _declared(declared, text)
    refused = [call.error for call in calls if call.kind in ("rejected", "sign_in")]
    if refused and all(call.error for call in calls if call.agent):  # a person's word stands above a model's
        return "failed", refused[-1]
    if reason := cut_reason(last):
        told = f"the model's answer was cut at its token limit (finish reason {reason!r}: raise its max_tokens)"
        return "failed", f"{told}; it began: {text[:_QUOTED]}"
    if not text:
        made = ", ".join(dict.fromkeys(call.tool for call in calls))
        return "failed", f"the model ended without an answer, after these calls: {made}" if made else (
            "the model gave neither a tool call nor an answer"
        )
    if not (words_end or something_done(calls)):
        return "failed", text
    return "done", ""


def _declared(declared: Mapping[str, Any], text: str) -> tuple[Status, str]:
    """A declared outcome as a status, and why the task was not done."""
    match declared.get("status"):
        case "done" | "partly" as status:
            return status, ""
        case "needs_input" | "outcome_unknown" as status:
            wanted = [what for what in declared.get("missing", ()) if what not in text]
            return status, f"{text} (missing: {', '.join(wanted)})" if wanted else text
        case "need_plan":
            return "failed", f"the worker asks for another plan: {text}"
        case _:
            return "failed", text
