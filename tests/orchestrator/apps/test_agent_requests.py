"""Tools for what an agent asks for on its way: by its words, its to-do list, or ``need_tool``."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from callsheet.graphs import Policy, load
from callsheet.orchestrator import CallsheetTools
from callsheet.orchestrator.apps.agent_requests import requests_of

RATE, NOTE = "look up the exchange rate of USD", "write a note with the text hello"
FIRST = ["need_tool", "bank_exchange_rate"]


def agent(model: Any, catalog: Any, *before: Any, tools: Any = (), **more: Any) -> Any:
    narrow: dict[str, Any] = {"agents": 1, "tools": 1, **more}
    equipped = CallsheetTools(catalog, **narrow)
    return create_agent(model, tools=list(tools), middleware=[*before, equipped], checkpointer=InMemorySaver())


def run(app: Any, given: Any = RATE, thread: str = "1") -> Any:
    asked = {"messages": [HumanMessage(given)]} if isinstance(given, str) else given
    return app.invoke(asked, {"configurable": {"thread_id": thread}})


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


def shown(model: Any) -> list[list[str]]:
    return [one["tools"] for one in model.shown]


def state(*messages: Any, todos: Any = None) -> dict[str, Any]:
    return {"messages": list(messages), "todos": todos}


# ------------------------------------------------------------------------------------------------ its own words


def test_a_sentence_of_the_agent_brings_the_tool_that_it_speaks_of(
    catalog: Any, shop: Any, scripted: Any, say: Any
) -> None:
    rate = said("Now I need to write a note with the rate.", say["calls"]("bank_exchange_rate", currency="USD"))
    model = scripted(replies=[rate, say["calls"]("notebook_write_note", text="0.9"), AIMessage("Noted.")])
    run(agent(model, catalog))
    assert shop.called == ["exchange_rate", "write_note"]
    assert shown(model) == [FIRST, *[[*FIRST, "notebook_write_note"]] * 2]


@pytest.mark.parametrize(
    "words",
    ["I will look up the exchange rate now.", "Good. That worked.", "", "   \n", "Let me think about what is next."],
)
def test_words_that_ask_for_nothing_new_change_nothing(catalog: Any, scripted: Any, say: Any, words: str) -> None:
    model = scripted(replies=[said(words, say["calls"]("bank_exchange_rate", currency="USD")), AIMessage("0.9")])
    run(agent(model, catalog))
    assert shown(model) == [FIRST] * 2


def test_a_loop_over_the_same_words_searches_once(
    catalog: Any, scripted: Any, say: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from callsheet.orchestrator.apps import agent_requests

    asked: list[str] = []
    real = agent_requests.selected
    monkeypatch.setattr(agent_requests, "selected", lambda r, text, **k: asked.append(text) or real(r, text, **k))
    loop = said("Next, write a note. next write a NOTE!", say["calls"]("bank_exchange_rate", currency="USD"))
    run(agent(scripted(replies=[loop, loop, loop, loop, AIMessage("0.9")]), catalog))
    assert asked == [RATE, "Next, write a note"]


def test_content_in_parts_is_read_where_it_is_text(catalog: Any, scripted: Any, say: Any) -> None:
    picture = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}
    call = say["calls"]("bank_exchange_rate", currency="USD")
    parts = call.model_copy(update={"content": [{"type": "text", "text": "Then I must write a note."}, picture]})
    model = scripted(replies=[parts, AIMessage("Hm.")])
    run(agent(model, catalog), state(HumanMessage([picture, {"type": "text", "text": RATE}])))
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


# ------------------------------------------------------------------------------------------------ to-do lists


def test_a_new_item_of_the_to_do_list_brings_its_tool(catalog: Any, shop: Any, scripted: Any, say: Any) -> None:
    model = scripted(
        replies=[
            to_do(say, "Look up the exchange rate"),
            to_do(say, "Look up the exchange rate", "Write a note with it", done=("Look up the exchange rate",)),
            say["calls"]("notebook_write_note", text="0.9"),
            AIMessage("Noted."),
        ]
    )
    run(agent(model, catalog, TodoListMiddleware()))
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
    run(agent(model, catalog, TodoListMiddleware()))
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


# ------------------------------------------------------------------------------------------------ need_tool


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_tool_that_is_asked_for_is_added_behind(
    catalog: Any, shop: Any, scripted: Any, say: Any, *, blocking: bool
) -> None:
    model = scripted(
        replies=[need(say, "writes a note"), say["calls"]("notebook_write_note", text="0.9"), AIMessage("Noted.")]
    )
    app, config = agent(model, catalog), {"configurable": {"thread_id": "1"}}
    given = {"messages": [HumanMessage(RATE)]}
    state = app.invoke(given, config) if blocking else await app.ainvoke(given, config)
    assert "notebook_write_note (agent notebook): Writes a note" in state["messages"][2].text
    assert shop.called == ["write_note"]
    before, after, last = shown(model)
    assert (before, after[:3], last) == (FIRST, [*FIRST, "notebook_write_note"], after)
    run(app, "hello")
    assert shown(model)[-1] == after


def test_two_requests_side_by_side_both_count(catalog: Any, scripted: Any, say: Any) -> None:
    both = need(say, "writes a note", "a")
    both.tool_calls.append({**need(say, "tells the weather forecast of a city", "b").tool_calls[0]})
    model = scripted(replies=[both, need(say, "deletes a note", "c"), AIMessage("Hm.")])
    run(agent(model, catalog))
    assert {"notebook_write_note", "skywatch_city_weather"} <= set(shown(model)[-1])
    assert len(set(shown(model)[-1])) == len(shown(model)[-1])


def test_another_request_of_the_user_may_ask_again(catalog: Any, scripted: Any, say: Any) -> None:
    model = scripted(
        replies=[need(say, "writes a note"), AIMessage("Hm."), need(say, "bakes a cake"), AIMessage("Hm.")]
    )
    app = agent(model, catalog)
    run(app)
    assert run(app, "hello")["messages"][-2].text == "no other tool in the catalog does that"


def test_there_is_no_room_beyond_the_most(catalog: Any, scripted: Any, say: Any) -> None:
    model = scripted(replies=[need(say, "writes a note"), AIMessage("Hm.")])
    state = run(agent(model, catalog, most=1))
    assert (state["messages"][-2].status, shown(model)[-1]) == ("error", FIRST)
    assert "at most 1 tools" in state["messages"][-2].text


def test_an_own_tool_of_that_name_stays_its_own(catalog: Any, scripted: Any, say: Any) -> None:
    @tool
    def need_tool(what: str) -> str:
        """A tool of one's own."""
        return f"own {what}"

    model = scripted(replies=[need(say, "note"), AIMessage("Hm.")])
    assert run(agent(model, catalog, tools=[need_tool]))["messages"][-2].text == "own note"
    assert shown(model) == [FIRST] * 2


def test_a_request_that_a_small_model_writes_as_text_counts(catalog: Any, scripted: Any) -> None:
    written = AIMessage('{"name": "need_tool", "arguments": {"what": "writes a note"}}')
    model = scripted(replies=[written, AIMessage("Hm.")])
    run(agent(model, catalog, weak_model=True))
    assert "notebook_write_note" in shown(model)[-1]


def test_what_a_policy_denies_is_brought_by_nothing(catalog: Any, scripted: Any, say: Any) -> None:
    words = said("Now I need to write a note.", need(say, "writes a note"))
    model = scripted(replies=[to_do(say, NOTE), words, AIMessage("I could not.")])
    withheld = load(catalog, policy=Policy(default="allow", deny=("notebook",)))
    state = run(agent(model, withheld, TodoListMiddleware(), agents=4))
    assert not {"notebook_write_note", "notebook_delete_note"} & {name for names in shown(model) for name in names}
    assert "note" not in state["messages"][-2].text
