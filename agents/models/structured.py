"""Asks a chat model for an object of a type: by a tool call, by a JSON schema, or as JSON in its text."""

from __future__ import annotations

import json
import re
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ValidationError

from callsheet.agents.calls.token_usage import Usage, usage_of
from callsheet.agents.models.chat_models import QUIET, ModelError, is_rejected, model_answer

S = TypeVar("S", bound=BaseModel)
Form = Literal["tool", "json_schema", "text"]
_FORMS: tuple[Form, ...] = ("tool", "json_schema", "text")
_IN_TEXT = "Answer with one JSON object and nothing else. It must fit this JSON schema:\n{schema}"
_FENCE = re.compile(r"```[\w-]*\n(.*?)```", re.DOTALL)
_LOOKS = 4
"""Maximum turns in which a model looks something up before it answers."""
_QUOTED = 500
_MOST_TRIED = 50
"""Maximum number of braces in a text at which an object may begin."""
_READ = json.JSONDecoder()


@dataclass(slots=True)
class _Forms:
    """Remembers the form in which a model answered last, and the forms that its provider has refused."""

    answered: Form | None = None
    refused: set[Form] = field(default_factory=set)

    def in_order(self) -> list[Form]:
        """Returns the forms to try, beginning with the one that worked; only the text if all are refused."""
        forms: list[Form] = [form for form in _FORMS if form not in self.refused]
        if not forms:
            forms = ["text"]
        return sorted(forms, key=lambda form: form != self.answered)


_known: dict[int, _Forms] = {}


def _forms_of(model: BaseChatModel) -> _Forms:
    """Returns what is known of this model; it is forgotten when the model is deleted."""
    if id(model) not in _known:
        _known[id(model)] = _Forms()
        weakref.finalize(model, _known.pop, id(model), None)
    return _known[id(model)]


async def ask_for_object(
    model: BaseChatModel, schema: type[S], messages: Sequence[AnyMessage], *, beside: Sequence[BaseTool] = ()
) -> tuple[S, Usage]:
    """Asks a model for an object of this type; returns the object and the cost of all replies.

    The forms (tool call, JSON schema, JSON in text) are tried in turn until the model answers in one; that form is
    tried first the next time. A form that the provider has refused is not tried again. The name of the type is the name
    of the tool or of the schema. An object in the text of a reply is accepted in each form, also in a Markdown fence.

    Args:
        model: The model.
        schema: The type.
        messages: The conversation.
        beside: Tools by which the model may look something up before it answers; only for models that can call tools.

    Examples:
        >>> draft, usage = await structured(model, PlanDraft, [HumanMessage("Book a table for two")])

    Raises:
        ModelError: The model did not answer, or not in any of the forms; ``usage`` is the cost of its replies.
    """
    began = time.monotonic()
    spent = Usage()
    wrong = ""
    known = _forms_of(model)
    refused: set[Form] = set()
    for form in known.in_order():
        if form in refused:
            continue
        try:
            raw, cost = await _reply_in_form(model, schema, form, messages, beside)
        except ModelError as error:
            spent += error.usage
            if form == "text" or not _unsupported(error.__cause__):
                error.usage = spent
                raise
            if is_rejected(error.__cause__):
                refused |= _same_form(model, form)
            wrong = str(error)
            continue
        # Only an answer in another form shows that the provider has refused the form, and not the request.
        known.refused |= refused
        spent += cost
        try:
            value = _read(raw, schema)
        except ValueError as error:
            wrong = " ".join(str(error).split())
            continue
        known.answered = form
        return value, spent + Usage(seconds=round(time.monotonic() - began, 3))
    unusable = ModelError(f"the model did not answer in the requested form ({wrong or 'no object was given'})")
    unusable.usage = spent + Usage(seconds=round(time.monotonic() - began, 3))
    raise unusable


def _same_form(model: BaseChatModel, form: Form) -> set[Form]:
    """Returns the forms that make the same request: LangChain's default asks for a tool call in either."""
    if type(model).with_structured_output is BaseChatModel.with_structured_output:
        return {"tool", "json_schema"}
    return {form}


