"""A model's answer as an object: where it is read, which forms are tried, and what it costs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import tool
from pydantic import BaseModel, Field

from callsheet.agents.models.chat_models import ModelError
from callsheet.agents.models.structured import ask_for_object
from scripted_model import ScriptedModel, calls


class Trip(BaseModel):
    """A trip."""

    place: str = ""
    days: int = 1


ASKED = [HumanMessage("Plan a trip")]
OSLO = {"place": "Oslo", "days": 2}
USAGE: Any = {"input_tokens": 10, "output_tokens": 1, "total_tokens": 11}


def priced(message: AIMessage) -> AIMessage:
    return message.model_copy(update={"usage_metadata": USAGE})


@pytest.mark.parametrize(
    "written",
    [
        f"```json\n{json.dumps(OSLO)}\n```",
        f"```\n{json.dumps(OSLO, indent=2)}\n```\nThat is all.",
        f"For {{place}} I say:\n{json.dumps(OSLO)}",
        f'A setting first:\n```json\n{{"verbose": true}}\n```\nThe trip:\n```json\n{json.dumps(OSLO)}\n```',
        f"```json\n{json.dumps({'name': 'Trip', 'arguments': OSLO})}\n```",
        f"<tool_call>{json.dumps({'name': 'Trip', 'parameters': OSLO})}</tool_call>",
        json.dumps({"type": "function", "function": {"name": "Trip", "arguments": json.dumps(OSLO)}}),
    ],
)
async def test_an_object_in_a_text_is_read_before_anything_is_asked_again(written: str) -> None:
    model = ScriptedModel(replies=[AIMessage(written)])
    trip, usage = await ask_for_object(model, Trip, ASKED)
    assert (trip.place, trip.days, usage.calls) == ("Oslo", 2, 1)


@pytest.mark.parametrize("written", ['{"verbose": true}', "no object", "{" * 5_000, '{"place": ["Oslo"]}'])
async def test_an_object_with_other_fields_is_not_read(written: str) -> None:
    model = ScriptedModel(replies=[priced(AIMessage(written)), priced(calls("Trip", **OSLO))])
    trip, usage = await ask_for_object(model, Trip, ASKED)
    assert trip.place == "Oslo"
    assert (usage.calls, usage.input_tokens) == (2, 20)  # the reply that was not used is paid for too


class RefusedError(Exception):
    """An error of a provider, with its HTTP status."""

    def __init__(self, status_code: int) -> None:
        super().__init__(f"HTTP {status_code}")
        self.status_code = status_code


class Choosy(BaseChatModel):
    """A provider that refuses some forms with a status, and keeps in which forms it was asked."""

    refused: dict[str, Any] = Field(default_factory=dict)
    answer: Any = AIMessage(json.dumps(OSLO))
    asked: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "choosy"

    def with_structured_output(self, schema: Any, *, include_raw: bool = False, **kwargs: Any) -> Runnable[Any, Any]:
        method = kwargs["method"]
        return RunnableLambda(lambda _: {"raw": self._said(method)})

    def _said(self, form: str) -> AIMessage:
        self.asked.append(form)
        if status := self.refused.get(form):
            raise RefusedError(status)
        return self.answer

    def _generate(
        self, messages: Sequence[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._said("text"))])


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_a_form_that_the_provider_refuses_is_not_tried_again(status: int) -> None:
    model = Choosy(refused={"function_calling": status, "json_schema": status})
    for _ in range(3):
        assert (await ask_for_object(model, Trip, ASKED))[0].place == "Oslo"
    assert model.asked == ["function_calling", "json_schema", "text", "text", "text"]


async def test_the_next_form_is_tried_first_from_then_on() -> None:
    model = Choosy(refused={"function_calling": 400})
    await ask_for_object(model, Trip, ASKED)
    await ask_for_object(model, Trip, ASKED)
    assert model.asked == ["function_calling", "json_schema", "json_schema"]


async def test_a_request_that_is_refused_in_each_form_says_nothing_of_the_forms() -> None:
    model = Choosy(refused=dict.fromkeys(("function_calling", "json_schema", "text"), 400))
    with pytest.raises(ModelError, match="HTTP 400"):
        await ask_for_object(model, Trip, ASKED)
    model.refused.clear()  # the next conversation is shorter
    await ask_for_object(model, Trip, ASKED)
    assert model.asked[3:] == ["function_calling"]


@pytest.mark.parametrize("status", [401, 429, 500])
async def test_another_error_is_raised_and_no_form_is_tried(status: int) -> None:
    model = Choosy(refused={"function_calling": status})
    with pytest.raises(ModelError, match=f"HTTP {status}"):
        await ask_for_object(model, Trip, ASKED)
    assert model.asked == ["function_calling"]


class ToolsRefused(ScriptedModel):
    """A model whose provider takes no tools, with LangChain's default for structured output."""

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        result = super()._generate(messages, stop, run_manager, **kwargs)
        if kwargs.get("tools"):
            raise RefusedError(400)
        return result


async def test_a_refused_tool_call_is_not_tried_again_under_the_name_of_a_schema() -> None:
    model = ToolsRefused(replies=[AIMessage(json.dumps(OSLO))])
    await ask_for_object(model, Trip, ASKED)
    assert [shown["tools"] for shown in model.shown] == [["Trip"], []]


# --------------------------------------------------------------------------------------------- tools beside the type


def lookup(*asked: str) -> tuple[Any, list[str]]:
    seen: list[str] = list(asked)

    @tool
    def list_places(country: str) -> str:
        """Lists the places of a country."""
        seen.append(country)
        return f"places of {country}: Oslo"

    return list_places, seen


async def test_lookups_are_answered_before_the_object() -> None:
    places, seen = lookup()
    look = priced(calls("list_places", country="Norway"))
    model = ScriptedModel(replies=[look, priced(calls("Trip", **OSLO))])
    trip, usage = await ask_for_object(model, Trip, ASKED, beside=[places])
    assert (trip.place, seen, usage.calls, usage.input_tokens) == ("Oslo", ["Norway"], 2, 20)
    assert model.shown[0]["tools"] == ["Trip", "list_places"]
    answer = model.shown[1]["messages"][-1]
    assert isinstance(answer, ToolMessage)
    assert answer.text == "places of Norway: Oslo"


async def test_a_model_looks_up_four_times_and_then_answers() -> None:
    places, seen = lookup()
    model = ScriptedModel(replies=[*[calls("list_places", country=str(n)) for n in range(4)], calls("Trip", **OSLO)])
    trip, _ = await ask_for_object(model, Trip, ASKED, beside=[places])
    assert (trip.place, len(seen)) == ("Oslo", 4)
    assert model.shown[4]["tools"] == ["Trip"]


async def test_the_model_sees_the_error_of_a_lookup_that_fails() -> None:
    places, seen = lookup()
    unknown = [{"name": "find_all", "args": {}, "id": "2"}, {"name": "list_places", "args": {}, "id": "3"}]
    model = ScriptedModel(replies=[AIMessage("", tool_calls=unknown), calls("Trip", **OSLO)])
    trip, _ = await ask_for_object(model, Trip, ASKED, beside=[places])
    answers = [message for message in model.shown[1]["messages"] if isinstance(message, ToolMessage)]
    assert (trip.place, seen, [answer.status for answer in answers]) == ("Oslo", [], ["error", "error"])
