"""``messages`` hold the plan and the calls of a run in a form that every provider takes; our models are not sent it."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from callsheet import Settings, create_supervisor
from callsheet.agents import Plan, StepResult
from callsheet.agents.calls.outcome import Call
from callsheet.agents.calls.plan import Step
from callsheet.agents.work.context import recent, transcript
from callsheet.graphs import Loaded
from scripted_model import ScriptedModel, planned

RATE, WEATHER = "look up the rate of USD", "tell the weather of Oslo"


def providers(messages: list[BaseMessage]) -> list[Any]:
    """The requests that go to three providers."""
    from langchain_anthropic.chat_models import _format_messages
    from langchain_google_genai.chat_models import _parse_chat_history
    from langchain_openai.chat_models.base import _convert_message_to_dict

    openai = [_convert_message_to_dict(message) for message in messages]
    return [openai, _format_messages(messages, model="claude-sonnet-4-5")[1], _parse_chat_history(messages)[1]]


def is_valid(messages: list[BaseMessage]) -> bool:
    """Whether each call has its answer right after it, ids are unique, and no text of a model precedes a call."""
    asked = [call for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    ids = [call["id"] for call in asked]
    pairs = list(pairwise(messages))
    called = [(one, after) for one, after in pairs if isinstance(one, AIMessage) and one.tool_calls]
    return (
        len(set(ids)) == len(ids) == len([message for message in messages if isinstance(message, ToolMessage)])
        and all(isinstance(a, ToolMessage) and a.tool_call_id == one.tool_calls[0]["id"] for one, a in called)
        and not any(one.type == a.type == "ai" and getattr(a, "tool_calls", None) for one, a in pairs)
        and all(re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", i) for i in ids)
        and all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["name"]) for call in asked)
    )


def test_a_thread_holds_the_plan_and_the_calls_of_its_runs(catalog: Loaded, worker: ScriptedModel) -> None:
    plan = planned(("1", RATE, []), ("2", WEATHER, []))
    planner, answer = (
        ScriptedModel(replies=[plan, AIMessage("both again"), plan]),
        ScriptedModel(replies=[AIMessage("Both.")]),
    )
    models: dict[str, Any] = {"planner_model": planner, "worker_model": worker, "answer_model": answer}
    app: Any = create_supervisor(catalog, **models, settings=Settings()).compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    first = app.invoke({"messages": "Both, please."}, config)["messages"]
    assert [message.type for message in first] == ["human", "ai", "tool", "ai", "tool", "ai"]
    assert first[1].text == f"The plan:\n1. {RATE}\n2. {WEATHER}"
    assert [message.tool_calls[0]["name"] for message in first if message.type == "ai" and message.tool_calls] == [
        "bank_exchange_rate",
        "meteo_weather_report",
    ]
    assert (first[2].text, first[4].text, first[5].text) == ("1 USD = 0.9 EUR", "sunny in Oslo", "Both.")
    whole = app.invoke({"messages": "Again."}, config)["messages"]
    assert (len(whole), is_valid(whole)) == (12, True)
    for sent in providers([*whole, HumanMessage("And now?")]):
        assert json.dumps(sent, default=str).count("sunny in Oslo") == 2
    told = planner.shown[1]["messages"][-1].text
    assert ("Both, please." in told, "Assistant: Both." in told) == (True, True)
    assert "The plan" not in told
    for model in (planner, answer):
        assert not [m for seen in model.shown for m in seen["messages"] if "callsheet_part" in m.response_metadata]


def test_the_answer_alone_is_a_setting(catalog: Loaded, worker: ScriptedModel) -> None:
    app: Any = create_supervisor(catalog, worker_model=worker).compile()
    alone, calls = (
        app.invoke({"messages": RATE}, context={"transcript": how})["messages"] for how in ("answer", "calls")
    )
    assert [message.type for message in alone] == ["human", "ai"]
    assert [message.type for message in calls] == ["human", "ai", "tool", "ai"]
    assert (calls[1].text, calls[-1].text) == ("", alone[-1].text)
    assert [message.text for message in recent(calls, 2_000)] == [RATE, alone[-1].text]


@pytest.mark.parametrize("steps", [1, 2])
def test_a_transcript_takes_calls_with_unusual_and_large_arguments(steps: int) -> None:
    made = [
        Call(id="c1", agent="a b/c", tool="a b/c/dö thing!" + "x" * 90, args={"text": "y" * 10**6, "n": [1] * 10**5}),
        Call(id="c2", agent="", tool="no_such_tool", error="there is none"),
        Call(id="", agent="", tool="need_tool", output="you can now call"),
        Call(id="c3.1", agent="a", tool="a/t", output="z" * 10**6, began=2.0),
        Call(id="c4", agent="a", tool="a/t", error="it failed", began=1.0),
        Call(id="c5", agent="a", tool="a/empty", began=3.0),
    ]
    plan = Plan(steps=tuple(Step(id=str(number), text="do") for number in range(steps)))
    results = [StepResult(id="0", text="do", calls=tuple(made)), StepResult(id="0", text="do", calls=tuple(made))]
    messages: list[Any] = transcript("run", plan, results)
    assert is_valid(messages)
    assert is_valid([*messages, *transcript("other run", plan, results)][2 if steps > 1 else 0 :])
    assert len(json.dumps([message.model_dump() for message in messages])) < 12_000
    assert bool(messages[0].text) is (steps > 1)
    answers = [message for message in messages if isinstance(message, ToolMessage)]
    assert [answer.status for answer in answers] == ["success", "success", "error", "success"]
    assert [answer.text[:9] for answer in answers] == ["(no outpu", "zzzzzzzzz", "it failed", "(no outpu"]
    assert len(providers([HumanMessage("do"), *messages])) == 3


def test_a_plan_without_a_call_adds_nothing() -> None:
    assert transcript("run", Plan(steps=(Step(id="1", text="think"), Step(id="2", text="say"))), []) == []
