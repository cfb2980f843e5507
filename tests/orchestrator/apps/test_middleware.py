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
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command

from callsheet.agents import BoundTool, ToolRegistry
from callsheet.agents.calls.review import decided, flat
from callsheet.agents.registry.binding import names_of
from callsheet.graphs import Policy, SettingsError, load
from callsheet.orchestrator import CallsheetTools
from callsheet.orchestrator.apps.tool_middleware import requests_of
from callsheet.retrievers import AgentGraphRetriever
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


def test_a_turn_is_equipped_with_a_shortlist_unless_told_otherwise(catalog: Any, scripted: Any) -> None:
    model = scripted(replies=[AIMessage("Hm.")])
    for told, most in ({}, 1), ({"tool_floor": 0.0}, 5):
        app = create_agent(model, middleware=[CallsheetTools(catalog, **told)], checkpointer=InMemorySaver())
        ask(app)
        assert shown(model)[-1][:2] == FIRST
        assert len(shown(model)[-1]) == 1 + most


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


def said(text: str, call: AIMessage) -> AIMessage:
    return call.model_copy(update={"content": text})


def to_do(say: Any, *items: str, done: tuple[str, ...] = (), call_id: str = "") -> AIMessage:
    todos = [{"content": item, "status": "completed" if item in done else "pending"} for item in items]
    message: AIMessage = say["calls"]("write_todos", todos=todos)
    message.tool_calls[0]["id"] = call_id or f"{items} {done}"
    return message


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
    "words",
    ["I will look up the exchange rate now.", "Good. That worked.", "", "   \n", "Let me think about what is next."],
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


def test_content_in_parts_is_read_where_it_is_text(catalog: Any, scripted: Any, say: Any) -> None:
    picture = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    call = say["calls"]("bank_exchange_rate", currency="USD")
    parts = call.model_copy(update={"content": [{"type": "text", "text": "Then I must write a note."}, picture]})
    model = scripted(replies=[parts, AIMessage("Hm.")])
    ask(agent(model, catalog), state(HumanMessage([picture, {"type": "text", "text": RATE}])))
    assert shown(model) == [FIRST, [*FIRST, "notebook_write_note"]]


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [HumanMessage("")],
        [HumanMessage([{"type": "image", "base64": "aGk=", "mime_type": "image/png"}])],
        [HumanMessage("a summary", additional_kwargs={"lc_source": "summarization"})],
        [AIMessage("")],
        [ToolMessage("write a note", tool_call_id="1")],
    ],
)
def test_nothing_that_was_asked_brings_no_tool(catalog: Any, messages: list[Any]) -> None:
    nothing: Any = None
    given: Any = {"messages": messages}
    assert CallsheetTools(catalog, tools=1).before_model(given, nothing) is None


def test_what_was_said_before_the_last_request_is_past() -> None:
    found = requests_of(state(HumanMessage(RATE), AIMessage("Next, write a note."), HumanMessage(NOTE)))
    assert [request.text for request in found] == [NOTE]


def test_a_document_in_a_message_is_searched_without_its_middle(catalog: Any) -> None:
    long, nothing = f"{RATE}\n{'lorem ipsum ' * 20_000}", None
    given: Any = {"messages": [HumanMessage(long)]}
    found: Any = CallsheetTools(catalog, tools=1).before_model(given, nothing)  # type: ignore[arg-type]
    assert found["callsheet_tools"] == ["bank/exchange_rate"]


def test_the_user_comes_first_then_the_list_then_the_agents_words() -> None:
    todos = [{"content": NOTE}, {"content": RATE.upper()}, {"content": NOTE}]
    found = requests_of(state(HumanMessage(RATE), AIMessage(f"{NOTE}. Then, {RATE}."), todos=todos))
    assert [(request.source, request.text) for request in found] == [
        ("user", RATE),
        ("to-do list", NOTE),
        ("agent", NOTE),
        ("agent", f"Then, {RATE}."),
    ]


def test_a_new_item_of_the_to_do_list_brings_its_tool(catalog: Any, shop: Any, scripted: Any, say: Any) -> None:
    model = scripted(
        replies=[
            to_do(say, "Look up the exchange rate"),
            to_do(say, "Look up the exchange rate", "Write a note with it", done=("Look up the exchange rate",)),
            say["calls"]("notebook_write_note", text="0.9"),
            AIMessage("Noted."),
        ]
    )
    ask(agent(model, catalog, TodoListMiddleware()))
    own = ["write_todos", *FIRST]
    assert shown(model) == [own, own, *[[*own, "notebook_write_note"]] * 2]
    assert shop.called == ["write_note"]


def test_what_is_done_is_not_to_be_done() -> None:
    todos = [{"content": NOTE, "status": "completed"}, {"content": RATE, "status": "in_progress"}]
    assert [request.text for request in requests_of(state(todos=todos))] == [RATE]


@pytest.mark.parametrize(
    "todos",
    [
        "write a note",
        {"content": NOTE},
        [None, 7, "write a note", {}, {"content": None}, {"content": ["write a note"]}, {"content": " "}],
    ],
)
def test_a_list_in_another_form_asks_for_nothing(todos: Any) -> None:
    assert requests_of(state(todos=todos)) == []


def test_a_list_that_repeats_itself_is_asked_once(catalog: Any, scripted: Any, say: Any) -> None:
    twice = [to_do(say, NOTE, NOTE, NOTE.upper(), f" {NOTE}  ", call_id=str(n)) for n in range(3)]
    assert len(requests_of(state(todos=twice[0].tool_calls[0]["args"]["todos"]))) == 1
    model = scripted(replies=[*twice, AIMessage("Hm.")])
    ask(agent(model, catalog, TodoListMiddleware()))
    own = ["write_todos", *FIRST]
    assert shown(model) == [own, *[[*own, "notebook_write_note"]] * 3]


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


def test_there_is_no_room_beyond_the_most(catalog: Any, scripted: Any, say: Any) -> None:
    model = scripted(replies=[need(say, "writes a note"), AIMessage("Hm.")])
    state = ask(agent(model, catalog, most=1))
    assert (state["messages"][-2].status, shown(model)[-1]) == ("error", FIRST)
    assert "at most 1 tools" in state["messages"][-2].text


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
    model = scripted(replies=[to_do(say, NOTE), words, AIMessage("I could not.")])
    withheld = load(catalog, policy=Policy(default="allow", deny=("notebook",)))
    state = ask(agent(model, withheld, TodoListMiddleware(), agents=4))
    assert not {"notebook_write_note", "notebook_delete_note"} & {name for names in shown(model) for name in names}
    assert "note" not in state["messages"][-2].text
