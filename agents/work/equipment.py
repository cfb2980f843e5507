"""The equipment of a worker for a step: the selected tools, its own tools, its limits, and its calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatResult
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from callsheet.agents.approval.supervision import Supervision
from callsheet.agents.calls.outcome import Call, Outcome, answer_to, outcome_in
from callsheet.agents.calls.plan import (
    ResultValueError,
    StepResult,
    named_result,
    named_value,
    shape,
    value_of,
)
from callsheet.agents.models.prompts import AGAIN, WORKER
from callsheet.agents.registry.binding import NEED_TOOL, READ_RESULT, READ_SKILL, BoundTool, made_call
from callsheet.agents.safety.secrets import RunSecrets
from callsheet.agents.work.context import Brief, as_text
from callsheet.agents.work.finish import FINISH, finish_definition
from callsheet.agents.work.media import readable
from callsheet.agents.work.tool_requests import DEFINITION, ToolRequests
from callsheet.graphs.catalog.model import Skill
from callsheet.graphs.text.hidden import shown

_LONGEST = 20_000
"""Characters of the longest answer to its own call that a worker sees whole."""
_BEGINNING = 8_000
"""Characters of the beginning that it sees of a longer answer."""
_PIECE = 4_000
"""Characters of an answer of ``read_result``."""
_LONGEST_ABOUT = 1_024
"""Characters of a skill's description, as its format allows."""


_LATE_TOLD = "its server now also has {}; {} adds what you name, after a person has accepted it"


class _Reading(BaseModel):
    """Read on in a result that is shown in part."""

    model_config = ConfigDict(title=READ_RESULT)

    id: str = Field(description="Step (1) or call (c2, 1/c2)")
    path: str = Field(default="", description="items[0]")
    start: int = Field(default=0, ge=0)


READ_DEFINITION = convert_to_openai_tool(_Reading)


class _Skill(BaseModel):
    """Read the instructions of a skill before you do what it is for."""

    model_config = ConfigDict(title=READ_SKILL)

    name: str = Field(description="The name of the skill")


def skill_definition(skills: Sequence[Skill]) -> dict[str, Any]:
    """Returns the definition of the tool that reads these skills, with their names and descriptions."""
    definition = convert_to_openai_tool(_Skill)
    lines = (f"- {shown(skill.label)}: {shown(skill.description, most=_LONGEST_ABOUT)}" for skill in skills)
    definition["function"]["description"] = "\n".join([definition["function"]["description"], *lines])
    return definition


def answer_skill(call: ToolCall, texts: Mapping[str, str], names: Sequence[str]) -> ToolMessage:
    """Answers a call of ``read_skill``.

    Args:
        call: The call.
        texts: The text of the skill that it names, by this name; empty if there is none.
        names: The names of all skills that can be read.
    """
    name = str(call["args"].get("name"))
    if name in texts:
        return answer_to(call, texts[name])
    return answer_to(call, f"there is no skill {name!r}; there are: {', '.join(names)}", error=True)


def long_calls(calls: Iterable[Call]) -> list[Call]:
    """Returns the calls whose answers are shown to the model only in part."""
    return [call for call in calls if call.agent and len(call.output) > _LONGEST]


def label_answers(messages: Sequence[AnyMessage], calls: Mapping[str, Call]) -> list[AnyMessage]:
    """Returns the messages for the model: each answer to one of these calls ends with the id of the call.

    The model refers to the answer by this id. Of an answer over 20,000 characters, only the first 8,000 are shown.
    ``calls`` are by their ids in the conversation. An answer to any call names the tools that its server has added, if
    no answer before it did.
    """
    shown_messages: list[AnyMessage] = []
    for message in messages:
        if not isinstance(message, ToolMessage) or not isinstance(message.content, str):
            shown_messages.append(message)
            continue
        text = message.content
        call = calls.get(message.tool_call_id)
        if call is not None and call.id:
            text = _beginning(call) if message.text == call.output else f"{text}\n[{call.id}]"
        late = outcome_in(message).late
        if late:
            text += f"\n[{_LATE_TOLD.format(', '.join(map(shown, late)), NEED_TOOL)}]"
        is_changed = text != message.content
        shown_messages.append(message.model_copy(update={"content": text}) if is_changed else message)
    return shown_messages


