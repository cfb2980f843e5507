"""A worker that lacks a tool asks for it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from callsheet import CallsheetTools, Settings, create_supervisor
from callsheet.agents.calls.outcome import outcome_in
from callsheet.graphs import Agent, Catalog, Loaded, Skill, Tool, load
from fake_agents import FakeAgents
from provider_stub import MESSAGE, TEXT, anthropic, claude, function_call, gpt, openai, use
from scripted_model import ScriptedModel, calls

RATE = "look up the rate of USD"
NARROW = Settings(agents=1, tools=1)


def ask(catalog: Any, model: Any, settings: Settings = NARROW) -> Any:
    app = create_supervisor(catalog, worker_model=model, settings=settings).compile()
    return app.invoke({"messages": [HumanMessage(RATE)]})["results"]["1"]


def need(*tools: str, call_id: str = "", **more: Any) -> AIMessage:
    message = calls("need_tool", **({"tools": list(tools)} if tools else {}), **more)
    message.tool_calls[0]["id"] = call_id or "need"
    return message


def told_of(catalog: Any, request: AIMessage) -> ToolMessage:
    """What a worker is told when it asks for tools."""
    model = ScriptedModel(replies=[request, calls("finish", status="done", answer="I see.")])
    ask(catalog, model)
    told = model.shown[-1]["messages"][-1]
    assert isinstance(told, ToolMessage)
    return told


def test_a_named_tool_brings_those_that_always_come_with_its_agent(catalog: Loaded, shop: FakeAgents) -> None:
    notebook = catalog.catalog.agent("notebook")
    tools = tuple(one.model_copy(update={"always": one.name == "delete_note"}) for one in notebook.tools)
    agents = tuple(
        notebook.model_copy(update={"tools": tools}) if one is notebook else one for one in catalog.catalog.agents
    )
    always = replace(catalog, catalog=Catalog(agents=agents))
    model = ScriptedModel(replies=[need("notebook/write_note"), AIMessage("Noted.")])
    ask(always, model)
    assert model.shown[1]["tools"] == [*model.shown[0]["tools"], "notebook_write_note", "notebook_delete_note"]


def test_a_named_tool_is_added_behind_the_others_and_can_be_called(catalog: Loaded, shop: FakeAgents) -> None:
    model = ScriptedModel(
        replies=[need("notebook/write_note"), calls("notebook_write_note", text="0.9"), AIMessage("Noted 0.9.")]
    )
    result = ask(catalog, model)
    assert shop.called == ["write_note"]
    assert (result["status"], result["result"]) == ("done", "Noted 0.9.")
    first, second, third = (shown["tools"] for shown in model.shown)
    assert first == ["bank_exchange_rate", "run_program", "finish", "need_tool", "read_result"]
    assert second == [*first, "notebook_write_note"]
    assert third == second
    assert result["tools"][:2] == ["bank/exchange_rate", "notebook/write_note"]
    assert result["calls"][0]["tool"] == "need_tool"
    assert "notebook_write_note (agent notebook): Writes a note" in result["calls"][0]["output"]


@pytest.mark.parametrize(
    "name",
    [
        ["notebook/write_note", "notebook/delete_note"],
        ["write_note", "delete_note"],
        ["notebook_write_note", "notebook_delete_note"],
        ["Notebook/Write_Note", " DELETE_NOTE "],
    ],
)
def test_several_are_added_at_once_by_id_bare_name_or_the_name_of_the_bound_tool(
    catalog: Loaded, name: list[str]
) -> None:
    model = ScriptedModel(replies=[need(*name), AIMessage("Done.")])
    ask(catalog, model)
    assert model.shown[-1]["tools"][-2:] == ["notebook_write_note", "notebook_delete_note"]


@pytest.mark.parametrize("given", [{"tools": "write_note"}, {"what": "notebook/write_note"}])
def test_need_tool_takes_one_name_instead_of_a_list(catalog: Loaded, given: Any) -> None:
    model = ScriptedModel(replies=[need(**given), AIMessage("Done.")])
    ask(catalog, model)
    assert model.shown[-1]["tools"][-1] == "notebook_write_note"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("writes a note", "notebook: delete_note, write_note"),
        ("tells whether it will rain in a city", "skywatch: city_weather"),
        ("a forecast, to be put into the notebook", "meteo: weather_report"),
    ],
)
def test_words_are_answered_with_the_lines_of_agents_and_nothing_is_added(
    catalog: Loaded, words: str, line: str
) -> None:
    model = ScriptedModel(replies=[need(what=words), AIMessage("I see.")])
    result = ask(catalog, model)
    assert line in result["calls"][0]["output"].splitlines()
    assert model.shown[1]["tools"] == model.shown[0]["tools"]
    assert result["tools"] == ["bank/exchange_rate"]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["notebook/write_notes"], "There is no tool 'notebook/write_notes'; near: notebook/write_note"),
        (["write_nite"], "There is no tool 'write_nite'; near: "),
    ],
)
def test_an_unknown_name_is_answered_with_near_ones(catalog: Loaded, names: list[str], said: str) -> None:
    told = told_of(catalog, need(*names))
    assert said in told.text
    assert "notebook/write_note" in told.text
    assert told.status == "error"


def test_a_name_that_two_agents_have_is_answered_with_both() -> None:
    @tool
    def look(what: str) -> str:
        """Looks for a thing."""
        return what

    @tool
    def exchange_rate(currency: str) -> str:
        """Looks up the exchange rate of a currency in euro."""
        return currency

    told = told_of({"one": [look], "other": [look], "bank": [exchange_rate]}, need("look"))
    assert "There is no tool 'look'; near: one/look, other/look" in told.text


def test_a_name_like_no_other_is_taken_as_words(catalog: Loaded) -> None:
    told = told_of(catalog, need("umbrella_rain_advice"))
    assert "There is no tool 'umbrella_rain_advice'" in told.text
    assert "skywatch: city_weather" in told.text.splitlines()


def test_known_names_are_added_although_others_are_unknown(catalog: Loaded) -> None:
    told = told_of(catalog, need("notebook/write_note", "notebook/write_notes"))
    assert told.status == "success"
    assert "notebook_write_note (agent notebook)" in told.text
    assert "There is no tool 'notebook/write_notes'" in told.text


def test_the_name_of_an_agent_gives_its_tools_with_a_line_each_and_adds_nothing(catalog: Loaded) -> None:
    told = told_of(catalog, need("notebook"))
    assert told.text.splitlines() == [
        "notebook:",
        "- delete_note: Deletes a note from the notebook.",
        "- write_note: Writes a note with a text into the notebook.",
    ]
    assert outcome_in(told).added == ()


def test_a_tool_that_a_worker_has_is_named_as_it_calls_it(catalog: Loaded) -> None:
    told = told_of(catalog, need("bank/exchange_rate"))
    assert told.text == "You have bank/exchange_rate already: call bank_exchange_rate"


def test_a_skill_is_given_as_its_text(catalog: Loaded) -> None:
    skill = Skill(name="diary", description="How to keep a diary.", text="Write one note a day.")
    loaded = load(catalog)
    with_skill = loaded.catalog.model_copy(update={"skills": (skill,)})
    told = told_of(replace(loaded, catalog=with_skill), need("skills/diary"))
    assert told.text == "The skill 'diary':\nWrite one note a day."


def test_a_tool_that_was_not_added_cannot_be_called(catalog: Loaded, shop: FakeAgents) -> None:
    model = ScriptedModel(replies=[calls("notebook_write_note", text="x"), AIMessage("I could not.")])
    assert "notebook_write_note is not among the tools" in ask(catalog, model)["calls"][0]["error"]
    assert shop.called == []


def test_requests_count_as_calls_and_have_no_other_limit(catalog: Loaded) -> None:
    more = [need(what=f"writes a note {number}", call_id=str(number)) for number in range(4)]
    calls = ask(catalog, ScriptedModel(replies=[*more, AIMessage("Done.")]))["calls"]
    assert [bool(call["error"]) for call in calls] == [False] * 4
    few = ask(catalog, ScriptedModel(replies=[*more]), NARROW.model_copy(update={"max_calls": 3}))
    assert "stopped before it made more than 3 calls" in few["error"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "name the tools in 'tools', or say in 'what' what a tool must do"),
        ({"what": " ", "tools": [""]}, "name the tools in 'tools'"),
        ({"what": 7}, "what: Input should be a valid string"),
        ({"tools": {"a": 1}}, "tools: Input should be a valid list"),
    ],
)
def test_a_request_without_names_and_words_is_an_error(catalog: Loaded, given: Any, said: str) -> None:
    told = told_of(catalog, need(**given))
    assert said in told.text
    assert told.status == "error"


def test_a_call_adds_no_more_than_its_limit_and_says_what_it_left() -> None:
    names = [f"do_thing_{at}" for at in range(20)]
    agent = Agent(id="giant", tools=tuple(Tool(agent="giant", name=name, description="Does it.") for name in names))
    told = told_of(Catalog(agents=(agent,)), need(*(f"giant/{name}" for name in names)))
    assert len(outcome_in(told).added) == 15
    assert "Not added, because a call adds at most 15: giant/do_thing_1" in told.text


def test_two_requests_for_one_tool_add_it_once(catalog: Loaded) -> None:
    twice = need("write_note", call_id="a")
    twice.tool_calls.append({**need("notebook/write_note", call_id="b").tool_calls[0]})
    model = ScriptedModel(replies=[twice, AIMessage("Done.")])
    assert len(ask(catalog, model)["tools"]) == len(
        set(model.shown[-1]["tools"]) - {"need_tool", "finish", "read_result", "run_program"}
    )


def test_requests_for_tools_are_streamed(catalog: Loaded) -> None:
    model = ScriptedModel(replies=[need("write_note", what="writes a note"), AIMessage("Done.")])
    app = create_supervisor(catalog, worker_model=model, settings=NARROW).compile()
    chunks: Any = app.stream({"messages": [HumanMessage(RATE)]}, stream_mode="custom", subgraphs=True)
    added = [event for _, event in chunks if event["event"] == "added"]
    assert [(event["step_id"], event["what"]) for event in added] == [("1", "write_note, writes a note")]
    assert added[0]["tools"] == ["notebook/write_note"]


@pytest.mark.parametrize(("name", "blocking"), [("weather", True), ("notebook_write_note", False)])
async def test_a_call_of_an_unknown_tool_is_told_which_there_are(
    catalog: Loaded, shop: FakeAgents, *, name: str, blocking: bool
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


def test_a_tool_of_other_middleware_is_not_unknown(catalog: Loaded, shop: FakeAgents) -> None:
    class Other(AgentMiddleware):  # type: ignore[type-arg]
        def wrap_tool_call(self, request: Any, handler: Any) -> Any:
            return ToolMessage("called", tool_call_id=request.tool_call["id"], name="other")

    model = ScriptedModel(replies=[calls("other"), AIMessage("Hm.")])
    app = create_agent(model, middleware=[CallsheetTools(catalog), Other()], checkpointer=InMemorySaver())
    state: Any = app.invoke({"messages": [HumanMessage(RATE)]}, {"configurable": {"thread_id": "1"}})
    assert state["messages"][-2].text == "called"


ROUND = (use("need_tool", tools=["notebook/write_note"]), use("notebook_write_note", text="0.9"), TEXT)


def worker(catalog: Any, url: str, model: str = "claude-opus-4-5") -> None:
    settings = Settings(agents=1, tools=1)
    app = create_supervisor(catalog, worker_model=claude(url, model), settings=settings).compile()
    app.invoke({"messages": [HumanMessage("look up the rate of USD")]})


@pytest.mark.parametrize("model", ["claude-3-haiku", "claude-opus-4-5", "claude-opus-5"])
def test_a_tool_that_a_worker_asked_for_stands_behind_the_others(catalog: Loaded, shop: FakeAgents, model: str) -> None:
    with anthropic(*ROUND) as (url, bodies, betas):
        worker(catalog, url, model)
    assert shop.called == ["write_note"]
    assert "defer_loading" not in json.dumps(bodies)
    assert "You can now call:" in json.dumps(bodies[1]["messages"])
    assert betas == ["", "", ""]


CALLS = (
    function_call("need_tool", tools=["notebook/write_note"]),
    function_call("notebook_write_note", text="0.9"),
)


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-5.4", "a-model-of-somebody-else"])
def test_with_openai_a_requested_tool_stands_behind_the_others(catalog: Loaded, shop: FakeAgents, model: str) -> None:
    with openai(*CALLS, MESSAGE) as (url, bodies):
        app = create_supervisor(catalog, worker_model=gpt(url, model), settings=NARROW).compile()
        app.invoke({"messages": [HumanMessage(RATE)]})
    first, second, _ = bodies
    assert shop.called == ["write_note"]
    assert second["tools"][: len(first["tools"])] == first["tools"]
    assert "notebook_write_note" in [tool["name"] for tool in second["tools"]]
