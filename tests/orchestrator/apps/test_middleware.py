"""Callsheet's tools in an agent of somebody's own, also for what it asks for on its way."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import TodoListMiddleware
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from callsheet.agents.calls.review import decision_on, flat
from callsheet.agents.registry.binding import names_of_bound
from callsheet.agents.work.equipment import skill_definition
from callsheet.graphs import Agent, Catalog, Loaded, Policy, SettingsError, Skill, SourceCatalog, Tool, load
from callsheet.orchestrator import CallsheetTools
from callsheet.orchestrator.apps.tool_middleware import last_request
from callsheet.retrievers.roster import roster
from fake_agents import FakeAgents
from scripted_decisions import Stub, of
from scripted_model import ScriptedModel, calls

RATE, NOTE = "look up the exchange rate of USD", "write a note with the text hello"
OWN = ["run_program", "need_tool", "read_result"]
"""What an agent has from the start, whatever the user wants."""
FIRST = [*OWN, "bank_exchange_rate"]
SKILL = Skill(name="rates", description="Look up the exchange rate of a currency.", text="Ask\u200b twice. " * 50)
CONFIG: Any = {"configurable": {"thread_id": "1"}}
OURS = names_of_bound("bank", "exchange_rate")[-1]
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
async def test_a_turn_is_equipped_with_what_its_request_needs(
    catalog: Loaded, shop: FakeAgents, *, blocking: bool
) -> None:
    model = ScriptedModel(replies=[calls("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
    state = await either(agent(model, catalog), RATE, blocking=blocking)
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "0.9")
    assert shown(model) == [FIRST] * 2


def test_a_later_turn_adds_behind_and_takes_nothing_away(catalog: Loaded) -> None:
    model = ScriptedModel(replies=[AIMessage("Hm.")])
    app = agent(model, catalog)
    ask(app, RATE)
    ask(app, NOTE)
    ask(app, RATE)
    assert shown(model) == [FIRST, *[[*FIRST, "notebook_write_note"]] * 2]


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_person_is_asked_about_risky_tools(
    shop: FakeAgents, monkeypatch: pytest.MonkeyPatch, *, blocking: bool
) -> None:
    shop.approval = None
    model = ScriptedModel(replies=[calls("bank_exchange_rate", currency="USD"), AIMessage("0.9")])
    app = agent(model, shop.loaded(monkeypatch))
    state = await either(app, RATE, blocking=blocking)
    (question,) = state["__interrupt__"]
    assert flat(question.value)["description"].startswith("The agent wants to call bank/exchange_rate")
    assert shop.called == []
    answer: Any = Command(resume={question.id: decision_on("edit", question.value, args={"currency": "NOK"})})
    state = await either(app, answer, blocking=blocking)
    answer = Command(resume={found.id: {"type": "approve"} for found in state["__interrupt__"]})
    state = await either(app, answer, blocking=blocking)
    assert (shop.called, state["messages"][-1].text) == (["exchange_rate"], "0.9")
    assert "1 NOK" in state["messages"][-2].text


def test_an_agent_without_a_checkpointer_says_so_at_once(shop: FakeAgents, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.approval = None
    model = ScriptedModel(replies=[AIMessage("Hm.")])
    app: Any = create_agent(model, middleware=[CallsheetTools(shop.loaded(monkeypatch))])
    with pytest.raises(SettingsError, match="needs a checkpointer"):
        app.invoke({"messages": [HumanMessage(RATE)]})
    assert model.shown == []


def test_a_decision_model_judges_what_the_user_says_and_nothing_else(catalog: Loaded) -> None:
    judge = Stub(shares=of(write_note=0.9))
    asks = need(what=NOTE).tool_calls
    model = ScriptedModel(replies=[AIMessage("I look up the rate of USD.", tool_calls=asks), AIMessage("Hm.")])
    ask(agent(model, catalog, decision_model=judge), RATE)
    assert shown(model) == [[*OWN, "notebook_write_note"]] * 2
    assert [asked["request"] for asked, _ in judge.asked] == [RATE]
    hopeless = ScriptedModel(replies=[AIMessage("Hm.")])
    ask(agent(hopeless, catalog, decision_model=Stub(shares={"none": 1.0})), RATE)
    assert shown(hopeless) == [OWN]


def test_the_number_of_tools_stays_below_its_limit(catalog: Loaded) -> None:
    model = ScriptedModel(replies=[need("write_note"), AIMessage("Hm.")])
    app = agent(model, catalog, most=1)
    said = ask(app, RATE)["messages"][-2]
    assert (said.status, "at most 1 tools" in said.text) == ("error", True)
    ask(app, NOTE)
    assert shown(model)[-1] == FIRST


def test_need_tool_adds_only_as_many_tools_as_the_limit_leaves(catalog: Loaded) -> None:
    model = ScriptedModel(replies=[need("write_note", "delete_note"), AIMessage("Hm.")])
    told = ask(agent(model, catalog, most=2), RATE)["messages"][-2]
    assert shown(model)[-1] == [*FIRST, "notebook_write_note"]
    assert "Not added, because a call adds at most 1: notebook/delete_note" in told.text


def test_own_tools_stay_first_and_keep_their_names(catalog: Loaded, shop: FakeAgents) -> None:
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
    assert shown(model)[0] == ["bank_exchange_rate", *OWN, OURS]
    assert shop.called == ["exchange_rate"]


def test_a_request_that_nothing_fits_brings_no_tool(catalog: Loaded) -> None:
    model = ScriptedModel(replies=[AIMessage("Hello.")])
    ask(agent(model, catalog), "bake a chocolate cake in an oven")
    assert shown(model)[-1] == OWN


def test_messages_without_ids_are_requests_too(catalog: Loaded) -> None:
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


def test_one_object_in_two_agents_keeps_their_names_apart(catalog: Loaded) -> None:
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
    assert shown(other) == [["bank_exchange_rate", *OWN, OURS]]


def test_a_question_is_answered_in_another_process(shop: FakeAgents, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_the_middleware_works_in_a_node_of_another_graph(shop: FakeAgents, monkeypatch: pytest.MonkeyPatch) -> None:
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
    "wrong",
    [{"approval": "Always"}, {"approval": None}, {"tools": -1}, {"agents": 0}, {"most": 1}, {"roster_tokens": -1}],
)
def test_an_invalid_option_is_refused_at_once(catalog: Loaded, wrong: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        CallsheetTools(catalog, **wrong)


def said(text: str, call: AIMessage) -> AIMessage:
    return call.model_copy(update={"content": text})


def need(*tools: str, call_id: str = "", **more: Any) -> AIMessage:
    message: AIMessage = calls("need_tool", **({"tools": list(tools)} if tools else {}), **more)
    message.tool_calls[0]["id"] = call_id or "need"
    return message


def state(*messages: Any, todos: Any = None) -> dict[str, Any]:
    return {"messages": list(messages), "todos": todos}


def to_do(*items: Any) -> list[Any]:
    return [{"content": item, "status": "pending"} for item in items]


@pytest.mark.parametrize(
    "words", ["Now I need to write a note with the rate.", "Good. That worked.", "", "Let me write a note."]
)
def test_words_of_the_agent_bring_no_tool_because_it_can_name_one(catalog: Loaded, words: str) -> None:
    model = ScriptedModel(replies=[said(words, calls("bank_exchange_rate", currency="USD")), AIMessage("0.9")])
    ask(agent(model, catalog, TodoListMiddleware()), {"messages": [HumanMessage(RATE)], "todos": to_do(NOTE)})
    assert shown(model) == [["write_todos", *FIRST]] * 2


def test_a_loop_searches_once_for_each_message_of_the_user(catalog: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    from callsheet.orchestrator.apps import tool_middleware

    asked: list[str] = []
    real = tool_middleware.select_traced
    monkeypatch.setattr(tool_middleware, "select_traced", lambda r, text, **k: asked.append(text) or real(r, text, **k))
    loop = said("Next, write a note.", calls("bank_exchange_rate", currency="USD"))
    app = agent(ScriptedModel(replies=[loop, loop, loop, loop, AIMessage("0.9")]), catalog)
    ask(app)
    ask(app, NOTE)
    assert asked == [RATE, NOTE]


PICTURE = {"type": "image", "base64": "aGk=", "mime_type": "image/png"}


@pytest.mark.parametrize(
    ("messages", "request_text"),
    [
        ([], ""),
        ([HumanMessage([PICTURE]), AIMessage("")], ""),
        ([HumanMessage("a summary", additional_kwargs={"lc_source": "summarization"})], ""),
        ([ToolMessage(NOTE, tool_call_id="1")], ""),
        ([HumanMessage([PICTURE, {"type": "text", "text": RATE}])], RATE),
        ([HumanMessage(RATE), AIMessage("Next, write a note."), HumanMessage(NOTE), AIMessage("Hm.")], NOTE),
        ([HumanMessage(RATE), HumanMessage("a summary", additional_kwargs={"lc_source": "x"})], RATE),
    ],
)
def test_the_request_is_the_last_message_of_the_user(messages: Any, request_text: str) -> None:
    assert last_request(messages) == request_text


def test_a_document_in_a_message_is_searched_without_its_middle(catalog: Loaded) -> None:
    long, nothing = f"{RATE}\n{'lorem ipsum ' * 20_000}", None
    given: Any = {"messages": [HumanMessage(long)]}
    found: Any = CallsheetTools(catalog, tools=1).before_model(given, nothing)  # type: ignore[arg-type]
    assert found["callsheet_tools"] == ["bank/exchange_rate"]


def systems(model: Any) -> list[Any]:
    return [next((one for one in shown["messages"] if isinstance(one, SystemMessage)), None) for shown in model.shown]


def test_the_roster_stands_at_the_end_of_the_system_message_and_stays_the_same(catalog: Loaded) -> None:
    model = ScriptedModel(replies=[need("write_note"), AIMessage("Hm.")])
    equipped = CallsheetTools(catalog, agents=1, tools=1)
    app: Any = create_agent(
        model, system_prompt="You are a clerk.", middleware=[equipped], checkpointer=InMemorySaver()
    )
    ask(app, RATE)
    ask(app, NOTE)
    texts = [system.content for system in systems(model)]
    assert len(texts) == 3
    assert len(set(texts)) == 1
    assert texts[0].startswith("You are a clerk.\n\nAll agents that there are")
    assert texts[0].endswith(roster(load(catalog).catalog).text)
    assert "notebook: delete_note, write_note" in texts[0].splitlines()


def test_a_system_message_of_blocks_gets_a_block(catalog: Loaded) -> None:
    own = SystemMessage([{"type": "text", "text": "You are a clerk.", "cache_control": {"type": "ephemeral"}}])
    model = ScriptedModel(replies=[AIMessage("Hm.")])
    app: Any = create_agent(
        model, system_prompt=own, middleware=[CallsheetTools(catalog)], checkpointer=InMemorySaver()
    )
    ask(app)
    (system,) = systems(model)
    assert system.content[0] == own.content[0]
    assert system.content[1]["text"].endswith(roster(load(catalog).catalog).text)


def test_an_agent_without_a_system_prompt_has_the_roster_alone(catalog: Loaded) -> None:
    model = ScriptedModel(replies=[AIMessage("Hm.")])
    ask(agent(model, catalog))
    assert systems(model)[0].content.startswith("All agents that there are")
    off = ScriptedModel(replies=[AIMessage("Hm.")])
    ask(agent(off, catalog, roster_tokens=0))
    assert systems(off) == [None]


def test_the_roster_of_a_large_catalog_has_agents_without_tools() -> None:
    names = [f"getThing{at}" for at in range(40)]
    giant = Agent(id="giant", description="Keeps things.", tools=tuple(Tool(agent="giant", name=one) for one in names))
    model = ScriptedModel(replies=[need("giant"), need("getThing7"), AIMessage("Hm.")])
    state = ask(agent(model, Catalog(agents=(giant,)), roster_tokens=40), "hello")
    text = systems(model)[0].content
    assert text.endswith("giant (40 tools): Keeps things.")
    assert "for the id of an agent" in text
    assert "- getThing7" in state["messages"][2].text.splitlines()
    assert shown(model)[-1][-1] == "giant_getThing7"


def test_a_user_sees_only_what_the_policy_allows_in_the_roster(catalog: Loaded) -> None:
    model = ScriptedModel(replies=[AIMessage("Hm.")])
    ask(agent(model, catalog, policy=Policy(default="allow", deny=("notebook",))))
    assert "notebook" not in systems(model)[0].content
    assert "bank: exchange_rate" in systems(model)[0].content.splitlines()


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_tool_that_is_asked_for_is_added_behind(catalog: Loaded, shop: FakeAgents, *, blocking: bool) -> None:
    model = ScriptedModel(
        replies=[need("notebook/write_note"), calls("notebook_write_note", text="0.9"), AIMessage("Noted.")]
    )
    app = agent(model, catalog)
    state = await either(app, RATE, blocking=blocking)
    assert "notebook_write_note (agent notebook): Writes a note" in state["messages"][2].text
    assert shop.called == ["write_note"]
    before, after, last = shown(model)
    assert (before, after, last) == (FIRST, [*FIRST, "notebook_write_note"], after)
    ask(app, "hello")
    assert shown(model)[-1] == after


def test_need_tool_answers_words_with_names_and_adds_nothing(catalog: Loaded) -> None:
    model = ScriptedModel(replies=[need(what="keeps a reminder as a text"), AIMessage("Hm.")])
    told = ask(agent(model, catalog))["messages"][-2]
    assert "notebook: delete_note, write_note" in told.text.splitlines()
    assert shown(model) == [FIRST] * 2


def test_two_requests_side_by_side_both_count(catalog: Loaded) -> None:
    both = need("write_note", call_id="a")
    both.tool_calls.append({**need("skywatch/city_weather", call_id="b").tool_calls[0]})
    model = ScriptedModel(replies=[both, need("delete_note", call_id="c"), AIMessage("Hm.")])
    ask(agent(model, catalog))
    assert {"notebook_write_note", "skywatch_city_weather", "notebook_delete_note"} <= set(shown(model)[-1])
    assert len(set(shown(model)[-1])) == len(shown(model)[-1])


def test_a_tool_of_the_agent_named_need_tool_is_not_replaced(catalog: Loaded) -> None:
    @tool
    def need_tool(what: str) -> str:
        """A tool of one's own."""
        return f"own {what}"

    model = ScriptedModel(replies=[need(what="note"), AIMessage("Hm.")])
    assert ask(agent(model, catalog, tools=[need_tool]))["messages"][-2].text == "own note"
    assert shown(model) == [["need_tool", "run_program", "read_result", "bank_exchange_rate"]] * 2