def _beginning(call: Call) -> str:
    """Returns the answer to a call with its id; of a long one the beginning, its size, its shape and how to go on."""
    output = readable(call.output)
    if len(output) <= _LONGEST:
        return f"{output}\n[{call.id}]"
    about = f"{len(output):,} characters in all, {shape(value_of(call))}"
    return f"{output[:_BEGINNING]}…\n[{about}; read more with {READ_RESULT}, id {call.id!r}]"


def answer_reading(call: ToolCall, results: Sequence[StepResult], calls: Sequence[Call]) -> ToolMessage:
    """Answers a call of ``read_result`` with a part of a result."""
    try:
        request = _Reading.model_validate(call["args"])
        result = named_result(request.id, results, calls)
        if isinstance(result, Call) and not request.path:
            whole = readable(result.output)  # as it is shown, so that the places are the same
        else:
            whole = as_text(named_value(request.id, request.path, results, calls))
        if request.start >= max(1, len(whole)):
            raise ResultValueError(f"start must be a number from 0 to {len(whole) - 1}")
    except (ValidationError, ResultValueError) as error:
        return answer_to(call, str(error), error=True)
    piece = whole[request.start : request.start + _PIECE]
    end = request.start + len(piece)
    if end < len(whole):
        piece += f"\n[{len(whole) - end:,} characters follow: start={end}]"
    return answer_to(call, piece)


class UnsetModel(BaseChatModel):
    """Takes the place of the model in the compiled worker; the model itself is passed with each step."""

    @property
    def _llm_type(self) -> str:
        return "callsheet-unset"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("no model was passed with the step")


@dataclass(frozen=True, slots=True)
class Equipment:
    """The equipment of a worker for one step.

    Attributes:
        tools: The selected tools by the names that the model sees.
        own_tools: Whether the model is offered the worker's own tools: to end its step, and to read long results.
        max_turns: Maximum number of model calls; ``max_calls`` of tool calls, including requests for tools.
        supervision: Supervises its calls; None sends them without supervision.
        refused: Ids of selected tools that must not be called any more, with the reason.
        code: Whether its model may also call the tools from programs.
        replans: Whether the worker may ask for another plan.
        replies: The replies of the model so far; if the step is ended from outside, their cost is kept.
        seen: The conversation so far; if the step is ended from outside, its answered calls are kept.
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
    replies: list[AIMessage] = field(default_factory=list)
    seen: list[AnyMessage] = field(default_factory=list)

    @property
    def secrets(self) -> RunSecrets | None:
        """Returns the secret arguments of the worker's calls; None: they stay in the conversation."""
        return self.supervision.secrets if self.supervision else None

    @property
    def step_id(self) -> str:
        """Returns the id of the step, if its calls are supervised."""
        return self.supervision.step_id if self.supervision else ""

    def held(self, messages: Sequence[AnyMessage]) -> dict[str, BoundTool]:
        """Returns the worker's tools, including those that were added during the conversation.

        Only the conversation records these, so a resumed run has the same tools.
        """
        held = dict(self.tools)
        if self.requests is None:
            return held
        for message in messages:
            if isinstance(message, ToolMessage) and message.name == NEED_TOOL and message.status != "error":
                known = {tool.id for tool in held.values()}
                new = [tool_id for tool_id in outcome_in(message).added if tool_id not in known]
                held |= self.requests.bind(new, list(held))
        return held

    def labelled(self, messages: Sequence[AnyMessage], held: Mapping[str, BoundTool]) -> list[AnyMessage]:
        """Returns the conversation for the model, in which each answer ends with the id of its call."""
        return label_answers(messages, calls_by_id(messages, held, first=1 + self.brief.calls_before))

    def calls(self, messages: Sequence[AnyMessage], held: Mapping[str, BoundTool]) -> tuple[Call, ...]:
        """Returns the worker's calls in a conversation, in order; ``held`` are the tools that the worker has."""
        return calls_of(messages, held, first=1 + self.brief.calls_before)

    def answered_calls(self) -> tuple[Call, ...]:
        """Returns the calls that have an answer, for a worker that is stopped from outside."""
        answers = _answers_by_id(self.seen)
        messages: list[AnyMessage] = []
        for message in self.seen:
            if isinstance(message, AIMessage):
                made = [call for call in message.tool_calls if call["id"] in answers]
                messages.append(message.model_copy(update={"tool_calls": made}))
            else:
                messages.append(message)
        return self.calls(messages, self.held(messages))

    def shown(self, held: Mapping[str, BoundTool]) -> list[BaseTool | dict[str, Any]]:
        """Returns the tools for the model: those selected, ``run_program``, the worker's own, and those added since.

        What was added comes last, so that the beginning, which providers cache, is the same in every turn.
        """
        own: list[dict[str, Any]] = []
        if self.code:
            from callsheet.agents.programs.functions import DEFINITION as RUN

            own.append(dict(RUN))
        if self.own_tools:
            own.append(finish_definition(replans=self.replans, steps=self.brief.step_ids))
            if self.requests:
                own.append(dict(DEFINITION))
            own.append(dict(READ_DEFINITION))
        added = list(held.values())[len(self.tools) :]
        return [*self.tools.values(), *own, *added]


