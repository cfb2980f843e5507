"""Callsheet's tools in an agent of somebody's own, also for what it asks for on its way."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from callsheet.agents.calls.review import decided, flat
from callsheet.agents.registry.binding import names_of
from callsheet.graphs import Policy, SettingsError, load
from callsheet.orchestrator import CallsheetTools
from callsheet.orchestrator.apps.tool_middleware import requests_of
from scripted_decisions import Stub, of

RATE, NOTE = "look up the exchange rate of USD", "write a note with the text hello"
FIRST = ["need_tool", "bank_exchange_rate"]
OURS = names_of("bank", "exchange_rate")[-1]
"""The name of the catalog's tool beside a tool of that name."""


def agent(model: Any, catalog: Any, *before: Any, tools: Any = (), **more: Any) -> Any:
    narrow: dict[str, Any] = {"agents": 1, "tools": 1, **more}
    equipped = CallsheetTools(catalog, **narrow)
    return create_agent(model, tools=list(tools), middleware=[*before, equipped], checkpointer=InMemorySaver())


def ask(app: Any, given: Any = RATE, thread: str = "1") -> Any:
    asked = {"messages": [HumanMessage(given)]} if isinstance(given, str) else given
    return app.invoke(asked, {"configurable": {"thread_id": thread}})


def shown(model: Any) -> list[list[str]]:
    return [one["tools"] for one in model.shown]


