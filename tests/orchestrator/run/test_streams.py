"""What a client sees of a run in each mode of streaming: events, tokens, and which step each piece belongs to."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.load import dumpd
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk
from langgraph.checkpoint.memory import InMemorySaver

from callsheet import create_supervisor, load
from callsheet.graphs import Loaded
from callsheet.orchestrator import Settings
from fake_agents import FakeAgents
from scripted_model import ScriptedModel, calls, planned
from servers import FIXTURES

WEATHER, RATE = "tell the weather of Oslo", "look up the rate of USD"
STEPS = (("a", WEATHER, []), ("b", RATE, []))
THREAD: Any = {"configurable": {"thread_id": "1"}}


@pytest.fixture
def app(catalog: Loaded, worker: ScriptedModel) -> Any:
    planner = ScriptedModel(replies=[planned(*STEPS)])
    answer = GenericFakeChatModel(messages=iter([AIMessage("Sun in Oslo, and 0.9 EUR.")]))
    workflow = create_supervisor(catalog, planner_model=planner, worker_model=worker, answer_model=answer)
    return workflow.compile(checkpointer=InMemorySaver(), name="supervisor")


async def streamed(app: Any, mode: Any, **more: Any) -> list[Any]:
    given = {"messages": [HumanMessage(f"{WEATHER} and {RATE}")]}
    return [part async for part in app.astream(given, THREAD, stream_mode=mode, subgraphs=True, **more)]


async def test_events_tell_request_plan_picks_calls_and_results(app: Any) -> None:
    events = [event for _, event in await streamed(app, "custom")]
    request, plan = events[:2]
    assert (request["event"], request["request"]) == ("request", f"{WEATHER} and {RATE}")
    assert plan["event"] == "plan"
    assert [step["id"] for step in plan["steps"]] == ["a", "b"]
    for step_id in "ab":
        own = [event for event in events if event.get("step_id") == step_id]
        assert [event["event"] for event in own] == ["picked", "tool_started", "tool_finished", "step"]
    picked = next(event for event in events if event["event"] == "picked" and event["step_id"] == "b")
    assert picked["why"]["bank/exchange_rate"].startswith("score ")


async def test_a_pick_says_what_of_the_budget_is_spent(app: Any) -> None:
    events = [event for _, event in await streamed(app, "custom", context={"schema_tokens": 120, "tools": 3})]
    for event in (event for event in events if event["event"] == "picked"):
        budget = event["budget"]
        assert budget["schema_tokens_allowed"] == 120
        assert 0 < budget["schema_tokens"] <= 120
        assert budget["tools"] == sum(len(agent["tools"]) for agent in event["selection"]["agents"])


async def test_calls_are_told_when_they_begin_and_end(app: Any, shop: FakeAgents) -> None:
    shop.broken.add("exchange_rate")
    events = [event for _, event in await streamed(app, "custom", context={})]
    begun = next(event for event in events if event["event"] == "tool_started" and event["step_id"] == "a")
    ended = next(event for event in events if event["event"] == "tool_finished" and event["step_id"] == "a")
    failed = next(event for event in events if event["event"] == "tool_finished" and event["step_id"] == "b")
    assert (begun["agent"], begun["tool"], begun["args"]) == ("meteo", "meteo/weather_report", {"city": "Oslo"})
    assert begun["call_id"] == ended["call_id"]
    assert (ended["status"], ended["output"]) == ("success", "sunny in Oslo")
    assert ended["seconds"] >= 0
    assert (failed["status"], failed["kind"]) == ("error", "tool")
    assert "out of order" in failed["output"]


async def test_the_answer_is_streamed_once_and_the_plan_is_not(app: Any) -> None:
    said = [(ns, message, about) for ns, (message, about) in await streamed(app, "messages")]
    nodes = [about["langgraph_node"] for ns, _, about in said if not ns]
    assert nodes == ["dispatch"] * 4 + ["answer"] * (len(nodes) - 4)
    top = [message for ns, message, about in said if not ns and about["langgraph_node"] == "answer"]
    assert all(isinstance(message, AIMessageChunk) for message in top)
    assert "".join(message.text for message in top) == "Sun in Oslo, and 0.9 EUR."
    assert {message.id for message in top} == {app.get_state(THREAD).values["messages"][-1].id}


async def test_messages_of_workers_name_their_step(app: Any) -> None:
    said = [(message, about) for ns, (message, about) in await streamed(app, "messages") if ns]
    assert {about["step_id"] for _, about in said} == {"a", "b"}
    told = {about["step_id"]: message.text for message, about in said if message.type == "tool"}
    assert told == {"a": "sunny in Oslo", "b": "1 USD = 0.9 EUR"}
    assert {about["lc_agent_name"] for _, about in said} == {"worker"}


@pytest.mark.parametrize("mode", ["updates", "values", "tasks", "checkpoints", "debug"])
async def test_every_other_mode_names_the_step_of_what_a_worker_does(app: Any, mode: str) -> None:
    said = [json.dumps(part, default=dumpd) for ns, part in await streamed(app, mode) if len(ns) == 2]
    of_messages = [part for part in said if "HumanMessage" in part or "AIMessage" in part or "ToolMessage" in part]
    assert len(of_messages) >= 6
    assert [part for part in of_messages if '"step_id": "a"' not in part and '"step_id": "b"' not in part] == []


class Talker(ScriptedModel):
    """Says what it was told to, word by word."""

    def _stream(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Iterator[Any]:
        message: Any = self._generate(messages, stop, run_manager, **kwargs).generations[0].message
        for call in message.tool_calls:
            part = tool_call_chunk(name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=0)
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[part]))
        for word in re.findall(r"\S+\s*", message.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=word))


async def test_the_tokens_of_a_worker_are_streamed_with_its_step(catalog: Loaded) -> None:
    replies = [calls("bank_exchange_rate", currency="USD"), AIMessage("One dollar is 0.9 EUR today.")]
    app: Any = create_supervisor(catalog, worker_model=Talker(replies=replies)).compile()
    stream = app.astream({"messages": RATE}, stream_mode="messages", subgraphs=True)
    said = [(message, about) async for ns, (message, about) in stream if ns]
    tokens = [message.text for message, about in said if message.type == "AIMessageChunk" and message.text]
    assert tokens == ["One ", "dollar ", "is ", "0.9 ", "EUR ", "today."]
    assert {about["step_id"] for _, about in said} == {"1"}


async def test_the_progress_of_a_call_is_an_event_between_its_start_and_its_end(tmp_path: Path) -> None:
    server = {"command": sys.executable, "args": [str(FIXTURES / "talking_server.py"), "progress", "3", "0.2"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"studio": server}}))
    loaded = load(tmp_path / "mcp.json", yes=True)
    app = create_supervisor(loaded, settings=Settings(allow=("studio/work",))).compile(checkpointer=InMemorySaver())
    given = {"messages": [HumanMessage("does work")]}
    stream = app.astream(given, THREAD, stream_mode="custom", subgraphs=True)
    events = [event async for _, event in stream if event["event"] in ("tool_started", "progress", "tool_finished")]
    assert [event["event"] for event in events] == ["tool_started", *["progress"] * 3, "tool_finished"]
    told = events[1]
    assert (told["agent"], told["tool"], told["call_id"]) == ("studio", "studio/work", events[0]["call_id"])
    assert (told["progress"], told["total"], told["text"]) == (0, 3, "part 0")
