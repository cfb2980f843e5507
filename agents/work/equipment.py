"""What a worker has for one step: the selected tools and its own, its calls, and how it ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from callsheet.agents.approval.supervised_call import Supervision
from callsheet.agents.calls.plan import (
    Call,
    ResultValueError,
    Status,
    StepResult,
    named_result,
    named_value,
    resolved,
    shape,
    value_of,
)
from callsheet.agents.calls.tool_result import answer_to, artifact_of, data_beside
from callsheet.agents.models.prompts import WORKER
from callsheet.agents.registry.binding import NEED_TOOL, NO_OUTPUT, READ_RESULT, READ_SKILL, BoundTool
from callsheet.agents.safety.secrets import RunSecrets
from callsheet.agents.work.context import Brief, reports, written
from callsheet.agents.work.tool_requests import DEFINITION, ToolRequests
from callsheet.graphs.catalog.model import Skill
from callsheet.graphs.text.sanitizing import error_lines, shown

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
    if not replans:
        status = definition["function"]["parameters"]["properties"]["status"]
        status["enum"].remove(_REPLAN)
        status["description"] = status["description"].partition(f"; {_REPLAN}")[0]
    return definition


def finished(message: BaseMessage, calls: Sequence[Call]) -> AIMessage | None:
    """The last message of a worker that calls ``finish`` alone and correctly; None for any other message."""
    if not isinstance(message, AIMessage) or [call["name"] for call in message.tool_calls] != [FINISH]:
        return None
    told = _read(message.tool_calls[0]["args"], calls)
    if isinstance(told, str):
        return None
    said = {**message.additional_kwargs, OUTCOME: {**told.model_dump(mode="json"), "reply": True}}
    said.pop("tool_calls", None)
    answer = told.answer.strip() or message.text.strip() or told.status
    return message.model_copy(update={"content": answer, "tool_calls": [], "additional_kwargs": said})


def refused_finish(call: ToolCall, calls: Sequence[Call], *, alone: bool) -> ToolMessage:
    """The answer to a call of ``finish`` that did not end the step."""
    problem = str(_read(call["args"], calls)) if alone else _NOT_ALONE
    return answer_to(call, problem, {"effect": "none"}, error=True)


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


_LONGEST, _BEGINNING = 20_000, 8_000
"""Characters of the answer to its own call that a worker sees whole; of a longer one, it sees the beginning."""
_WORTH_AN_ID = 500
"""Characters from which an answer is worth a reference, so that its id is shown."""
_PIECE = 4_000
_LONGEST_ABOUT = 1_024
"""Characters of a skill's description, as its format allows."""


class _Reading(BaseModel):
    """Read more of a result that is shown in part: up to 4,000 characters at once."""

    model_config = ConfigDict(title=READ_RESULT)

    id: str = Field(description="Id of the result of a step (1) or of a call (c2, 1/c2)")
    path: str = Field(default="", description="A part of it, such as items[0]; empty for all of it")
    start: int = Field(default=0, ge=0, description="The first character, from 0")


READ_DEFINITION = convert_to_openai_tool(_Reading)


class _Skill(BaseModel):
    """Read the instructions of a skill before you do what it is for."""

    model_config = ConfigDict(title=READ_SKILL)

    name: str = Field(description="The name of the skill")


def skill_definition(skills: Sequence[Skill]) -> dict[str, Any]:
    """The tool that reads these skills, with their names and descriptions."""
    definition = convert_to_openai_tool(_Skill)
    lines = (f"- {skill.name}: {shown(skill.description, most=_LONGEST_ABOUT)}" for skill in skills)
    definition["function"]["description"] = "\n".join([definition["function"]["description"], *lines])
    return definition


def answer_skill(call: ToolCall, texts: Mapping[str, str]) -> ToolMessage:
    """The text of a skill, as the answer to a call of ``read_skill``; ``texts`` are those of all by name."""
    if (text := texts.get(name := str(call["args"].get("name")))) is not None:
        return answer_to(call, text, {"effect": "none"})
    return answer_to(call, f"there is no skill {name!r}; there are: {', '.join(texts)}", {"effect": "none"}, error=True)


def long_calls(calls: Iterable[Call]) -> list[Call]:
    """The calls whose answers a model sees only in part."""
    return [call for call in calls if call.agent and len(call.output) > _LONGEST]


def shown_in_part(results: Sequence[StepResult], calls: Sequence[Call]) -> bool:
    """Whether an earlier result, or the answer to one of the worker's calls, is shown only in part."""
    return READ_RESULT in reports(results) or bool(long_calls(calls))


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
    try:
        asked = _Reading.model_validate(call["args"])
        found = named_result(asked.id, results, calls)
        if isinstance(found, Call) and not asked.path:
            whole = found.output  # as it is shown, so that the places are the same
        else:
            whole = written(named_value(asked.id, asked.path, results, calls))
        if asked.start >= max(1, len(whole)):
            raise ResultValueError(f"start must be a number from 0 to {len(whole) - 1}")
    except (ValidationError, ResultValueError) as error:
        return answer_to(call, str(error), {"effect": "none"}, error=True)
    piece = whole[asked.start : asked.start + _PIECE]
    left = len(whole) - asked.start - len(piece)
    more = f"\n[{left:,} characters follow: start={asked.start + len(piece)}]" if left else ""
    return answer_to(call, piece + more, {"effect": "none"})


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
