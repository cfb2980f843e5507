"""Ends the task of a worker: by the tool ``finish``, or by plain words after a successful call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from callsheet.agents.calls.outcome import Call, answer_to
from callsheet.agents.calls.plan import ResultValueError, Status, StepEnd, resolve_references
from callsheet.agents.models.chat_models import cut_reason
from callsheet.agents.registry.binding import RUN_PROGRAM
from callsheet.graphs.text.messages import error_lines

FINISH = "finish"
"""The name of the tool by which a worker ends its task; no tool of the catalog gets this name."""
OUTCOME = "outcome"
"""Key in ``additional_kwargs`` of a worker's last message under which its outcome is stored."""
_REPLAN = "need_plan"
_NOT_ALONE = "call finish alone, after you have seen all results"
NOTHING_DONE = (
    "No call has succeeded, so plain words do not end this task. Call the tools that it needs; or call finish, and say "
    "how it ended: done if there was nothing to call, cannot if it was not done."
)
"""The message to a worker that ends with plain words although no call has succeeded."""
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
    "description": (
        'By step id, only what differs: {"2": {"status": "done" | "partly" | "cannot", "data": ...}}. '
        "With status partly, name each step that is not done"
    ),
}


def finish_definition(*, replans: bool, steps: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the definition of ``finish`` for a model.

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


def finish_message(message: BaseMessage, calls: Sequence[Call], steps: Sequence[str] = ()) -> AIMessage | None:
    """Makes the last message of a worker that calls ``finish`` alone and correctly; None for any other message.

    Its text has the worker's words, or the data if there are none.
    """
    if not isinstance(message, AIMessage) or [call["name"] for call in message.tool_calls] != [FINISH]:
        return None
    outcome = _read(message.tool_calls[0]["args"], calls, steps)
    if isinstance(outcome, str):
        return None
    kwargs = {**message.additional_kwargs, OUTCOME: {**outcome.model_dump(mode="json"), "reply": True}}
    # The provider's own form of the call, which is a call no more.
    kwargs.pop("tool_calls", None)
    words = outcome.answer.strip() or message.text.strip()
    if not words and outcome.data is not None:
        value = resolve_references(outcome.data, (), calls)
        words = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    content = words or outcome.status
    return message.model_copy(update={"content": content, "tool_calls": [], "additional_kwargs": kwargs})


def refused_finish(call: ToolCall, calls: Sequence[Call], steps: Sequence[str], *, alone: bool) -> ToolMessage:
    """Answers a call of ``finish`` that did not end the task, with the reason."""
    problem = str(_read(call["args"], calls, steps)) if alone else _NOT_ALONE
    return answer_to(call, problem, error=True)


def _read(args: Mapping[str, object], calls: Sequence[Call], steps: Sequence[str]) -> Finish | str:
    """Parses an outcome; returns it, or what is wrong with it."""
    try:
        outcome = Finish.model_validate(args)
        resolve_references(outcome.data, (), calls)
        for step_id, end in outcome.steps.items():
            if step_id not in steps:
                return f"steps: you have no step {step_id!r}; yours are: {', '.join(steps) or 'none'}"
            resolve_references(end.data, (), calls)
    except ValidationError as error:
        return error_lines(error)
    except ResultValueError as error:
        return str(error)
    return outcome


def ends_of(declared: Mapping[str, Any]) -> dict[str, StepEnd]:
    """Returns how the steps in a declared outcome ended, by their ids."""
    ends: Mapping[str, Any] = declared.get("steps") or {}
    return {step_id: StepEnd(status=_STATUSES[end["status"]], data=end.get("data")) for step_id, end in ends.items()}


def something_done(calls: Sequence[Call]) -> bool:
    """Returns whether a call of an agent's tool has succeeded, or a program that makes no calls."""
    callers = {call.id.partition(".")[0] for call in calls if "." in call.id}
    for call in calls:
        # What a program did that makes calls, its calls say.
        computes = call.tool == RUN_PROGRAM and call.id not in callers
        if not call.error and (call.agent or computes):
            return True
    return False


def work_outcome(last: AnyMessage, calls: Sequence[Call], *, words_end: bool = False) -> tuple[Status, str]:
    """Returns how the task ended and why it was not done, from the declared outcome or from the plain words.

    Plain words mean that it is done if a call has succeeded; with ``words_end``, they always do.
    """
    declared = last.additional_kwargs.get(OUTCOME)
    text = last.text.strip()
    if isinstance(declared, dict):
        return _declared(declared, text)
    refusals = [call.error for call in calls if call.kind in ("rejected", "sign_in")]
    if refusals and all(call.error for call in calls if call.agent):  # a person's word stands above a model's
        return "failed", refusals[-1]
    reason = cut_reason(last)
    if reason:
        cut = f"the model's answer was cut at its token limit (finish reason {reason!r}: raise its max_tokens)"
        return "failed", f"{cut}; it began: {text[:_QUOTED]}"
    if not text:
        tools = ", ".join(dict.fromkeys(call.tool for call in calls))
        if tools:
            return "failed", f"the model ended without an answer, after these calls: {tools}"
        return "failed", "the model gave neither a tool call nor an answer"
    if not (words_end or something_done(calls)):
        return "failed", text
    return "done", ""


def _declared(declared: Mapping[str, Any], text: str) -> tuple[Status, str]:
    """Returns the status of a declared outcome, and why the task was not done."""
    match declared.get("status"):
        case "done" | "partly" as status:
            return status, ""
        case "needs_input" | "outcome_unknown" as status:
            missing = [what for what in declared.get("missing", ()) if what not in text]
            return status, f"{text} (missing: {', '.join(missing)})" if missing else text
        case "need_plan":
            return "failed", f"the worker asks for another plan: {text}"
        case _:
            return "failed", text