async def either(app: Any, given: Any, *, blocking: bool) -> Any:
    """The state after one turn, made synchronously or not."""
    config: Any = {"configurable": {"thread_id": "1"}}
    given = {"messages": [HumanMessage(given)]} if isinstance(given, str) else given
    return app.invoke(given, config) if blocking else await app.ainvoke(given, config)


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_turn_is_equipped_with_what_its_request_needs(
    catalog: Any, shop: Any, scripted: Any, say: Any, *, blocking: bool
) -> None:
    model = scripted(replies=[say["calls"]("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
    state = await either(agent(model, catalog), RATE, blocking=blocking)
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "0.9")
    assert shown(model) == [FIRST] * 2


def test_a_later_turn_adds_behind_and_takes_nothing_away(catalog: Any, scripted: Any) -> None:
    model = scripted(replies=[AIMessage("Hm.")])
    app = agent(model, catalog)
    ask(app, RATE)
    ask(app, NOTE)
    ask(app, RATE)
    assert shown(model) == [FIRST, *[[*FIRST, "notebook_write_note"]] * 2]


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_person_is_asked_about_risky_tools(
    shop: Any, monkeypatch: pytest.MonkeyPatch, scripted: Any, say: Any, *, blocking: bool
) -> None:
    shop.approval = None
    model = scripted(replies=[say["calls"]("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
    app = agent(model, shop.loaded(monkeypatch))
    state = await either(app, RATE, blocking=blocking)
    (question,) = state["__interrupt__"]
    assert flat(question.value)["description"].startswith("The agent wants to call bank/exchange_rate")
    assert shop.called == []
    answer: Any = Command(resume={question.id: decided("edit", question.value, args={"currency": "NOK"})})
    state = await either(app, answer, blocking=blocking)
    answer = Command(resume={found.id: {"type": "approve"} for found in state["__interrupt__"]})
    state = await either(app, answer, blocking=blocking)
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "0.9")
    assert "1 NOK" in state["messages"][-2].text


def test_an_agent_without_a_checkpointer_says_so_at_once(
    shop: Any, monkeypatch: pytest.MonkeyPatch, scripted: Any
) -> None:
    shop.approval = None
    model = scripted(replies=[AIMessage("Hm.")])
    app: Any = create_agent(model, middleware=[CallsheetTools(shop.loaded(monkeypatch))])
    with pytest.raises(SettingsError, match="needs a checkpointer"):
        app.invoke({"messages": [HumanMessage(RATE)]})
    assert model.shown == []


def test_a_decision_model_judges_requests_but_not_what_the_agent_says(catalog: Any, scripted: Any, say: Any) -> None:
    judge = Stub(shares=of(write_note=0.9))
    asks = say["calls"]("need_tool", what=NOTE).tool_calls
    model = scripted(replies=[AIMessage("I look up the rate of USD.", tool_calls=asks), AIMessage("Hm.")])
    ask(agent(model, catalog, decision_model=judge), RATE)
    assert shown(model)[0] == ["need_tool", "notebook_write_note"]
    assert [asked["request"] for asked, _ in judge.asked] == [RATE, NOTE]
    hopeless = scripted(replies=[AIMessage("Hm.")])
    ask(agent(hopeless, catalog, decision_model=Stub(shares={"none": 1.0})), RATE)
    assert shown(hopeless) == [["need_tool"]]


def test_no_more_than_the_most_are_kept(catalog: Any, scripted: Any, say: Any) -> None:
    model = scripted(replies=[need(say, "writes a note"), AIMessage("Hm.")])
    app = agent(model, catalog, most=1)
    said = ask(app, RATE)["messages"][-2]
    assert (said.status, "at most 1 tools" in said.text) == ("error", True)
    ask(app, NOTE)
    assert shown(model)[-1] == FIRST


def test_own_tools_stay_first_and_keep_their_names(catalog: Any, shop: Any, scripted: Any, say: Any) -> None:
    @tool
    def bank_exchange_rate(currency: str) -> str:
        """A rate of one's own."""
        return f"own rate of {currency}"

    both = say["calls"]("bank_exchange_rate", currency="USD")
    both.tool_calls.append({**say["calls"](OURS, currency="USD").tool_calls[0]})
    model = scripted(replies=[both, AIMessage("Hm.")])
    state = ask(agent(model, catalog, tools=[bank_exchange_rate]), RATE)
    said = [message.text for message in state["messages"] if isinstance(message, ToolMessage)]
    assert said == ["own rate of USD", "1 USD = 0.9 EUR"]
    assert shown(model)[0] == ["bank_exchange_rate", "need_tool", OURS]
    assert shop.called == ["exchange_rate"]


def test_a_request_that_nothing_fits_brings_no_tool(catalog: Any, scripted: Any) -> None:
    model = scripted(replies=[AIMessage("Hello.")])
    ask(agent(model, catalog), "bake a chocolate cake in an oven")
    assert shown(model)[-1] == ["need_tool"]


def test_messages_without_ids_are_requests_too(catalog: Any) -> None:
    equipped = CallsheetTools(catalog, agents=1, tools=1)
    nothing: Any = None
    first = equipped.before_model({"messages": [HumanMessage(RATE)]}, nothing)
    assert first is not None
    assert first["callsheet_tools"] == ["bank/exchange_rate"]
    again: Any = {"messages": [HumanMessage(RATE), AIMessage("")], **first}
    assert equipped.before_model(again, nothing) is None
    again["messages"].append(HumanMessage(NOTE))
    second = equipped.before_model(again, nothing)
    assert second is not None
    assert second["callsheet_tools"] == ["bank/exchange_rate", "notebook/write_note"]


def test_a_call_that_a_small_model_writes_as_text_is_made(catalog: Any, shop: Any, scripted: Any) -> None:
    written = AIMessage('```json\n{"name": "bank_exchange_rate", "arguments": {"currency": "USD"}}\n```')
    model = scripted(replies=[written, AIMessage("0.9")])
    state = ask(agent(model, catalog, weak_model=True), RATE)
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "0.9")


def test_one_object_in_two_agents_keeps_their_names_apart(catalog: Any, scripted: Any) -> None:
    @tool
    def bank_exchange_rate(currency: str) -> str:
        """A rate of one's own."""
        return currency

    shared, saver = CallsheetTools(catalog, agents=1, tools=1), InMemorySaver()
    model, other = scripted(replies=[AIMessage("Hm.")]), scripted(replies=[AIMessage("Hm.")])
    app = create_agent(model, middleware=[shared], checkpointer=saver)
    beside = create_agent(other, tools=[bank_exchange_rate], middleware=[shared], checkpointer=saver)
    ask(app)
    ask(beside, thread="2")
    ask(app)
    assert shown(model) == [FIRST] * 2
    assert shown(other) == [["bank_exchange_rate", "need_tool", OURS]]


def test_a_question_is_answered_in_another_process(
    shop: Any, monkeypatch: pytest.MonkeyPatch, scripted: Any, say: Any
) -> None:
    @tool
    def bank_exchange_rate(currency: str) -> str:
        """A rate of one's own."""
        return f"own {currency}"

    shop.approval, saver = None, InMemorySaver()
    catalog = shop.loaded(monkeypatch)
    model = scripted(replies=[say["calls"](OURS, currency="USD"), AIMessage("0.9")])

    def started() -> Any:
        narrow = CallsheetTools(catalog, agents=1, tools=1)
        return create_agent(model, tools=[bank_exchange_rate], middleware=[narrow], checkpointer=saver)

    (question,) = ask(started())["__interrupt__"]
    state = ask(started(), Command(resume={question.id: {"type": "approve"}}))
    assert (shop.called, state["messages"][-2].text) == (["exchange_rate"], "1 USD = 0.9 EUR")


def test_a_node_of_a_graph_of_ones_own(shop: Any, monkeypatch: pytest.MonkeyPatch, scripted: Any, say: Any) -> None:
    shop.approval = None
    model = scripted(replies=[say["calls"]("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
    narrow = CallsheetTools(shop.loaded(monkeypatch), agents=1, tools=1)
    node = create_agent(model, middleware=[narrow], checkpointer=True)
    app = StateGraph(MessagesState).add_node("agent", node).add_edge(START, "agent").compile(InMemorySaver())
    (question,) = ask(app)["__interrupt__"]
    state = ask(app, Command(resume={question.id: {"type": "approve"}}))
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "0.9")
    ask(app, NOTE)
    assert shown(model)[-1] == [*FIRST, "notebook_write_note"]


@pytest.mark.parametrize(
    "wrong", [{"approval": "Always"}, {"approval": None}, {"tools": -1}, {"agents": 0}, {"most": 1}]
)
def test_an_invalid_option_is_refused_at_once(catalog: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        CallsheetTools(catalog, **wrong)


def said(text: str, call: AIMessage) -> AIMessage:
    return call.model_copy(update={"content": text})


def need(say: Any, what: Any, call_id: str = "") -> AIMessage:
    message: AIMessage = say["calls"]("need_tool", what=what)
    message.tool_calls[0]["id"] = call_id or str(what)
    return message


def state(*messages: Any, todos: Any = None) -> dict[str, Any]:
    return {"messages": list(messages), "todos": todos}


def test_a_sentence_of_the_agent_brings_the_tool_that_it_speaks_of(
    catalog: Any, shop: Any, scripted: Any, say: Any
) -> None:
    rate = said("Now I need to write a note with the rate.", say["calls"]("bank_exchange_rate", currency="USD"))
    model = scripted(replies=[rate, say["calls"]("notebook_write_note", text="0.9"), AIMessage("Noted.")])
    ask(agent(model, catalog))
    assert shop.called == ["exchange_rate", "write_note"]
    assert shown(model) == [FIRST, *[[*FIRST, "notebook_write_note"]] * 2]


@pytest.mark.parametrize(
    "words", ["I will look up the exchange rate now.", "Good. That worked.", "", "Let me think about what is next."]
)
def test_words_that_ask_for_nothing_new_change_nothing(catalog: Any, scripted: Any, say: Any, words: str) -> None:
    model = scripted(replies=[said(words, say["calls"]("bank_exchange_rate", currency="USD")), AIMessage("0.9")])
    ask(agent(model, catalog))
    assert shown(model) == [FIRST] * 2


def test_a_loop_over_the_same_words_searches_once(
    catalog: Any, scripted: Any, say: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from callsheet.orchestrator.apps import tool_middleware

    asked: list[str] = []
    real = tool_middleware.selected
    monkeypatch.setattr(tool_middleware, "selected", lambda r, text, **k: asked.append(text) or real(r, text, **k))
    loop = said("Next, write a note. next write a NOTE!", say["calls"]("bank_exchange_rate", currency="USD"))
    ask(agent(scripted(replies=[loop, loop, loop, loop, AIMessage("0.9")]), catalog))
    assert asked == [RATE, "Next, write a note"]


PICTURE = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}


def to_do(*items: Any) -> list[Any]:
    return [{"content": item, "status": "pending"} for item in items]


@pytest.mark.parametrize(
    ("given", "requests"),
    [
        (state(), []),
        (state(HumanMessage([PICTURE]), AIMessage("")), []),
        (state(HumanMessage("a summary", additional_kwargs={"lc_source": "summarization"})), []),
        (state(ToolMessage(NOTE, tool_call_id="1")), []),
        (state(HumanMessage([PICTURE, {"type": "text", "text": RATE}])), [("user", RATE)]),
        (state(HumanMessage(RATE), AIMessage("Next, write a note."), HumanMessage(NOTE)), [("user", NOTE)]),
        (
            state(HumanMessage(RATE), AIMessage(f"{NOTE}. Then, {RATE}."), todos=to_do(NOTE, RATE.upper(), NOTE)),
            [("user", RATE), ("to-do list", NOTE), ("agent", NOTE), ("agent", f"Then, {RATE}.")],
        ),
        (state(todos=[{"content": NOTE, "status": "completed"}, *to_do(RATE)]), [("to-do list", RATE)]),
        (state(todos=NOTE), []),
        (state(todos=[None, 7, NOTE, {}, *to_do(None, [NOTE], " ")]), []),
    ],
)
def test_requests_are_the_users_then_the_lists_then_the_agents_each_once(given: Any, requests: Any) -> None:
    assert [(request.source, request.text) for request in requests_of(given)] == requests


def test_a_document_in_a_message_is_searched_without_its_middle(catalog: Any) -> None:
    long, nothing = f"{RATE}\n{'lorem ipsum ' * 20_000}", None
    given: Any = {"messages": [HumanMessage(long)]}
    found: Any = CallsheetTools(catalog, tools=1).before_model(given, nothing)  # type: ignore[arg-type]
    assert found["callsheet_tools"] == ["bank/exchange_rate"]


def test_a_long_list_is_worked_off_in_parts_and_no_more_than_the_most_are_kept(catalog: Any) -> None:
    equipped, nothing = CallsheetTools(catalog, tools=1, most=2), None
    given: Any = state(HumanMessage(RATE), todos=[{"content": f"Write note {n}"} for n in range(50)])
    counts = []
    while update := equipped.before_model(given, nothing):  # type: ignore[arg-type]
        given |= update
        counts.append(len(given["callsheet_requests"]))
        assert len(given["callsheet_tools"]) <= 2
    assert counts == [20, 40, 51]


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_tool_that_is_asked_for_is_added_behind(
    catalog: Any, shop: Any, scripted: Any, say: Any, *, blocking: bool
) -> None:
    model = scripted(
        replies=[need(say, "writes a note"), say["calls"]("notebook_write_note", text="0.9"), AIMessage("Noted.")]
    )
    app = agent(model, catalog)
    state = await either(app, RATE, blocking=blocking)
    assert "notebook_write_note (agent notebook): Writes a note" in state["messages"][2].text
    assert shop.called == ["write_note"]
    before, after, last = shown(model)
    assert (before, after[:3], last) == (FIRST, [*FIRST, "notebook_write_note"], after)
    ask(app, "hello")
    assert shown(model)[-1] == after


def test_two_requests_side_by_side_both_count(catalog: Any, scripted: Any, say: Any) -> None:
    both = need(say, "writes a note", "a")
    both.tool_calls.append({**need(say, "tells the weather forecast of a city", "b").tool_calls[0]})
    model = scripted(replies=[both, need(say, "deletes a note", "c"), AIMessage("Hm.")])
    ask(agent(model, catalog))
    assert {"notebook_write_note", "skywatch_city_weather"} <= set(shown(model)[-1])
    assert len(set(shown(model)[-1])) == len(shown(model)[-1])


def test_an_own_tool_of_that_name_stays_its_own(catalog: Any, scripted: Any, say: Any) -> None:
    @tool
    def need_tool(what: str) -> str:
        """A tool of one's own."""
        return f"own {what}"

    model = scripted(replies=[need(say, "note"), AIMessage("Hm.")])
    assert ask(agent(model, catalog, tools=[need_tool]))["messages"][-2].text == "own note"
    assert shown(model) == [FIRST] * 2


def test_what_a_policy_denies_is_brought_by_nothing(catalog: Any, scripted: Any, say: Any) -> None:
    words = said("Now I need to write a note.", need(say, "writes a note"))
    model = scripted(replies=[say["calls"]("write_todos", todos=to_do(NOTE)), words, AIMessage("I could not.")])
    withheld = load(catalog, policy=Policy(default="allow", deny=("notebook",)))
    state = ask(agent(model, withheld, TodoListMiddleware(), agents=4))
    assert not {"notebook_write_note", "notebook_delete_note"} & {name for names in shown(model) for name in names}
    assert "note" not in state["messages"][-2].text