def test_a_denied_tool_is_added_neither_by_search_nor_by_name(catalog: Loaded) -> None:
    words = said("Now I need to write a note.", need("notebook/write_note", what="a tool for notes"))
    model = ScriptedModel(replies=[calls("write_todos", todos=to_do(NOTE)), words, AIMessage("I could not.")])
    withheld = load(catalog, policy=Policy(default="allow", deny=("notebook",)))
    state = ask(agent(model, withheld, TodoListMiddleware(), agents=4))
    assert not {"notebook_write_note", "notebook_delete_note"} & {name for names in shown(model) for name in names}
    assert "There is no tool 'notebook/write_note'" in state["messages"][-2].text
    assert "notebook:" not in state["messages"][-2].text


def with_skill(catalog: Any, **more: Any) -> Any:
    return load(catalog, SourceCatalog(skills=(SKILL,)), **more)


def test_a_skill_that_fits_is_named_and_read_on_demand(catalog: Loaded) -> None:
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


def test_a_skill_is_in_the_roster_and_read_by_name_unless_skills_are_off(catalog: Loaded) -> None:
    for tokens, line, said in ((5_000, "skills/rates (skill): Look up", "Ask twice."), (0, "", "cannot be read here")):
        model = ScriptedModel(replies=[need("skills/rates"), AIMessage("Hm.")])
        told = ask(agent(model, with_skill(catalog), skill_tokens=tokens), "hello")["messages"][-2].text
        assert line in systems(model)[0].content
        assert ("skills/" in systems(model)[0].content) is bool(line)
        assert said in told


