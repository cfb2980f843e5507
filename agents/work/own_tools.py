"""An agent's own tools: it ends its step, asks for a missing tool, and reads long results and skills."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from langchain.agents.middleware import ModelRequest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage, ToolCall, ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from callsheet.agents.calls.plan import (
    Call,
    ResultValueError,
    StepResult,
    named_result,
    named_value,
    resolved,
    shape,
    value_of,
)
from callsheet.agents.calls.tool_result import answer_to, artifact_of
from callsheet.agents.registry.binding import NEED_TOOL, READ_RESULT, READ_SKILL, BoundTool
from callsheet.agents.work.context import reports, written
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


_WORDS = 80
"""Characters of a description in the answer; the model sees all of it with the tool."""


class _Need(BaseModel):
    """Ask for a tool that you lack. What fits is added to your tools."""

    model_config = ConfigDict(title=NEED_TOOL)

    what: str = Field(description="What the tool must do, in one sentence, without its inputs.")


DEFINITION: Mapping[str, Any] = convert_to_openai_tool(_Need)


@dataclass(frozen=True, slots=True)
class ToolRequests:
    """Answers a worker's requests for tools.

    Attributes:
        find: From the need, and the ids of the worker's tools, to the ids of further tools.
        bind: From ids, and the names in use, to tools by the names that the model sees.
        about: From the id of an agent to what it is for.
    """

    find: Callable[[str, Collection[str]], Awaitable[Sequence[str]]]
    bind: Callable[[Sequence[str], Collection[str]], Mapping[str, BoundTool]]
    about: Callable[[str], str] = lambda agent: ""


async def answer_request(call: ToolCall, tools: Mapping[str, BoundTool], requests: ToolRequests) -> ToolMessage:
    """The answer to a worker's request for a tool, made by a call of ``need_tool``."""
    what = call["args"].get("what")
    if not isinstance(what, str) or not what.strip():
        return answer_to(call, "say what the tool must do, as the text 'what'", error=True)
    ids = await requests.find(what, [tool.id for tool in tools.values()])
    added = requests.bind(ids, list(tools))
    if not added:
        return answer_to(call, "no other tool in the catalog does that", {"added": []})
    agents = {tool.agent: f"{tool.agent}: {about}" for tool in added.values() if (about := requests.about(tool.agent))}
    lines = (f"{name} (agent {tool.agent}): {shown(tool.description, most=_WORDS)}" for name, tool in added.items())
    told = "\n".join(["You can now call:", *lines, *(["Their agents:", *agents.values()] if agents else [])])
    return answer_to(call, told, {"added": [tool.id for tool in added.values()]})


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


_BETA = "advanced-tool-use-2025-11-20"
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2})(?!\d))?")
_SINCE = (4, 5)
Function = dict[str, Any]
Additions = Callable[[Sequence[Function]], list[str | Function]]


def deferred(
    request: ModelRequest[Any], held: Mapping[str, BoundTool], placed: Mapping[str, Sequence[str]] | None = None
) -> ModelRequest[Any]:
    """The request with added tools at the place in the conversation where they were found.

    Providers cache a prompt from its beginning, where the tools stand, so a tool that is added there costs the whole
    cached prefix. OpenAI's Responses API (``additional_tools``) and newer models of Anthropic (``tool_addition``) take
    definitions between the messages; for these, ``placed`` has ids of further tools by the id of the message after
    which they were added. Anthropic's models since Claude 4.5 leave tools with ``defer_loading`` out of the prompt, and
    put a definition where a result refers to it. Other models get the request as it is, with all tools.
    """
    names = {tool.id: name for name, tool in held.items()}
    between = (request.model.profile or {}).get("mid_conversation_tools")
    form = _ADDITIONS.get(request.model._llm_type) if between else None
    found = [_found(message, names, placed if form and placed else {}) for message in request.messages]
    added = {name for few in found for name in few}
    if form:
        tools = [tool for tool in request.tools if not (isinstance(tool, BoundTool) and tool.name in added)]
        return request.override(tools=tools, messages=list(_with_additions(request.messages, held, found, form)))
    if not added or not _searches(request.model):
        return request
    tools = [
        tool.model_copy(update={"extras": {**(tool.extras or {}), "defer_loading": True}})
        if isinstance(tool, BoundTool) and tool.name in added
        else tool
        for tool in request.tools
    ]
    messages = list(request.messages)
    for place, few in enumerate(found):
        if few:
            content = [{"type": "tool_reference", "tool_name": name} for name in few]
            messages[place] = messages[place].model_copy(update={"content": content})
    betas = list(dict.fromkeys([*request.model_settings.get("betas", ()), _BETA]))
    return request.override(tools=tools, messages=messages, model_settings={**request.model_settings, "betas": betas})


def _searches(model: BaseChatModel) -> bool:
    """Whether a model is one of Anthropic's API that loads deferred tools: since Claude 4.5."""
    if model._llm_type != "anthropic-chat":
        return False
    match = _CLAUDE.match(str(getattr(model, "model", "")))
    return match is not None and (int(match[1]), int(match[2] or 0)) >= _SINCE


def _found(message: AnyMessage, names: Mapping[str, str], placed: Mapping[str, Sequence[str]]) -> list[str]:
    """The names of the tools that were added by an answer of ``need_tool`` or after it, as far as still held."""
    ids = list(placed.get(message.id or "", ()))
    if isinstance(message, ToolMessage) and message.name == NEED_TOOL:
        ids += artifact_of(message).get("added", ())
    return [names[tool_id] for tool_id in ids if tool_id in names]


def _with_additions(
    messages: Sequence[AnyMessage], held: Mapping[str, BoundTool], found: Sequence[Sequence[str]], form: Additions
) -> Iterator[AnyMessage]:
    """The messages with definitions between them: each tool once, before the model's next words or last."""
    waiting: dict[str, None] = {}
    given: set[str] = set()
    for message, few, following in zip(messages, found, [*messages[1:], AIMessage("")], strict=True):
        yield message
        waiting |= dict.fromkeys(name for name in few if name not in given)
        if waiting and isinstance(following, AIMessage):
            yield SystemMessage(form([convert_to_openai_tool(held[name])["function"] for name in waiting]))
            given |= waiting.keys()
            waiting = {}


def _additional_tools(functions: Sequence[Function]) -> list[str | Function]:
    """An input item of OpenAI's Responses API."""
    tools = [{"type": "function", **function} for function in functions]
    return [{"type": "additional_tools", "role": "developer", "tools": tools}]


def _tool_additions(functions: Sequence[Function]) -> list[str | Function]:
    """Content blocks of Anthropic's Messages API."""
    added: list[str | Function] = []
    for function in functions:
        definition = {("input_schema" if key == "parameters" else key): value for key, value in function.items()}
        added.append({"type": "tool_addition", "tool": {"type": "tool_definition", "definition": definition}})
    return added


_ADDITIONS: Mapping[str, Additions] = {"openai-chat": _additional_tools, "anthropic-chat": _tool_additions}
"""The form of added tools, for models that take them between the messages by LangChain's profile of them."""