OWN_TOOLS = (NEED_TOOL, READ_RESULT, FINISH)
"""The worker's own tools; their calls have no ids, because nothing refers to their answers."""


def calls_of(messages: Sequence[AnyMessage], tools: Mapping[str, BoundTool], *, first: int = 1) -> tuple[Call, ...]:
    """Returns the tool calls of a worker's conversation, in order: ``c1``, ``c2``, those of a program ``c3.1``, ..."""
    return tuple(call for _, call in _identified(messages, tools, first))


def calls_by_id(messages: Sequence[AnyMessage], tools: Mapping[str, BoundTool], *, first: int = 1) -> dict[str, Call]:
    """Returns the calls of a conversation by their ids there, without those of programs."""
    return {call_id: call for call_id, call in _identified(messages, tools, first) if call_id}


def _identified(
    messages: Sequence[AnyMessage], tools: Mapping[str, BoundTool], first: int
) -> Iterator[tuple[str, Call]]:
    """Yields each call with its id in the conversation, which is empty for a call of a program."""
    answers = _answers_by_id(messages)
    number = first
    for call in _calls_in(messages):
        answer = answers.get(call["id"] or "")
        outcome = outcome_in(answer)
        if outcome.reminder:
            continue
        name = ""
        if call["name"] not in OWN_TOOLS:
            name = f"c{number}"
            number += 1
        for inner in outcome.made:
            yield "", inner.model_copy(update={"id": f"{name}.{inner.id}"})
        yield call["id"] or "", made_call(call, answer, tools.get(call["name"]), name)


def _answers_by_id(messages: Sequence[BaseMessage]) -> dict[str, ToolMessage]:
    return {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}


def _calls_in(messages: Sequence[BaseMessage]) -> list[ToolCall]:
    calls: list[ToolCall] = []
    for message in messages:
        if isinstance(message, AIMessage):
            calls += message.tool_calls
    return calls


def made_calls(messages: Sequence[BaseMessage]) -> int:
    """Returns the number of calls, including those of programs."""
    number = 0
    for message in messages:
        if isinstance(message, AIMessage):
            number += len(message.tool_calls)
        else:
            number += len(outcome_in(message).made)
    return number


def reminder(call: ToolCall, messages: Sequence[BaseMessage]) -> ToolMessage | None:
    """Answers a call that only repeats the previous one, which succeeded; None if the call is to be made.

    Such a reminder is given once: if the model makes the call again, for example to check on a job, the call is made.
    """
    calls = _calls_in(messages)
    answers = _answers_by_id(messages)
    last = next((before for before, one in pairwise(calls) if one["id"] == call["id"]), None)
    if last is None or not _is_same(last, call):
        return None
    answer = answers.get(last["id"] or "")
    if answer is None or answer.status == "error":
        return None
    for one in calls:
        was_reminder = outcome_in(answers.get(one["id"] or "")).reminder
        if was_reminder and _is_same(one, call):
            return None
    text = f"You have just made this call, and its result stands above; {AGAIN}"
    return answer_to(call, text, Outcome(effect="none", reminder=True))


def _is_same(one: ToolCall, other: ToolCall) -> bool:
    return (one["name"], one["args"]) == (other["name"], other["args"])
