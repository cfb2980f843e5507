"""How a worker ends its step: in plain words, or by ``finish``, a tool that says how the step ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from callsheet.agents.calls.plan import Call
from callsheet.agents.work.value_references import ResultValueError, resolved
from callsheet.graphs.text.sanitizing import error_lines

FINISH = "finish"
"""The tool by which a worker ends its step; no tool of the catalog gets this name."""
OUTCOME = "outcome"
"""Where a worker's last message keeps its outcome, in ``additional_kwargs``."""
ENDINGS = ("done", "cannot", "needs_input", "need_plan")
_REPLAN = "need_plan"
_NOT_ALONE = "call finish alone, after you have seen all results"


class Finish(BaseModel):
    """End a task that was not done, that a person must say something for, or that gives data to later steps.

    Call it alone, after you have seen all results. Plain words without a call end a task that is done.
    """

    model_config = ConfigDict(title=FINISH)

    status: Literal["done", "cannot", "needs_input", "need_plan"] = Field(
        description="cannot: it was not done, or only in part; needs_input: only a person can say what is missing; "
        "need_plan: it takes several workers, or the plan must change"
    )
    answer: str = Field(default="", description="What came of it, for people; or why it was not done, and what was")
    data: Any = Field(
        default=None,
        description='The result as JSON for later steps, such as a list; or {"$call": "c2", "path": "items"}: what the '
        "call [c2] returned, or the part of it at a path",
    )
    missing: list[str] = Field(default_factory=list, description="For needs_input: what to ask for")


def finish_definition(*, replans: bool) -> dict[str, Any]:
    """The tool as a model sees it; ``need_plan`` is offered only if the plan can change."""
    definition = convert_to_openai_tool(Finish)
    status = definition["function"]["parameters"]["properties"]["status"]
    if not replans:
        status["enum"].remove(_REPLAN)
        status["description"] = status["description"].partition(f"; {_REPLAN}")[0]
    return definition


def finished(message: BaseMessage, calls: Sequence[Call]) -> AIMessage | None:
    """The last message of a worker that calls ``finish`` alone and correctly; None for any other message.

    Args:
        message: The model's message.
        calls: The worker's calls so far.
    """
    if not isinstance(message, AIMessage) or [call["name"] for call in message.tool_calls] != [FINISH]:
        return None
    told = _read(message.tool_calls[0]["args"], calls)
    if isinstance(told, str):
        return None
    said = {name: value for name, value in message.additional_kwargs.items() if name != "tool_calls"}
    said |= {OUTCOME: {**told.model_dump(mode="json"), "reply": True}}
    answer = told.answer.strip() or message.text.strip() or told.status
    return message.model_copy(update={"content": answer, "tool_calls": [], "additional_kwargs": said})


def refused_finish(call: ToolCall, calls: Sequence[Call], *, alone: bool) -> ToolMessage:
    """The answer to a call of ``finish`` that did not end the step."""
    problem = str(_read(call["args"], calls)) if alone else _NOT_ALONE
    return ToolMessage(problem, tool_call_id=call["id"] or "", name=FINISH, status="error", artifact={"effect": "none"})


def _read(args: Mapping[str, Any], calls: Sequence[Call]) -> Finish | str:
    """The outcome, or what is wrong with it."""
    try:
        told = Finish.model_validate(args)
        resolved(told.data, (), calls)
    except ValidationError as error:
        return error_lines(error)
    except ResultValueError as error:
        return str(error)
    return told
