"""What a run adds to ``messages`` before its answer: its plan and its calls, as any chat client shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from callsheet.agents.calls.plan import Call, Plan, StepResult
from callsheet.agents.registry.binding import NO_OUTPUT, names_of
from callsheet.agents.work.context import NAME, plan_lines, written
from callsheet.graphs.text.sanitizing import shown

PART = "callsheet_part"
"""Key in ``response_metadata`` of these messages, which no provider gets."""
_LONGEST, _MOST = 2_000, 500
"""Characters of a result, and of an argument; the state has all of it in ``results``."""


def transcript(run: str, plan: Plan, results: Sequence[StepResult]) -> list[AnyMessage]:
    """The plan and the calls of a run, in the order of the results: each is an AI message and its answer.

    Every provider accepts them within a conversation: each call has an answer right after it, ids are unique over the
    runs of a thread, names fit, and the plan is the text of the first call, because Gemini refuses a call after a text
    of the model. A plan of one step is the request itself, and is not shown.
    """
    calls = {(one.id, call.id): call for one in results for call in one.calls if call.id and call.agent}
    text = f"The plan:\n{plan_lines(plan.steps)}" if len(plan.steps) > 1 else ""
    if not calls:
        return [_said(text, f"{run}-plan", {})] if text else []
    texts = (text, *("" for _ in calls))
    pairs = (_pair(said, call, step, run) for said, ((step, _), call) in zip(texts, calls.items(), strict=False))
    return [message for pair in pairs for message in pair]


def spoken(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """A conversation without what ``transcript`` has added to it: what people and answers say."""
    return [message for message in messages if PART not in message.response_metadata]


def _pair(text: str, call: Call, step: str, run: str) -> tuple[AIMessage, ToolMessage]:
    name = names_of(call.agent, call.tool.removeprefix(f"{call.agent}/"))[0]
    call_id = f"call_{sha256(f'{run} {step} {call.id}'.encode()).hexdigest()[:24]}"
    about = {PART: "call", "step_id": step, "tool": call.tool}
    args = dict(call.args)
    args |= {key: shown(whole, most=_MOST) for key, value in args.items() if len(whole := written(value)) > _MOST}
    asked = _said(text, f"{call_id}-asked", about).model_copy(
        update={"tool_calls": [{"type": "tool_call", "name": name, "args": args, "id": call_id}]}
    )
    answer = shown(call.error or call.output or NO_OUTPUT, most=_LONGEST)
    status: Any = "error" if call.error else "success"
    fields: dict[str, Any] = {"id": call_id, "name": name, "status": status, "response_metadata": about}
    return asked, ToolMessage(answer, tool_call_id=call_id, **fields)


def _said(text: str, message_id: str, about: Mapping[str, Any]) -> AIMessage:
    return AIMessage(text, id=message_id, name=NAME, response_metadata={PART: "plan", **about})
