"""Structured output from any chat model: as a tool call, by JSON schema, or as JSON in text."""

from __future__ import annotations

import json
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.constants import TAG_NOSTREAM
from pydantic import BaseModel, ValidationError

from callsheet.agents.calls.token_usage import Usage, usage_of
from callsheet.agents.models.chat_models import ModelError, answered
from callsheet.agents.models.model_output import written_call, written_object

Form = Literal["tool", "json_schema", "text"]
_FORMS: tuple[Form, ...] = ("tool", "json_schema", "text")
_IN_TEXT = "Answer with one JSON object and nothing else. It must fit this JSON schema:\n{schema}"
QUIET: RunnableConfig = {"tags": [TAG_NOSTREAM]}
"""For calls whose tokens must not be streamed: a chat would show them as if they were said to the user."""
_REJECTED = (400, 404, 415, 422, 501)
"""HTTP status codes with which providers reject the form of a request."""
_known: dict[int, Form] = {}
S = TypeVar("S", bound=BaseModel)


class StructureError(ModelError):
    """A model answered, but not in the requested form."""


@dataclass(frozen=True, slots=True)
class Structured(Generic[S]):
    """A structured answer, and its cost, failed attempts in other forms included."""

    value: S
    usage: Usage


async def structured(model: BaseChatModel, schema: type[S], messages: Sequence[AnyMessage]) -> Structured[S]:
    """Asks a model for an object of this type.

    The forms (tool call, JSON schema, JSON in text) are tried in turn until the model answers in one. That form is
    remembered for the model, and is tried first next time.

    Args:
        model: The chat model.
        schema: Type of the answer. Its name is the name of the tool, or of the schema.
        messages: The conversation.

    Raises:
        StructureError: The model answered with prose in every form. Its ``usage`` is the cost.
        ModelError: The model did not answer.
    """
    began, spent, wrong = time.monotonic(), Usage(), ""
    for form in _forms(model):
        try:
            raw = await answered(_ask(model, schema, form, messages))
        except ModelError as error:
            if form == "text" or not _unsupported(error.__cause__):
                error.usage = spent
                raise
            wrong = str(error)
            continue
        spent += usage_of([raw])
        try:
            value = _read(raw, schema)
        except ValueError as error:
            wrong = " ".join(str(error).split())
            continue
        _remember(model, form)
        return Structured(value, spent + Usage(seconds=round(time.monotonic() - began, 3)))
    unusable = StructureError(f"the model did not answer in the requested form ({wrong or 'no object was given'})")
    unusable.usage = spent + Usage(seconds=round(time.monotonic() - began, 3))
    raise unusable


def _forms(model: BaseChatModel) -> list[Form]:
    known = _known.get(id(model))
    return sorted(_FORMS, key=lambda form: form != known)


def _remember(model: BaseChatModel, form: Form) -> None:
    if id(model) not in _known:
        weakref.finalize(model, _known.pop, id(model), None)
    _known[id(model)] = form


async def _ask(model: BaseChatModel, schema: type[BaseModel], form: Form, messages: Sequence[AnyMessage]) -> AIMessage:
    if form == "text":
        asked = HumanMessage(_IN_TEXT.format(schema=json.dumps(schema.model_json_schema())))
        return await model.ainvoke([*messages, asked], QUIET)
    options = {"method": "json_schema"} if form == "json_schema" else {}
    asking: Runnable[Any, Any] = model.with_structured_output(schema, include_raw=True, **options)
    answer: AIMessage = (await asking.ainvoke(list(messages), QUIET))["raw"]
    return answer


def _unsupported(error: BaseException | None) -> bool:
    """Whether a model or its provider rejects a form, so that another one may work."""
    if isinstance(error, NotImplementedError | TypeError | ValueError):
        return True
    return getattr(error, "status_code", None) in _REJECTED


def _read(message: AIMessage, schema: type[S]) -> S:
    """Parses the object in a message, in any of the forms.

    Raises:
        ValueError: There is no valid object; the message says why.
    """
    wrong: ValueError | None = None
    for candidate in _candidates(message, schema.__name__):
        try:
            return schema.model_validate(candidate)
        except ValidationError as error:
            wrong = wrong or error
    raise wrong or ValueError(f"no object was given but: {message.text[:200]!r}")


def _candidates(message: AIMessage, name: str) -> Iterator[Any]:
    """Where the object may be: in the arguments of a call, in the text, or in a call written as text."""
    yield from (call["args"] for call in message.tool_calls if call["name"] == name)
    if call := written_call(message.text, [name]):
        yield call["args"]
    elif (written := written_object(message.text)) is not None:
        yield written
