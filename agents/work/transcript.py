"""What a run adds to ``messages`` before its answer: its plan and its calls, as any chat client shows them."""

from __future__ import annotations

from collections.abc import Sequence
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
    of the model. A plan of one step is the request itself, and is not shown; nor is one without any call.
    """
    calls = {(one.id, call.id): call for one in results for call in one.calls if call.id and call.agent}
    text = f"The plan:\n{plan_lines(plan.steps)}" if len(plan.steps) > 1 else ""
    messages: list[AnyMessage] = []
    for (step, _), call in calls.items():
        messages += _pair("" if messages else text, call, step, run)
    return messages


def spoken(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """A conversation without what ``transcript`` has added to it: what people and answers say."""
    return [message for message in messages if PART not in message.response_metadata]


def _pair(text: str, call: Call, step: str, run: str) -> tuple[AIMessage, ToolMessage]:
    name = names_of(call.agent, call.tool.removeprefix(f"{call.agent}/"))[0]
    call_id = f"call_{sha256(f'{run} {step} {call.id}'.encode()).hexdigest()[:24]}"
    about = {PART: "call", "step_id": step, "tool": call.tool}
    args = dict(call.args)
    args |= {key: shown(whole, most=_MOST) for key, value in args.items() if len(whole := written(value)) > _MOST}
    called = [{"type": "tool_call", "name": name, "args": args, "id": call_id}]
    asked = AIMessage(text, id=f"{call_id}-asked", name=NAME, tool_calls=called, response_metadata=about)
    answer = shown(call.error or call.output or NO_OUTPUT, most=_LONGEST)
    status: Any = "error" if call.error else "success"
    fields: dict[str, Any] = {"id": call_id, "name": name, "status": status, "response_metadata": about}
    return asked, ToolMessage(answer, tool_call_id=call_id, **fields)
