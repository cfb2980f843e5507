"""A worker's conversation: its first message, its calls and its outcome."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolCall, ToolMessage

from callsheet.agents.models.prompts import BY_REFERENCE, SKILL
from callsheet.agents.planning.plan import Call, Status, StepResult
from callsheet.agents.tools.binding import NEED_TOOL, NO_OUTPUT, BoundTool
from callsheet.agents.work.brief import Brief
from callsheet.agents.work.read_result import shown_result

_LIMITS = frozenset({"length", "max_tokens", "model_length"})
"""Finish reasons of providers for an answer that was cut."""
_BEGINNING = 200  # characters


def opening(brief: Brief) -> str:
    """The first message to a worker: its step, skills for it, the item, and the results that it depends on."""
    skills = [f"{SKILL.format(name=skill.name)}\n{skill.text}" for skill in brief.skills]
    item = [f"The item:\n{brief.item}"] if brief.item else []
    inputs = ["Results of earlier steps:", *map(shown_result, brief.inputs), BY_REFERENCE] if brief.inputs else []
    return "\n\n".join([brief.text, *skills, *item, *inputs])


def inputs_of(messages: Sequence[AnyMessage]) -> tuple[StepResult, ...]:
    """The earlier results in the worker's task."""
    brief = messages[0].additional_kwargs.get("brief", {}) if messages else {}
    return tuple(StepResult(**result) for result in brief.get("inputs", ()))


def calls_of(messages: Sequence[AnyMessage], tools: Mapping[str, BoundTool]) -> tuple[Call, ...]:
    """The tool calls of a worker's conversation, in order."""
    answers = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    calls: list[Call] = []
    for message in messages:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            answer, bound = answers.get(call["id"] or ""), tools.get(call["name"])
            text = answer.text if answer else "no answer"
            failed = answer is None or answer.status == "error"
            kept = answer.artifact if answer is not None else None
            artifact: dict[str, Any] = kept if isinstance(kept, dict) else {"effect": "none"}
            if program := artifact.get("calls"):
                calls += calls_of([AIMessage("", tool_calls=program), *artifact["answers"]], tools)
            calls.append(
                Call(
                    agent=bound.agent if bound else artifact.get("agent", ""),
                    tool=bound.id if bound else artifact.get("tool", call["name"]),
                    args=artifact.get("args", call["args"]),
                    output="" if failed or text == NO_OUTPUT else text,
                    error=text if failed else "",
                    kind=artifact.get("kind", ""),
                    effect=artifact.get("effect", "reported"),
                    files=tuple(file["path"] for file in artifact.get("media", ())),
                    seconds=round(float(artifact.get("seconds") or 0.0), 3),
                    began=round(float(artifact.get("began") or 0.0), 3),
                )
            )
    return tuple(calls)


def made_calls(messages: Sequence[BaseMessage]) -> int:
    """Number of calls, those of programs included."""
    asked = sum(len(message.tool_calls) for message in messages if isinstance(message, AIMessage))
    programs = (message.artifact for message in messages if isinstance(message, ToolMessage))
    return asked + sum(len(made.get("calls", ())) for made in programs if isinstance(made, dict))


def outcome_of(last: AnyMessage, calls: Sequence[Call]) -> tuple[Status, str]:
    """Whether the step was done: by the worker's declared outcome, or else by whether a call succeeded."""
    declared = last.additional_kwargs.get("outcome")
    if isinstance(declared, dict):
        status = declared.get("status")
        return (status if status in ("needs_input", "outcome_unknown") else "failed"), last.text.strip()
    counted = [call for call in calls if call.tool != NEED_TOOL] or calls
    if counted and all(call.error for call in counted):
        return "failed", counted[-1].error
    if reason := _cut(last):
        told = f"the model's answer was cut at its token limit (finish reason {reason!r}: raise its max_tokens)"
        return "failed", f"{told}; it began: {last.text.strip()[:_BEGINNING]}"
    if isinstance(last, AIMessage) and last.invalid_tool_calls and not last.text.strip():
        bad = last.invalid_tool_calls[0]
        return "failed", f"the model's call of {bad['name']!r} has arguments that are no JSON: {bad['args']!s:.200}"
    if not last.text.strip():
        made = ", ".join(dict.fromkeys(call.tool for call in calls))
        return "failed", f"the model ended without an answer, after these calls: {made}" if made else (
            "the model gave neither a tool call nor an answer"
        )
    return "done", ""


def _cut(message: AnyMessage) -> str:
    """The finish reason of an answer that a limit of tokens ended, in its provider's words; empty for others."""
    said = (message.response_metadata.get(name) for name in ("finish_reason", "stop_reason", "done_reason"))
    return next((reason for reason in said if isinstance(reason, str) and reason.lower() in _LIMITS), "")


def done_before(message: BaseMessage, before: Sequence[AnyMessage]) -> AIMessage | None:
    """The earlier answer, if the model only repeats calls that were already successful.

    Small models keep calling; a call that was done once for this step is not done again.
    """
    asked = message.tool_calls if isinstance(message, AIMessage) else []
    answers = {m.tool_call_id: m for m in before if isinstance(m, ToolMessage) and m.status != "error"}
    done = {
        _key(call): answers[call["id"]].text
        for m in before
        if isinstance(m, AIMessage)
        for call in m.tool_calls
        if call["id"] in answers
    }
    if not asked or any(_key(call) not in done for call in asked):
        return None
    return AIMessage("\n".join(dict.fromkeys(done[_key(call)] for call in asked)))


def _key(call: ToolCall) -> str:
    return json.dumps([call["name"], call["args"]], sort_keys=True, default=str)
