"""A worker's conversation: its calls and its outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolCall, ToolMessage

from callsheet.agents.planning.plan import Call, Status
from callsheet.agents.tools.binding import NEED_TOOL, NO_OUTPUT, READ_RESULT, BoundTool
from callsheet.agents.work.finish import FINISH, OUTCOME

OWN_TOOLS = (NEED_TOOL, READ_RESULT, FINISH)
"""The worker's own tools, whose calls have no id: nothing refers to their answers."""
_LIMITS = frozenset({"length", "max_tokens", "model_length"})
"""Finish reasons of providers for an answer that was cut."""
_BEGINNING = 200  # characters


def calls_of(messages: Sequence[AnyMessage], tools: Mapping[str, BoundTool], *, before: int = 0) -> tuple[Call, ...]:
    """The tool calls of a worker's conversation, in order, with the ids ``c1``, ``c2`` and so on.

    The ids go on from the calls of an earlier attempt, of which there were ``before``. The calls of a program have the
    ids ``c3.1``, ``c3.2``.
    """
    return tuple(_calls(messages, tools, prefix="c", first=1 + before))


def _calls(messages: Sequence[AnyMessage], tools: Mapping[str, BoundTool], *, prefix: str, first: int) -> list[Call]:
    answers = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    calls: list[Call] = []
    for message in messages:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            answer, bound = answers.get(call["id"] or ""), tools.get(call["name"])
            text = answer.text if answer else "no answer"
            failed = answer is None or answer.status == "error"
            kept = answer.artifact if answer is not None else None
            artifact: dict[str, Any] = kept if isinstance(kept, dict) else {"effect": "none"}
            number = "" if call["name"] in OWN_TOOLS else f"{prefix}{first}"
            first += bool(number)
            if program := artifact.get("calls"):
                inside = [AIMessage("", tool_calls=program), *artifact["answers"]]
                calls += _calls(inside, tools, prefix=f"{number}.", first=1)
            calls.append(
                Call(
                    id=number,
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
    return calls


def made_calls(messages: Sequence[BaseMessage]) -> int:
    """Number of calls, those of programs included."""
    asked = sum(len(message.tool_calls) for message in messages if isinstance(message, AIMessage))
    programs = (message.artifact for message in messages if isinstance(message, ToolMessage))
    return asked + sum(len(made.get("calls", ())) for made in programs if isinstance(made, dict))


def repeats_last(call: ToolCall, messages: Sequence[BaseMessage]) -> bool:
    """Whether a call is the one before it once more, and that one succeeded."""
    made = [one for message in messages if isinstance(message, AIMessage) for one in message.tool_calls]
    at = next((place for place, one in enumerate(made) if one["id"] == call["id"]), 0)
    last = made[at - 1] if at else None
    failed = {m.tool_call_id for m in messages if isinstance(m, ToolMessage) and m.status == "error"}
    alike = last is not None and (last["name"], last["args"]) == (call["name"], call["args"])
    return last is not None and alike and last["id"] not in failed


def outcome_of(last: AnyMessage, calls: Sequence[Call]) -> tuple[Status, str]:
    """How the step ended, by the worker's word: its declared outcome, otherwise its plain words, which mean done."""
    declared, text = last.additional_kwargs.get(OUTCOME), last.text.strip()
    if isinstance(declared, dict):
        match declared.get("status"):
            case "done":
                return "done", ""
            case "needs_input" | "outcome_unknown" as status:
                wanted = [what for what in declared.get("missing", ()) if what not in text]
                return status, f"{text} (missing: {', '.join(wanted)})" if wanted else text
            case "need_plan":
                return "failed", f"the worker asks for another plan: {text}"
            case _:
                return "failed", text
    refused = [call.error for call in calls if call.kind == "rejected"]
    if refused and all(call.error for call in calls if call.agent):  # a person's word stands above a model's
        return "failed", refused[-1]
    if reason := _cut(last):
        told = f"the model's answer was cut at its token limit (finish reason {reason!r}: raise its max_tokens)"
        return "failed", f"{told}; it began: {text[:_BEGINNING]}"
    if isinstance(last, AIMessage) and last.invalid_tool_calls and not text:
        bad = last.invalid_tool_calls[0]
        return "failed", f"the model's call of {bad['name']!r} has arguments that are no JSON: {bad['args']!s:.200}"
    if not text:
        made = ", ".join(dict.fromkeys(call.tool for call in calls))
        return "failed", f"the model ended without an answer, after these calls: {made}" if made else (
            "the model gave neither a tool call nor an answer"
        )
    return "done", ""


def _cut(message: AnyMessage) -> str:
    """The finish reason of an answer that a limit of tokens ended, in its provider's words; empty for others."""
    said = (message.response_metadata.get(name) for name in ("finish_reason", "stop_reason", "done_reason"))
    return next((reason for reason in said if isinstance(reason, str) and reason.lower() in _LIMITS), "")
