"""Callsheet's tools in an agent of somebody's own."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from callsheet.agents import BoundTool, ToolRegistry
from callsheet.agents.registry.binding import names_of
from callsheet.graphs import SettingsError
from callsheet.orchestrator import CallsheetTools
from callsheet.retrievers import AgentGraphRetriever

RATE, NOTE = "look up the exchange rate of USD", "write a note with the text hello"
FIRST = ["need_tool", "bank_exchange_rate"]
OURS = names_of("bank", "exchange_rate")[-1]
"""The name of the catalog's tool beside a tool of that name."""


def agent(model: Any, catalog: Any, *, tools: Any = (), **more: Any) -> Any:
    narrow: dict[str, Any] = {"agents": 1, "tools": 1, **more}
    return create_agent(
        model, tools=list(tools), middleware=[CallsheetTools(catalog, **narrow)], checkpointer=InMemorySaver()
    )


def ask(app: Any, given: Any = RATE, thread: str = "1") -> Any:
    asked = {"messages": [HumanMessage(given)]} if isinstance(given, str) else given
    return app.invoke(asked, {"configurable": {"thread_id": thread}})


def shown(model: Any) -> list[list[str]]:
    return [one["tools"] for one in model.shown]


def test_a_turn_is_equipped_with_what_its_request_needs(catalog: Any, shop: Any, scripted: Any, say: Any) -> None:
    model = scripted(replies=[say["calls"]("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
    state = ask(agent(model, catalog), RATE)
    assert shop.called == ["exchange_rate"]
    assert state["messages"][-1].text == "0.9"
    assert shown(model) == [FIRST] * 2


def test_a_turn_is_equipped_with_a_shortlist_unless_told_otherwise(catalog: Any, scripted: Any) -> None:
    model = scripted(replies=[AIMessage("Hm.")])
    for told, most in ({}, 1), ({"tool_floor": 0.0}, 5):
        app = create_agent(model, middleware=[CallsheetTools(catalog, **told)], checkpointer=InMemorySaver())
        ask(app)
        assert shown(model)[-1][:2] == FIRST
        assert len(shown(model)[-1]) == 1 + most


async def test_an_asynchronous_turn_too(catalog: Any, shop: Any, scripted: Any, say: Any) -> None:
    model = scripted(replies=[say["calls"]("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
    config: Any = {"configurable": {"thread_id": "1"}}
    state = await agent(model, catalog).ainvoke({"messages": [HumanMessage(RATE)]}, config)
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "0.9")


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
    config: Any = {"configurable": {"thread_id": "1"}}
    given: Any = {"messages": [HumanMessage(RATE)]}
    state = app.invoke(given, config) if blocking else await app.ainvoke(given, config)
    (question,) = state["__interrupt__"]
    assert question.value["description"].startswith("The agent wants to call bank/exchange_rate")
    assert shop.called == []
    answer: Any = Command(resume={question.id: {"type": "edit", "args": {"currency": "NOK"}}})
    state = app.invoke(answer, config) if blocking else await app.ainvoke(answer, config)
    answer = Command(resume={found.id: "approve" for found in state["__interrupt__"]})
    state = app.invoke(answer, config) if blocking else await app.ainvoke(answer, config)
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


def test_no_more_than_the_most_are_kept(catalog: Any, scripted: Any) -> None:
    model = scripted(replies=[AIMessage("Hm.")])
    app = agent(model, catalog, most=1)
    ask(app, RATE)
    ask(app, NOTE)
    assert shown(model)[-1] == FIRST
    with pytest.raises(SettingsError, match=r"most \(1\) must be at least tools \(2\)"):
        CallsheetTools(catalog, tools=2, most=1)


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


def test_a_tool_that_was_not_picked_cannot_be_called(catalog: Any, shop: Any, scripted: Any, say: Any) -> None:
    model = scripted(replies=[say["calls"]("notebook_delete_note", title="x"), AIMessage("Hm.")])
    state = ask(agent(model, catalog), RATE)
    assert shop.called == []
    assert "notebook_delete_note is not a valid tool" in state["messages"][-2].text


def test_a_failing_tool_is_told_to_the_model(catalog: Any, shop: Any, scripted: Any, say: Any) -> None:
    shop.broken.add("exchange_rate")
    model = scripted(replies=[say["calls"]("bank_exchange_rate", currency="USD"), AIMessage("Hm.")])
    state = ask(agent(model, catalog), RATE)
    assert "out of order" in state["messages"][-2].text


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


def test_a_call_of_its_own_tool_written_as_text_is_left_to_the_agent(catalog: Any, shop: Any, scripted: Any) -> None:
    @tool
    def lookup(currency: str) -> str:
        """A tool of one's own."""
        return currency

    model = scripted(replies=[AIMessage('{"name": "lookup", "arguments": {"currency": "USD"}}')])
    state = ask(agent(model, catalog, tools=[lookup]), RATE)
    assert state["messages"][-1].text.startswith('{"name"')


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
    state = ask(started(), Command(resume={question.id: "approve"}))
    assert (shop.called, state["messages"][-2].text) == (["exchange_rate"], "1 USD = 0.9 EUR")


def test_a_node_of_a_graph_of_ones_own(shop: Any, monkeypatch: pytest.MonkeyPatch, scripted: Any, say: Any) -> None:
    shop.approval = None
    model = scripted(replies=[say["calls"]("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
    narrow = CallsheetTools(shop.loaded(monkeypatch), agents=1, tools=1)
    node = create_agent(model, middleware=[narrow], checkpointer=True)
    app = StateGraph(MessagesState).add_node("agent", node).add_edge(START, "agent").compile(InMemorySaver())
    (question,) = ask(app)["__interrupt__"]
    state = ask(app, Command(resume={question.id: "approve"}))
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "0.9")
    ask(app, NOTE)
    assert shown(model)[-1] == [*FIRST, "notebook_write_note"]


def test_a_loop_of_ones_own(catalog: Any, shop: Any, scripted: Any, say: Any) -> None:
    retriever, registry = AgentGraphRetriever.from_catalog(catalog), ToolRegistry.from_catalog(catalog)
    model = scripted(replies=[say["calls"]("bank_exchange_rate", currency="USD"), AIMessage("0.9")])

    def bound(state: MessagesState) -> list[BoundTool]:
        ids = [tool.id for tool in retriever.select(state["messages"][0].text, tools=1).tools]
        return list(registry.bind(ids, "1").values())

    def think(state: MessagesState) -> Any:
        return {"messages": [model.bind_tools(bound(state)).invoke(state["messages"])]}

    def act(state: MessagesState) -> Any:
        return ToolNode(bound(state))

    graph = StateGraph(MessagesState).add_node("think", think).add_node("tools", act).add_edge(START, "think")
    graph.add_conditional_edges("think", tools_condition).add_edge("tools", "think")
    state = graph.compile().invoke({"messages": [HumanMessage(RATE)]})
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "0.9")
    assert shown(model) == [["bank_exchange_rate"]] * 2
    registry.close("1")


@pytest.mark.parametrize(
    "wrong", [{"approval": "Always"}, {"approval": None}, {"tools": -1}, {"agents": 0}, {"most": 1}]
)
def test_an_invalid_option_is_refused_at_once(catalog: Any, wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        CallsheetTools(catalog, **wrong)
