"""Tool calls that a small model wrote as text; worker, middleware and reader of documents share what reads them."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import ModelResponse
from langchain_core.messages import AIMessage

from callsheet.agents import normalize
from callsheet.agents.models.chat_models import with_written_calls, written_calls

RATE = {"name": "rate", "args": {"currency": "USD"}}
NOTE = {"name": "note", "args": {"text": "{hello}"}}
FLAT = '{"name": "rate", "arguments": {"currency": "USD"}}'
NOTED = '{"name": "note", "parameters": {"text": "{hello}"}}'


@pytest.mark.parametrize(
    "text",
    [
        FLAT,
        f"I will look it up {{now}}.\n```json\n{FLAT}\n```\nThat {{is}} it.",
        f"<tool_call>\n{FLAT}\n</tool_call>",
        f"[TOOL_CALLS] [{FLAT}]",
        '{"name": "rate", "args": {"currency": "USD"}}',
        '{"name": "rate", "arguments": "{\\"currency\\": \\"USD\\"}"}',
        '{"type": "function", "id": "1", "function": {"name": "rate", "arguments": "{\\"currency\\": \\"USD\\"}"}}',
        f"{FLAT}\n{FLAT}\n{FLAT}",
        f"{FLAT} and {{",
        f'{{"name": "other", "arguments": {{}}}} {FLAT}',
    ],
)
def test_one_call_is_read_in_every_form(text: str) -> None:
    assert written_calls(text, {"rate", "note"}) == [RATE]


@pytest.mark.parametrize("between", ["\n", "</tool_call>\n<tool_call>", " and then ", ","])
def test_several_calls_are_read_in_order(between: str) -> None:
    assert written_calls(f"{FLAT}{between}{NOTED}{between}{FLAT}", {"rate", "note"}) == [RATE, NOTE]
    assert written_calls(f"[{FLAT}, {NOTED}]", ("rate", "note")) == [RATE, NOTE]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "The rate is 0.9.",
        FLAT[:-2],
        '{"name": "rate"}',
        '{"name": "rate", "arguments": null}',
        '{"name": "rate", "arguments": ["USD"]}',
        '{"name": "rate", "arguments": "USD"}',
        '{"name": "rate", "arguments": "' + "[" * 5_000 + '"}',
        '{"name": ["rate"], "arguments": {}}',
        '{"function": "rate", "arguments": {}}',
        '{"name": "other", "arguments": {}}',
        f'{{"plan": [{FLAT}]}}',
        "[1] {2}",
        "[" * 100_000,
        "{" * 100_000,
        '{"a":' * 100_000,
        '{"a": "' * 100_000,
    ],
)
def test_what_is_no_call_stays_text(text: str) -> None:
    assert written_calls(text, {"rate"}) == []


def test_a_long_list_is_read_in_part() -> None:
    many = ",".join(f'{{"name": "rate", "arguments": {{"n": {n}}}}}' for n in range(10_000))
    assert len(written_calls(f"[{many}]", {"rate"})) == 64


def said(*messages: AIMessage) -> list[Any]:
    return [with_written_calls(message, ["rate"], ()) for message in messages]


def test_calls_of_messages_without_ids_have_ids_of_their_own() -> None:
    first, second = said(AIMessage(FLAT), AIMessage(FLAT))
    calls = [*first.tool_calls, *second.tool_calls]
    assert [call["name"] for call in calls] == ["rate", "rate"]
    assert calls[0]["id"] != calls[1]["id"]
    assert said(AIMessage(FLAT, id="a"))[0].tool_calls[0]["id"] == "written_a_1"


def test_text_in_parts_is_read_too_and_what_it_cost_is_kept() -> None:
    usage: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    (message,) = said(AIMessage([{"type": "text", "text": FLAT}], usage_metadata=usage))
    assert (message.content, message.usage_metadata, len(message.tool_calls)) == ("", usage, 1)


def test_a_call_that_a_model_makes_itself_is_not_read_twice() -> None:
    message = AIMessage(FLAT, tool_calls=[{"name": "rate", "args": {}, "id": "1"}])
    assert said(message) == [message]


def test_calls_without_an_id_get_one_each() -> None:
    calls: Any = [{**RATE, "id": None}, {**NOTE, "id": "1"}, {**RATE, "id": None}]
    (message,) = normalize(ModelResponse(result=[AIMessage("", tool_calls=calls)]), {}).result
    assert isinstance(message, AIMessage)
    ids = [call["id"] for call in message.tool_calls]
    assert ids[1] == "1"
    assert all(ids)
    assert len(set(ids)) == 3
