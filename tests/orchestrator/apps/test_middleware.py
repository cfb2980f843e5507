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
from callsheet.agents.work.equipment import skill_definition
from callsheet.graphs import Policy, SettingsError, Skill, SourceCatalog, load
from callsheet.orchestrator import CallsheetTools
from callsheet.orchestrator.apps.tool_middleware import requests_of
from scripted_decisions import Stub, of
from scripted_model import ScriptedModel, calls

RATE, NOTE = "look up the exchange rate of USD", "write a note with the text hello"
FIRST = ["need_tool", "bank_exchange_rate"]
SKILL = Skill(name="rates", description="Look up the exchange rate of a currency.", text="Ask\u200b twice. " * 50)
CONFIG: Any = {"configurable": {"thread_id": "1"}}
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
    given = {"messages": [HumanMessage(given)]} if isinstance(given, str) else given
    return app.invoke(given, CONFIG) if blocking else await app.ainvoke(given, CONFIG)


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_turn_is_equipped_with_what_its_request_needs(catalog: Any, shop: Any, *, blocking: bool) -> None:
    model = ScriptedModel(replies=[calls("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
    state = await either(agent(model, catalog), RATE, blocking=blocking)
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "0.9")
    assert shown(model) == [FIRST] * 2


def test_a_later_turn_adds_behind_and_takes_nothing_away(catalog: Any) -> None:
    model = ScriptedModel(replies=[AIMessage("Hm.")])
    app = agent(model, catalog)
    ask(app, RATE)
    ask(app, NOTE)
    ask(app, RATE)
    assert shown(model) == [FIRST, *[[*FIRST, "notebook_write_note"]] * 2]


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_person_is_asked_about_risky_tools(
    shop: Any, monkeypatch: pytest.MonkeyPatch, *, blocking: bool
) -> None:
    shop.approval = None
    model = ScriptedModel(replies=[calls("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
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


def test_an_agent_without_a_checkpointer_says_so_at_once(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.approval = None
    model = ScriptedModel(replies=[AIMessage("Hm.")])
    app: Any = create_agent(model, middleware=[CallsheetTools(shop.loaded(monkeypatch))])
    with pytest.raises(SettingsError, match="needs a checkpointer"):
        app.invoke({"messages": [HumanMessage(RATE)]})
    assert model.shown == []


def test_a_decision_model_judges_requests_but_not_what_the_agent_says(catalog: Any) -> None:
    judge = Stub(shares=of(write_note=0.9))
    asks = calls("need_tool", what=NOTE).tool_calls
    model = ScriptedModel(replies=[AIMessage("I look up the rate of USD.", tool_calls=asks), AIMessage("Hm.")])
    ask(agent(model, catalog, decision_model=judge), RATE)
    assert shown(model)[0] == ["need_tool", "notebook_write_note"]
    assert [asked["request"] for asked, _ in judge.asked] == [RATE, NOTE]
    hopeless = ScriptedModel(replies=[AIMessage("Hm.")])
    ask(agent(hopeless, catalog, decision_model=Stub(shares={"none": 1.0})), RATE)
    assert shown(hopeless) == [["need_tool"]]


def test_no_more_than_the_most_are_kept(catalog: Any) -> None:
    model = ScriptedModel(replies=[need("writes a note"), AIMessage("Hm.")])
    app = agent(model, catalog, most=1)
    said = ask(app, RATE)["messages"][-2]
    assert (said.status, "at most 1 tools" in said.text) == ("error", True)
    ask(app, NOTE)
    assert shown(model)[-1] == FIRST


def test_own_tools_stay_first_and_keep_their_names(catalog: Any, shop: Any) -> None:
    @tool
    def bank_exchange_rate(currency: str) -> str:
        """A rate of one's own."""
        return f"own rate of {currency}"

    both = calls("bank_exchange_rate", currency="USD")
    both.tool_calls.append({**calls(OURS, currency="USD").tool_calls[0]})
    model = ScriptedModel(replies=[both, AIMessage("Hm.")])
    state = ask(agent(model, catalog, tools=[bank_exchange_rate]), RATE)
    said = [message.text for message in state["messages"] if isinstance(message, ToolMessage)]
    assert said == ["own rate of USD", "1 USD = 0.9 EUR"]
    assert shown(model)[0] == ["bank_exchange_rate", "need_tool", OURS]
    assert shop.called == ["exchange_rate"]


def test_a_request_that_nothing_fits_brings_no_tool(catalog: Any) -> None:
    model = ScriptedModel(replies=[AIMessage("Hello.")])
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


def test_a_call_that_a_small_model_writes_as_text_is_made(catalog: Any, shop: Any) -> None:
    written = AIMessage('```json\n{"name": "bank_exchange_rate", "arguments": {"currency": "USD"}}\n```')
    model = ScriptedModel(replies=[written, AIMessage("0.9")])
    state = ask(agent(model, catalog, weak_model=True), RATE)
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "0.9")


def test_one_object_in_two_agents_keeps_their_names_apart(catalog: Any) -> None:
    @tool
    def bank_exchange_rate(currency: str) -> str:
        """A rate of one's own."""
        return currency

    shared, saver = CallsheetTools(catalog, agents=1, tools=1), InMemorySaver()
    model, other = ScriptedModel(replies=[AIMessage("Hm.")]), ScriptedModel(replies=[AIMessage("Hm.")])
    app = create_agent(model, middleware=[shared], checkpointer=saver)
    beside = create_agent(other, tools=[bank_exchange_rate], middleware=[shared], checkpointer=saver)
    ask(app)
    ask(beside, thread="2")
    ask(app)
    assert shown(model) == [FIRST] * 2
    assert shown(other) == [["bank_exchange_rate", "need_tool", OURS]]


def test_a_question_is_answered_in_another_process(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    @tool
    def bank_exchange_rate(currency: str) -> str:
        """A rate of one's own."""
        return f"own {currency}"

    shop.approval, saver = None, InMemorySaver()
    catalog = shop.loaded(monkeypatch)
    model = ScriptedModel(replies=[calls(OURS, currency="USD"), AIMessage("0.9")])

    def started() -> Any:
        narrow = CallsheetTools(catalog, agents=1, tools=1)
        return create_agent(model, tools=[bank_exchange_rate], middleware=[narrow], checkpointer=saver)

    (question,) = ask(started())["__interrupt__"]
    state = ask(started(), Command(resume={question.id: {"type": "approve"}}))
    assert (shop.called, state["messages"][-2].text) == (["exchange_rate"], "1 USD = 0.9 EUR")


def test_a_node_of_a_graph_of_ones_own(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.approval = None
    model = ScriptedModel(replies=[calls("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
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


def need(what: Any, call_id: str = "") -> AIMessage:
    message: AIMessage = calls("need_tool", what=what)
    message.tool_calls[0]["id"] = call_id or str(what)
    return message


def state(*messages: Any, todos: Any = None) -> dict[str, Any]:
    return {"messages": list(messages), "todos": todos}


def test_a_sentence_of_the_agent_brings_the_tool_that_it_speaks_of(catalog: Any, shop: Any) -> None:
    rate = said("Now I need to write a note with the rate.", calls("bank_exchange_rate", currency="USD"))
    model = ScriptedModel(replies=[rate, calls("notebook_write_note", text="0.9"), AIMessage("Noted.")])
    ask(agent(model, catalog))
    assert shop.called == ["exchange_rate", "write_note"]
    assert shown(model) == [FIRST, *[[*FIRST, "notebook_write_note"]] * 2]


@pytest.mark.parametrize(
    "words", ["I will look up the exchange rate now.", "Good. That worked.", "", "Let me think about what is next."]
)
def test_words_that_ask_for_nothing_new_change_nothing(catalog: Any, words: str) -> None:
    model = ScriptedModel(replies=[said(words, calls("bank_exchange_rate", currency="USD")), AIMessage("0.9")])
    ask(agent(model, catalog))
    assert shown(model) == [FIRST] * 2


def test_a_loop_over_the_same_words_searches_once(catalog: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from callsheet.orchestrator.apps import tool_middleware

    asked: list[str] = []
    real = tool_middleware.selected
    monkeypatch.setattr(tool_middleware, "selected", lambda r, text, **k: asked.append(text) or real(r, text, **k))
    loop = said("Next, write a note. next write a NOTE!", calls("bank_exchange_rate", currency="USD"))
    ask(agent(ScriptedModel(replies=[loop, loop, loop, loop, AIMessage("0.9")]), catalog))
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
async def test_a_tool_that_is_asked_for_is_added_behind(catalog: Any, shop: Any, *, blocking: bool) -> None:
    model = ScriptedModel(
        replies=[need("writes a note"), calls("notebook_write_note", text="0.9"), AIMessage("Noted.")]
    )
    app = agent(model, catalog)
    state = await either(app, RATE, blocking=blocking)
    assert "notebook_write_note (agent notebook): Writes a note" in state["messages"][2].text
    assert shop.called == ["write_note"]
    before, after, last = shown(model)
    assert (before, after[:3], last) == (FIRST, [*FIRST, "notebook_write_note"], after)
    ask(app, "hello")
    assert shown(model)[-1] == after


def test_two_requests_side_by_side_both_count(catalog: Any) -> None:
    both = need("writes a note", "a")
    both.tool_calls.append({**need("tells the weather forecast of a city", "b").tool_calls[0]})
    model = ScriptedModel(replies=[both, need("deletes a note", "c"), AIMessage("Hm.")])
    ask(agent(model, catalog))
    assert {"notebook_write_note", "skywatch_city_weather"} <= set(shown(model)[-1])
    assert len(set(shown(model)[-1])) == len(shown(model)[-1])


def test_an_own_tool_of_that_name_stays_its_own(catalog: Any) -> None:
    @tool
    def need_tool(what: str) -> str:
        """A tool of one's own."""
        return f"own {what}"

    model = ScriptedModel(replies=[need("note"), AIMessage("Hm.")])
    assert ask(agent(model, catalog, tools=[need_tool]))["messages"][-2].text == "own note"
    assert shown(model) == [FIRST] * 2


def test_what_a_policy_denies_is_brought_by_nothing(catalog: Any) -> None:
    words = said("Now I need to write a note.", need("writes a note"))
    model = ScriptedModel(replies=[calls("write_todos", todos=to_do(NOTE)), words, AIMessage("I could not.")])
    withheld = load(catalog, policy=Policy(default="allow", deny=("notebook",)))
    state = ask(agent(model, withheld, TodoListMiddleware(), agents=4))
    assert not {"notebook_write_note", "notebook_delete_note"} & {name for names in shown(model) for name in names}
    assert "note" not in state["messages"][-2].text


def with_skill(catalog: Any, **more: Any) -> Any:
    return load(catalog, SourceCatalog(skills=(SKILL,)), **more)


def test_a_skill_that_fits_is_named_and_read_on_demand(catalog: Any) -> None:
    reads = [calls("read_skill", name=name) for name in ("rates", "others")]
    model = ScriptedModel(replies=[*reads, AIMessage("Done."), AIMessage("Done.")])
    app = agent(model, with_skill(catalog))
    _, _, text, _, unknown, _ = ask(app)["messages"]
    assert text.text == "Ask twice. " * 50
    assert (unknown.status, unknown.text) == ("error", "there is no skill 'others'; there are: rates")
    ask(app, NOTE)
    assert shown(model) == [*[[*FIRST, "read_skill"]] * 3, [*FIRST, "notebook_write_note", "read_skill"]]
    assert not [told for one in model.shown for told in one["messages"][:1] if "Ask twice" in told.text]
    told = skill_definition([SKILL])["function"]["description"]
    assert told.splitlines()[1] == "- rates: Look up the exchange rate of a currency."


@pytest.mark.parametrize("how", ["none", "unfit", "hidden", "own"])
def test_no_skill_is_named_without_need(catalog: Any, how: str) -> None:
    @tool
    def read_skill(name: str) -> str:
        """Read."""
        return name

    more: dict[str, Any] = {"skill_tokens": 0} if how == "none" else {}
    policy = Policy(default="allow", deny=("skills/*",)) if how == "hidden" else None
    model = ScriptedModel(replies=[AIMessage("Hm.")])
    app = agent(model, with_skill(catalog, policy=policy), tools=[read_skill] if how == "own" else (), **more)
    ask(app, NOTE if how == "unfit" else RATE)
    (names,) = shown(model)
    assert names.count("read_skill") == (1 if how == "own" else 0)


def test_of_a_long_result_the_model_sees_the_beginning_and_reads_on() -> None:
    @tool
    def exchange_rates() -> str:
        """Looks up all exchange rates."""
        return "".join(f"{number:09d}\n" for number in range(5_000))

    exchange_rates.metadata = {"callsheet/approval": "never"}
    reads = [calls("read_result", id=name, start=start) for name, start in (("c1", 40_000), ("c9", 0))]
    model = ScriptedModel(replies=[calls("bank_exchange_rates"), *reads, AIMessage("Done.")])
    state = ask(agent(model, load({"bank": [exchange_rates]})), "look up all exchange rates")["messages"]
    own = ["need_tool", "bank_exchange_rates"]
    assert shown(model) == [own, *[[*own, "read_result"]] * 3]
    seen = model.shown[1]["messages"][-1].text
    assert (len(seen) < 8_200, "50,000 characters in all" in seen, "id 'c1'" in seen) == (True, True, True)
    assert state[4].text.startswith("000004000\n")
    assert (state[6].status, state[6].text) == ("error", "there is no earlier result 'c9'; there are: c1")
    assert len(state[2].text) == 50_000


async def test_in_code_mode_tools_are_called_by_programs(catalog: Any, shop: Any) -> None:
    code = "a, b = (bank_exchange_rate(currency=c) for c in ('USD', 'GBP'))\nf'{a} and {b}'"
    model = ScriptedModel(replies=[calls("run_program", code=code), AIMessage("Both.")])
    app, given = agent(model, catalog, code_mode=True), {"messages": [HumanMessage(RATE)]}
    state = await app.ainvoke(given, CONFIG)
    assert shown(model) == [["run_program", "need_tool"]] * 2
    assert state["messages"][-2].text == "1 USD = 0.9 EUR and 1 GBP = 0.9 EUR"
    assert shop.called == ["exchange_rate"] * 2


def test_a_program_waits_for_a_person_and_repeats_nothing(shop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "a = bank_exchange_rate(currency='USD')\nb = bank_exchange_rate(currency='GBP')\nf'{a} and {b}'"
    model = ScriptedModel(replies=[calls("run_program", code=code), AIMessage("Both.")])
    app = agent(model, shop.loaded(monkeypatch), code_mode=True, approval="always")
    state = app.invoke({"messages": [HumanMessage(RATE)]}, CONFIG)
    for called in (1, 2):
        (question,) = state["__interrupt__"]
        state = app.invoke(Command(resume={question.id: {"type": "approve"}}), CONFIG)
        assert shop.called == ["exchange_rate"] * called
    assert state["messages"][-2].text == "1 USD = 0.9 EUR and 1 GBP = 0.9 EUR"
    assert state["messages"][-1].text == "Both."
