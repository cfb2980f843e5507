"""What a worker has for one step, and what came of it: its calls and its outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import BaseTool

from callsheet.agents.approval.supervised_call import Supervision
from callsheet.agents.calls.plan import Call, Status
from callsheet.agents.calls.tool_result import artifact_of, data_beside
from callsheet.agents.models.prompts import WORKER
from callsheet.agents.registry.binding import NEED_TOOL, NO_OUTPUT, READ_RESULT, BoundTool
from callsheet.agents.safety.secrets import RunSecrets
from callsheet.agents.work.context import Brief
from callsheet.agents.work.own_tools import (
    DEFINITION,
    FINISH,
    OUTCOME,
    READ_DEFINITION,
    ToolRequests,
    finish_definition,
    shown_in_part,
)


class UnsetModel(BaseChatModel):
    """Stands in the compiled worker, whose model comes with each step."""

    @property
    def _llm_type(self) -> str:
        return "callsheet-unset"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("a model comes with each step, and did not")


@dataclass(frozen=True, slots=True)
class Equipment:
    """What a worker has for one step.

    Attributes:
        tools: The selected tools by the names that the model sees.
        own_tools: Whether the model is offered the worker's own tools: to end its step, and to read long results.
        max_turns: Maximum number of model calls; ``max_calls`` of tool calls, including requests for tools.
        supervision: Supervises its calls; None sends them without supervision.
        refused: Ids of selected tools that must not be called any more, with the reason.
        code: Whether its model calls the tools from programs.
        replans: Whether the worker may ask for another plan.
        replies: The model's replies so far, for their cost if the step is ended from outside.
    """

    tools: Mapping[str, BoundTool]
    brief: Brief = field(default_factory=Brief)
    model: BaseChatModel = field(default_factory=UnsetModel)
    prompt: str = WORKER
    own_tools: bool = True
    max_turns: int = 24
    max_calls: int = 64
    max_tokens: int | None = None
    requests: ToolRequests | None = None
    supervision: Supervision | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    code: bool = False
    replans: bool = False
    weak: bool = False
    replies: list[AIMessage] = field(default_factory=list)

    @property
    def secrets(self) -> RunSecrets | None:
        """Holds the secret arguments of its calls; if None, they stay in its conversation."""
        return self.supervision.secrets if self.supervision else None

    @property
    def step_id(self) -> str:
        """The step, if its calls are supervised."""
        return self.supervision.step_id if self.supervision else ""

    def held(self, messages: Sequence[AnyMessage]) -> dict[str, BoundTool]:
        """The tools with those that were added; the conversation alone says which, so a resumed step has the same."""
        held = dict(self.tools)
        if self.requests is None:
            return held
        for message in messages:
            if isinstance(message, ToolMessage) and message.name == NEED_TOOL and message.status != "error":
                known = {tool.id for tool in held.values()}
                new = [tool_id for tool_id in artifact_of(message).get("added", ()) if tool_id not in known]
                held |= self.requests.bind(new, list(held))
        return held

    def calls(self, messages: Sequence[AnyMessage], held: Mapping[str, BoundTool]) -> tuple[Call, ...]:
        """The calls of its conversation, in order; ``held`` are the tools that it has by now."""
        return calls_of(messages, held, first=1 + self.brief.calls_before)

    def harmless(self, tool_id: str) -> bool:
        """Whether a tool is known to change nothing."""
        return self.supervision is not None and self.supervision.registry.assurance(tool_id).harm == "none"

    def shown(self, held: Mapping[str, BoundTool], calls: Sequence[Call]) -> list[BaseTool | dict[str, Any]]:
        """What the model sees: the selected tools, its own, and added ones; in code mode, one that runs programs."""
        own: list[dict[str, Any]] = []
        if self.own_tools:
            own += [] if self.weak else [finish_definition(replans=self.replans)]
            own += [dict(DEFINITION)] if self.requests else []
            own += [dict(READ_DEFINITION)] if shown_in_part(self.brief.inputs, calls) else []
        if not self.code:
            return [*self.tools.values(), *own, *list(held.values())[len(self.tools) :]]
        from callsheet.agents.programs import with_programs

        return with_programs(held, own)


OWN_TOOLS = (NEED_TOOL, READ_RESULT, FINISH)
"""The worker's own tools, whose calls have no id: nothing refers to their answers."""
_LIMITS = frozenset({"length", "max_tokens", "model_length"})
"""Finish reasons of providers for an answer that was cut."""
_QUOTED = 200
"""Characters of a cut answer in its error."""


def calls_of(
    messages: Sequence[AnyMessage], tools: Mapping[str, BoundTool], *, first: int = 1, prefix: str = "c"
) -> tuple[Call, ...]:
    """The tool calls of a worker's conversation, in order: ``c1``, ``c2``, those of a program ``c3.1``, and so on."""
    answers = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    calls: list[Call] = []
    for message in messages:
        for call in message.tool_calls if isinstance(message, AIMessage) else ():
            answer, bound = answers.get(call["id"] or ""), tools.get(call["name"])
            text = answer.text if answer else "no answer"
            failed = answer is None or answer.status == "error"
            artifact = artifact_of(answer) or {"effect": "none"}
            number = "" if call["name"] in OWN_TOOLS else f"{prefix}{first}"
            first += bool(number)
            if program := artifact.get("calls"):
                inside = [AIMessage("", tool_calls=program), *artifact["answers"]]
                calls += calls_of(inside, tools, prefix=f"{number}.")
            calls.append(
                Call(
                    id=number,
                    agent=bound.agent if bound else artifact.get("agent", ""),
                    tool=bound.id if bound else artifact.get("tool", call["name"]),
                    args=artifact.get("args", bound.form.own(call["args"]) if bound else call["args"]),
                    output="" if failed or text == NO_OUTPUT else text,
                    data=None if failed else data_beside(text, artifact.get("structured")),
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


def repeats_last(call: ToolCall, messages: Sequence[BaseMessage]) -> bool:
    """Whether a call is the one before it once more, and that one succeeded."""
    made = [one for message in messages if isinstance(message, AIMessage) for one in message.tool_calls]
    failed = {m.tool_call_id for m in messages if isinstance(m, ToolMessage) and m.status == "error"}
    last = next((before for before, one in pairwise(made) if one["id"] == call["id"]), None)
    if last is None or last["id"] in failed:
        return False
    return (last["name"], last["args"]) == (call["name"], call["args"])


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
    refused = [call.error for call in calls if call.kind in ("rejected", "sign_in")]
    if refused and all(call.error for call in calls if call.agent):  # a person's word stands above a model's
        return "failed", refused[-1]
    if reason := _cut(last):
        told = f"the model's answer was cut at its token limit (finish reason {reason!r}: raise its max_tokens)"
        return "failed", f"{told}; it began: {text[:_QUOTED]}"
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