async def _reply_in_form(
    model: BaseChatModel,
    schema: type[BaseModel],
    form: Form,
    messages: Sequence[AnyMessage],
    beside: Sequence[BaseTool],
) -> tuple[AIMessage, Usage]:
    """Requests a reply in one form; returns it with the cost of all replies."""
    if form == "tool" and beside:
        return await _with_lookups(model, schema, messages, beside)
    if form == "text":
        instruction = HumanMessage(_IN_TEXT.format(schema=json.dumps(schema.model_json_schema())))
        reply: AIMessage = await model_answer(model.ainvoke([*messages, instruction], QUIET))
        return reply, usage_of([reply])
    method = "function_calling" if form == "tool" else "json_schema"

    async def ask() -> AIMessage:
        asking: Runnable[Any, Any] = model.with_structured_output(schema, include_raw=True, method=method)
        raw: AIMessage = (await asking.ainvoke(list(messages), QUIET))["raw"]
        return raw

    reply = await model_answer(ask())
    return reply, usage_of([reply])


async def _with_lookups(
    model: BaseChatModel, schema: type[BaseModel], messages: Sequence[AnyMessage], beside: Sequence[BaseTool]
) -> tuple[AIMessage, Usage]:
    """Lets the model call the tools beside, until it calls the schema or replies with something else."""
    tools = {tool.name: tool for tool in beside}
    conversation = list(messages)
    spent = Usage()
    reply = AIMessage("")

    async def ask(offered: Sequence[Any]) -> AIMessage:
        # In a function, so that a model that cannot call tools at all raises its error within ``model_answer``.
        return await model.bind_tools(offered, tool_choice="any").ainvoke(conversation, QUIET)

    for turn in range(_LOOKS + 1):
        # In the last turn it can only answer.
        offered = [schema, *beside] if turn < _LOOKS else [schema]
        try:
            reply = await model_answer(ask(offered))
        except ModelError as error:
            error.usage = spent
            raise
        spent += usage_of([reply])
        names = {call["name"] for call in reply.tool_calls}
        if schema.__name__ in names or names.isdisjoint(tools):
            break
        conversation.append(reply)
        conversation += [await _answer_lookup(call, tools) for call in reply.tool_calls]
    return reply, spent


async def _answer_lookup(call: ToolCall, tools: Mapping[str, BaseTool]) -> ToolMessage:
    """Answers a call of a tool beside; the model is told of an error."""
    tool = tools.get(call["name"])
    call_id = call["id"] or ""
    if tool is None:
        return ToolMessage(f"there is no tool {call['name']!r}", tool_call_id=call_id, status="error")
    try:
        answer: ToolMessage = await tool.ainvoke({**call, "id": call_id, "type": "tool_call"})
    except Exception as error:  # noqa: BLE001 arguments that do not fit, or whatever the tool raises
        return ToolMessage(f"{type(error).__name__}: {error}"[:_QUOTED], tool_call_id=call_id, status="error")
    return answer


def _unsupported(error: BaseException | None) -> bool:
    """Returns whether a model or its provider rejects a form, so that another one may work."""
    return isinstance(error, NotImplementedError | TypeError | ValueError) or is_rejected(error)


def _read(message: AIMessage, schema: type[S]) -> S:
    """Parses the object in a message, in any of the forms; raises a ValueError that says why there is none."""
    wrong: ValueError | None = None
    for candidate in _candidates(message, schema):
        try:
            return schema.model_validate(candidate)
        except ValidationError as error:
            wrong = wrong or error
    raise wrong or ValueError(f"the reply has no object but this text: {message.text[:200]!r}")


def _candidates(message: AIMessage, schema: type[BaseModel]) -> Iterator[Any]:
    """Yields what may be the object: arguments of a call, and objects in a Markdown fence or in the text."""
    name = schema.__name__
    fields = set(schema.model_fields)
    yield from (call["args"] for call in message.tool_calls if call["name"] == name)
    for text in (*_FENCE.findall(message.text), message.text):
        for value in _objects(text):
            arguments = _arguments(value, name)
            # An object without any of the fields would fit a type whose fields are all optional.
            if fields & arguments.keys():
                yield arguments


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yields the outermost JSON objects in a text, in order."""
    start = text.find("{")
    for _ in range(_MOST_TRIED):
        if start < 0:
            return
        try:
            value, end = _READ.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield value
        start = text.find("{", end)


def _arguments(value: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns the object itself; or its arguments if it is a call of this name, which some models write as text."""
    call = value.get("function", value)
    if not isinstance(call, dict) or call.get("name") != name:
        return value
    arguments = call.get("arguments", call.get("parameters"))
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)
    return arguments if isinstance(arguments, dict) else value