@pytest.mark.parametrize("how", ["none", "unfit", "hidden", "own"])
def test_no_skill_is_named_without_need(catalog: Loaded, how: str) -> None:
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


def test_a_model_sees_the_beginning_of_a_long_result_and_reads_on() -> None:
    @tool
    def exchange_rates() -> str:
        """Looks up all exchange rates."""
        return "".join(f"{number:09d}\n" for number in range(5_000))

    exchange_rates.metadata = {"callsheet/approval": "never"}
    reads = [calls("read_result", id=name, start=start) for name, start in (("c1", 40_000), ("c9", 0))]
    model = ScriptedModel(replies=[calls("bank_exchange_rates"), *reads, AIMessage("Done.")])
    state = ask(agent(model, load({"bank": [exchange_rates]})), "look up all exchange rates")["messages"]
    assert shown(model) == [[*OWN, "bank_exchange_rates"]] * 4
    seen = model.shown[1]["messages"][-1].text
    assert (len(seen) < 8_200, "50,000 characters in all" in seen, "id 'c1'" in seen) == (True, True, True)
    assert state[4].text.startswith("000004000\n")
    assert (state[6].status, state[6].text) == ("error", "there is no earlier result 'c9'; there are: c1")
    assert len(state[2].text) == 50_000


async def test_tools_are_called_by_programs_too(catalog: Loaded, shop: FakeAgents) -> None:
    code = "a, b = (bank_exchange_rate(currency=c) for c in ('USD', 'GBP'))\nf'{a} and {b}'"
    model = ScriptedModel(replies=[calls("run_program", code=code), AIMessage("Both.")])
    app, given = agent(model, catalog), {"messages": [HumanMessage(RATE)]}
    state = await app.ainvoke(given, CONFIG)
    assert shown(model) == [FIRST] * 2
    assert state["messages"][-2].text == "1 USD = 0.9 EUR and 1 GBP = 0.9 EUR"
    assert shop.called == ["exchange_rate"] * 2


def test_a_program_waits_for_a_person_and_repeats_nothing(shop: FakeAgents, monkeypatch: pytest.MonkeyPatch) -> None:
    code = "a = bank_exchange_rate(currency='USD')\nb = bank_exchange_rate(currency='GBP')\nf'{a} and {b}'"
    model = ScriptedModel(replies=[calls("run_program", code=code), AIMessage("Both.")])
    app = agent(model, shop.loaded(monkeypatch), approval="always")
    (question,) = app.invoke({"messages": [HumanMessage(RATE)]}, CONFIG)["__interrupt__"]
    assert [call["args"]["currency"] for call in flat(question.value)["args"]["calls"]] == ["USD", "GBP"]
    assert shop.called == []
    state = app.invoke(Command(resume={question.id: {"type": "approve"}}), CONFIG)
    assert shop.called == ["exchange_rate"] * 2
    assert state["messages"][-2].text == "1 USD = 0.9 EUR and 1 GBP = 0.9 EUR"
    assert state["messages"][-1].text == "Both."
