"""A worker that lacks a tool asks for it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from callsheet import CallsheetTools, Settings, create_supervisor
from callsheet.agents import ToolRegistry
from callsheet.agents.models.chat_models import deferred
from provider_stub import MESSAGE, TEXT, anthropic, claude, function_call, gpt, openai, use
from scripted_model import ScriptedModel, calls

RATE = "look up the rate of USD"
NARROW = Settings(agents=1, tools=1)


def ask(catalog: Any, model: Any, settings: Settings = NARROW) -> Any:
    app = create_supervisor(catalog, worker_model=model, settings=settings).compile()
    return app.invoke({"messages": [HumanMessage(RATE)]})["results"]["1"]


def need(what: str, call_id: str = "") -> AIMessage:
    message = calls("need_tool", what=what)
    message.tool_calls[0]["id"] = call_id or what
    return message


def test_what_is_found_is_added_behind_and_can_be_called(catalog: Any, shop: Any) -> None:
    model = ScriptedModel(
        replies=[need("writes a note"), calls("notebook_write_note", text="0.9"), AIMessage("Noted 0.9.")]
    )
    result = ask(catalog, model)
    assert shop.called == ["write_note"]
    assert (result["status"], result["result"]) == ("done", "Noted 0.9.")
    first, second, third = (shown["tools"] for shown in model.shown)
    assert first == ["bank_exchange_rate", "finish", "need_tool"]
    assert second[:4] == ["bank_exchange_rate", "finish", "need_tool", "notebook_write_note"]
    assert third == second
    assert result["tools"][:2] == ["bank/exchange_rate", "notebook/write_note"]
    assert result["calls"][0]["tool"] == "need_tool"
    assert "notebook_write_note (agent notebook): Writes a note" in result["calls"][0]["output"]


def test_a_tool_that_was_not_asked_for_stays_out_of_reach(catalog: Any, shop: Any) -> None:
    model = ScriptedModel(replies=[calls("notebook_write_note", text="x"), AIMessage("I could not.")])
    assert "notebook_write_note is not among the tools" in ask(catalog, model)["calls"][0]["error"]
    assert shop.called == []


def test_requests_count_as_calls_and_have_no_other_limit(catalog: Any) -> None:
    more = [need(f"writes a note {number}", str(number)) for number in range(4)]
    calls = ask(catalog, ScriptedModel(replies=[*more, AIMessage("Done.")]))["calls"]
    assert [bool(call["error"]) for call in calls] == [False] * 4
    few = ask(catalog, ScriptedModel(replies=[*more]), NARROW.model_copy(update={"max_calls": 3}))
    assert "stopped before it made more than 3 calls" in few["error"]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("bakes a chocolate cake in an oven", "no other tool in the catalog does that"),
        (" ", "say what the tool must do"),
        (7, "say what the tool must do"),
    ],
)
def test_what_brings_nothing_is_said(catalog: Any, what: Any, said: str) -> None:
    model = ScriptedModel(replies=[need(what, "x"), lambda told: AIMessage(told[-1].text)])
    ask(catalog, model)
    told = model.shown[-1]["messages"][-1]
    assert isinstance(told, ToolMessage)
    assert said in told.text


def test_two_requests_for_one_tool_add_it_once(catalog: Any) -> None:
    twice = need("writes a note", "a")
    twice.tool_calls.append({**need("writes a note", "b").tool_calls[0]})
    model = ScriptedModel(replies=[twice, AIMessage("Done.")])
    assert len(ask(catalog, model)["tools"]) == len(set(model.shown[-1]["tools"]) - {"need_tool", "finish"})


def test_requests_are_streamed(catalog: Any) -> None:
    model = ScriptedModel(replies=[need("writes a note"), AIMessage("Done.")])
    app = create_supervisor(catalog, worker_model=model, settings=NARROW).compile()
    chunks: Any = app.stream({"messages": [HumanMessage(RATE)]}, stream_mode="custom", subgraphs=True)
    added = [event for _, event in chunks if event["event"] == "added"]
    assert [(event["step_id"], event["what"]) for event in added] == [("1", "writes a note")]
    assert "notebook/write_note" in added[0]["tools"]


@pytest.mark.parametrize(("name", "blocking"), [("weather", True), ("notebook_write_note", False)])
async def test_a_call_of_an_unknown_tool_is_told_which_there_are(
    catalog: Any, shop: Any, *, name: str, blocking: bool
) -> None:
    @tool
    def mine() -> str:
        """Mine."""
        return "mine"

    model = ScriptedModel(replies=[calls(name, x=1), AIMessage("Hm.")])
    equipped = CallsheetTools(catalog, agents=1, tools=1)
    app: Any = create_agent(model, tools=[mine], middleware=[equipped], checkpointer=InMemorySaver())
    given, config = {"messages": [HumanMessage(RATE)]}, {"configurable": {"thread_id": "1"}}
    state: Any = app.invoke(given, config) if blocking else await app.ainvoke(given, config)
    told = state["messages"][-2]
    assert (told.status, shop.called) == ("error", [])
    assert told.text == f"Error: {name} is not a valid tool, try one of [mine, need_tool, bank_exchange_rate]."


def test_a_tool_of_other_middleware_is_not_unknown(catalog: Any, shop: Any) -> None:
    class Other(AgentMiddleware):  # type: ignore[type-arg]
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            return ToolMessage("called", tool_call_id=request.tool_call["id"], name="other")

    model = ScriptedModel(replies=[calls("other"), AIMessage("Hm.")])
    app = create_agent(model, middleware=[CallsheetTools(catalog), Other()], checkpointer=InMemorySaver())
    state: Any = app.invoke({"messages": [HumanMessage(RATE)]}, {"configurable": {"thread_id": "1"}})
    assert state["messages"][-2].text == "called"


ROUND = (use("need_tool", what="write a note into the notebook"), use("notebook_write_note", text="0.9"), TEXT)


def worker(catalog: Any, url: str, model: str = "claude-opus-4-5") -> None:
    settings = Settings(agents=1, tools=1)
    app = create_supervisor(catalog, worker_model=claude(url, model), settings=settings).compile()
    app.invoke({"messages": [HumanMessage("look up the rate of USD")]})


def test_a_tool_that_a_worker_asked_for_is_deferred_and_referred_to(catalog: Any, shop: Any) -> None:
    with anthropic(*ROUND) as (url, bodies, betas):
        worker(catalog, url)
    first, second, _ = bodies
    before, after = first["tools"], second["tools"]
    assert shop.called == ["write_note"]
    assert after[: len(before)] == before  # the cached prefix
    added = after[len(before) :]
    assert "notebook_write_note" in [tool["name"] for tool in added]
    assert all(tool["defer_loading"] for tool in added)
    assert not any("defer_loading" in tool for tool in before)
    (result,) = second["messages"][-1]["content"]
    assert result["type"] == "tool_result"
    assert result["content"] == [{"type": "tool_reference", "tool_name": tool["name"]} for tool in added]
    assert second["messages"][: len(first["messages"])] == first["messages"]
    assert betas == ["", "advanced-tool-use-2025-11-20", "advanced-tool-use-2025-11-20"]


@pytest.mark.parametrize("model", ["claude-3-haiku", "claude-sonnet-4-20250514", "claude-opus-4-1"])
def test_a_model_without_tool_search_gets_them_behind_the_others(catalog: Any, shop: Any, model: str) -> None:
    with anthropic(*ROUND) as (url, bodies, betas):
        worker(catalog, url, model)
    assert shop.called == ["write_note"]
    assert "defer_loading" not in json.dumps(bodies)
    assert "You can now call:" in json.dumps(bodies[1]["messages"])
    assert betas == ["", "", ""]


def prefixed(before: Any, after: Any, name: str) -> bool:
    """Whether a request begins with all of another one."""
    return bool(after["tools"] == before["tools"] and after[name][: len(before[name])] == before[name])


def test_a_newer_claude_gets_a_tool_that_a_worker_asked_for_between_the_messages(catalog: Any, shop: Any) -> None:
    with anthropic(*ROUND) as (url, bodies, betas):
        worker(catalog, url, "claude-opus-5")
    assert shop.called == ["write_note"]
    assert all(prefixed(before, after, "messages") for before, after in pairwise(bodies))
    answered, added = bodies[1]["messages"][-2:]
    assert (answered["role"], answered["content"][0]["type"], added["role"]) == ("user", "tool_result", "system")
    definitions = {block["tool"]["definition"]["name"]: block["tool"] for block in added["content"]}
    assert {block["type"] for block in added["content"]} == {"tool_addition"}
    assert definitions["notebook_write_note"]["type"] == "tool_definition"
    assert set(definitions["notebook_write_note"]["definition"]) == {"name", "description", "input_schema"}
    assert betas == ["", "inline-tools-2026-09-15", "inline-tools-2026-09-15"]


def test_an_addition_stands_before_words_of_the_model_or_last(catalog: Any) -> None:
    held = ToolRegistry.from_catalog(catalog).bind(["notebook/write_note"], "run")
    said = [HumanMessage("a", id="a"), HumanMessage("b", id="b"), AIMessage("c"), HumanMessage("d", id="d")]
    request = ModelRequest(model=claude("http://127.0.0.1", "claude-opus-5"), messages=said, tools=[*held.values()])
    for place, expected in (("a", "human human system ai human"), ("d", "human human ai human system")):
        shown = deferred(request, held, {place: ["notebook/write_note"]})
        assert [message.type for message in shown.messages] == expected.split()
        assert shown.tools == []
    assert deferred(request, held, {"gone": ["notebook/write_note"]}).tools == request.tools


CALLS = (
    function_call("need_tool", what="write a note into the notebook"),
    function_call("notebook_write_note", text="0.9"),
)


def additions(body: Any) -> list[Any]:
    return [item for item in body["input"] if item.get("type") == "additional_tools"]


def test_openai_gets_a_tool_that_a_worker_asked_for_between_the_messages(catalog: Any, shop: Any) -> None:
    from openai.types.responses import FunctionToolParam
    from openai.types.responses.response_input_item_param import AdditionalTools

    with openai(*CALLS, MESSAGE) as (url, bodies):
        app = create_supervisor(catalog, worker_model=gpt(url), settings=NARROW).compile()
        app.invoke({"messages": [HumanMessage(RATE)]})
    first, second, third = bodies
    assert shop.called == ["write_note"]
    assert prefixed(first, second, "input")
    assert prefixed(second, third, "input")
    called, answered, added = second["input"][-3:]
    assert (called["type"], answered["type"]) == ("function_call", "function_call_output")
    assert added["type"] == "additional_tools"
    assert set(added) <= set(AdditionalTools.__annotations__)
    assert added["role"] == "developer"
    assert all(set(tool) <= set(FunctionToolParam.__annotations__) for tool in added["tools"])
    note = next(tool for tool in added["tools"] if tool["name"] == "notebook_write_note")
    assert note["type"] == "function"
    assert note["description"].startswith("Writes a note")
    assert note["parameters"]["properties"]["text"] == {"type": "string"}


@pytest.mark.parametrize("model", ["gpt-4o", "a-model-of-somebody-else"])
def test_a_model_that_takes_no_additions_gets_them_behind_the_others(catalog: Any, shop: Any, model: str) -> None:
    with openai(*CALLS, MESSAGE) as (url, bodies):
        app = create_supervisor(catalog, worker_model=gpt(url, model), settings=NARROW).compile()
        app.invoke({"messages": [HumanMessage(RATE)]})
    first, second, _ = bodies
    assert shop.called == ["write_note"]
    assert not additions(second)
    assert second["tools"][: len(first["tools"])] == first["tools"]
    assert "notebook_write_note" in [tool["name"] for tool in second["tools"]]


async def test_the_middleware_adds_for_openai_what_later_messages_need(catalog: Any, shop: Any) -> None:
    with openai(MESSAGE, *CALLS[1:], MESSAGE, MESSAGE) as (url, bodies):
        added = CallsheetTools(catalog, agents=1, tools=1, approval="never")
        agent = create_agent(gpt(url), tools=[], middleware=[added], checkpointer=InMemorySaver())
        for text in (RATE, "write a note into the notebook", RATE):
            await agent.ainvoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "1"}})
    assert shop.called == ["write_note"]
    assert all(prefixed(before, after, "input") for before, after in pairwise(bodies))
    (items,) = additions(bodies[-1])
    assert "notebook_write_note" in [tool["name"] for tool in items["tools"]]
