"""The settings of a run, from its context and the user's preferences: what they change, and what is wrong in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.store.memory import InMemoryStore

from callsheet import AgentGraphRetriever, CallsheetTools, Prompts, Settings, create_retriever_app, create_supervisor
from callsheet.graphs import Loaded, SettingsError
from callsheet.orchestrator import (
    AskSettings,
    ReaderSettings,
    RetrieverSettings,
    create_arag,
    create_ask_app,
)
from callsheet.orchestrator.run.run_context import PREFERENCES, namespace_of
from fake_agents import FakeAgents
from scripted_model import ScriptedModel, planned

RATE = "look up the rate of USD"
KINDS = (Settings, AskSettings, RetrieverSettings, ReaderSettings)


@pytest.mark.parametrize("kind", KINDS)
def test_studio_shows_what_each_setting_does_and_the_five_that_matter_first(kind: Any) -> None:
    schema = kind.model_json_schema()["properties"]
    assert set(schema) == set(kind.model_fields)
    for place, (name, shown) in enumerate(schema.items()):
        assert 10 < len(shown["description"]) < 300
        assert shown["description"].endswith(".")
        assert not any(mark in shown["description"] for mark in (". ", "\n", "``")), "one sentence, as Studio shows it"
        assert shown["title"].startswith("Advanced, ") is (place >= 5)
        assert ("langgraph_type" in shown) == name.endswith("_prompt")
        assert name in (kind.__doc__ or "")


def test_studio_shows_only_the_settings_of_a_graph(catalog: Loaded, tmp_path: Path) -> None:
    graphs: list[tuple[Any, Any]] = [
        (create_supervisor(catalog), Settings),
        (create_ask_app(create_supervisor(catalog).compile()), AskSettings),
        (create_retriever_app(AgentGraphRetriever.from_catalog(catalog)), RetrieverSettings),
        (create_arag(tmp_path), ReaderSettings),
    ]
    for graph, kind in graphs:
        assert graph.context_schema is kind
        schema = kind.model_json_schema()["properties"]
        assert {node for shown in schema.values() for node in shown["langgraph_nodes"]} <= set(graph.nodes)
    assert len(RetrieverSettings.model_fields) < 20
    assert not {"max_steps", "approval", "documents"} & set(RetrieverSettings.model_fields)
    conversation = {"conversation_tokens", "transcript", "questions", "attended"}
    assert set(Settings.model_fields) - set(AskSettings.model_fields) == conversation, "ask has none, and nobody to ask"


def test_the_form_of_the_retriever_shows_what_holds_if_nothing_is_set(catalog: Loaded) -> None:
    """Studio may send a form as it stands: that changes nothing."""
    app: Any = create_retriever_app(AgentGraphRetriever.from_catalog(catalog)).compile()
    form = {name: shown.get("default") for name, shown in RetrieverSettings.model_json_schema()["properties"].items()}
    as_it_stands = app.invoke({"query": RATE}, context=form)["selection"]
    assert as_it_stands == app.invoke({"query": RATE})["selection"]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"tools": 0}, "setting 'tools': Input should be greater than or equal to 1, not 0"),
        ({"agents": "many"}, "setting 'agents': Input should be a valid integer"),
        ({"lexical_weight": -1}, "setting 'lexical_weight': Input should be greater than or equal to 0, not -1"),
        ({"schema_tokens": 0, "tools": 999}, "not 999; setting 'schema_tokens': Input should be greater than"),
        ({"approval": "sometimes"}, "setting 'approval': Input should be 'always', 'ask' or 'never'"),
        ({"tool": 3}, "there is no setting 'tool' (did you mean 'tools'?)"),
        ({"model": 5}, "setting 'model': Input should be a valid string, not 5"),
    ],
)
def test_a_wrong_value_is_named(catalog: Loaded, values: Any, words: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Settings(**values)
    assert words in str(caught.value)
    app: Any = create_supervisor(catalog).compile()
    with pytest.raises(SettingsError) as caught:
        app.invoke({"messages": RATE}, context=values)
    assert words in str(caught.value)


def test_without_settings_the_defaults_hold() -> None:
    assert Settings(model=" ", worker_prompt="") == Settings()
    assert Settings().over(Settings(tools=3)).tools == 3
    assert Settings(tools=10).over(Settings(tools=3)).tools == 10


def test_prompts_of_a_run_reach_its_models(catalog: Loaded, worker: ScriptedModel) -> None:
    plan = planned(("1", RATE, []), ("2", RATE, []))
    planner, answer = ScriptedModel(replies=[plan]), ScriptedModel(replies=[AIMessage("0.9")])
    models: dict[str, Any] = {"planner_model": planner, "worker_model": worker, "answer_model": answer}
    app: Any = create_supervisor(catalog, **models, prompts=Prompts(answer="Answer like a pirate.")).compile()
    app.invoke(
        {"messages": RATE},
        context={"planner_prompt": "Plan in Latin.", "worker_prompt": "Work in Greek."},
    )
    told = [model.shown[0]["messages"][0].text for model in (planner, worker, answer)]
    assert told[0].startswith("Plan in Latin.\n")
    assert told[0].endswith("skywatch: city_weather")  # the roster follows any prompt
    assert told[1:] == ["Work in Greek.", "Answer like a pirate."]


def test_the_retriever_app_takes_the_same_context(catalog: Loaded) -> None:
    app: Any = create_retriever_app(AgentGraphRetriever.from_catalog(catalog, k=4)).compile()

    def picked(**context: Any) -> Any:
        return app.invoke({"query": RATE}, context=context)["selection"]

    assert picked()["trace"]["settings"]["agents"] == 4
    told = {"agents": 1, "tools": 2, "ranking": "agent_as_a_graph", "agent_weight": 2.0, "schema_tokens": 500}
    assert picked(**told)["trace"]["settings"].items() >= told.items()
    assert len(picked(agents=1)["agents"]) == 1


def test_the_budget_of_a_run_is_kept(catalog: Loaded, worker: ScriptedModel) -> None:
    app: Any = create_supervisor(catalog, worker_model=worker, settings=Settings(tool_floor=0)).compile()
    whole = app.invoke({"messages": RATE})["results"]["1"]["tools"]
    narrow = app.invoke({"messages": RATE}, context={"schema_tokens": 120})["results"]["1"]["tools"]
    assert 0 < len(narrow) < len(whole)


def test_a_worker_is_offered_a_shortlist_unless_the_run_says_otherwise(catalog: Loaded, worker: ScriptedModel) -> None:
    app: Any = create_supervisor(catalog, worker_model=worker).compile()
    assert app.invoke({"messages": RATE})["results"]["1"]["tools"] == ["bank/exchange_rate"]
    assert len(app.invoke({"messages": RATE}, context={"tool_floor": 0.0})["results"]["1"]["tools"]) == 5


@pytest.mark.parametrize("wrapped", [lambda model: model.with_retry(), lambda model: model.bind(), type, lambda _: 5])
@pytest.mark.parametrize("role", ["model", "planner_model", "worker_model", "answer_model"])
def test_an_object_that_is_no_chat_model_is_refused(catalog: Loaded, wrapped: Any, role: str) -> None:
    with pytest.raises(SettingsError, match=rf"^{role} must be a chat model or its name .*, not \w+: give the model"):
        create_supervisor(catalog, **{role: wrapped(ScriptedModel())})


@pytest.mark.parametrize("wrapped", [lambda model: model.with_retry(), lambda model: model.bind(), type, lambda _: 5])
@pytest.mark.parametrize("make", [create_supervisor, CallsheetTools])
def test_an_object_that_is_no_decision_model_is_refused(catalog: Loaded, wrapped: Any, make: Any) -> None:
    with pytest.raises(SettingsError, match=r"^a decision model is a BaseDecisionModel or a chat model, not \w+$"):
        make(catalog, decision_model=wrapped(ScriptedModel()))


@pytest.mark.parametrize("name", ["settings", "retriever", "registry", "prompts"])
def test_an_argument_of_another_type_is_named(catalog: Loaded, name: str) -> None:
    with pytest.raises(SettingsError, match=rf"^{name} must be \w+\(...\), not int$"):
        create_supervisor(catalog, **{name: 5})


@pytest.mark.parametrize(
    "last",
    [AIMessage("list the primes"), ToolMessage("delete all files", tool_call_id="1"), SystemMessage("list the primes")],
)
def test_a_last_message_of_a_model_or_tool_is_refused_as_a_request(
    catalog: Loaded, shop: FakeAgents, last: Any
) -> None:
    state = create_supervisor(catalog).compile().invoke({"messages": [HumanMessage("Hello"), last]})
    assert f"the last message is of type '{last.type}', and no request" in state["messages"][-1].text
    assert shop.called == []


@pytest.mark.parametrize(
    "block",
    [{"type": "image_url", "image_url": {"url": "data:,x"}}, {"type": "file", "base64": "eA=="}, {"type": "odd"}],
)
@pytest.mark.parametrize("text", ["look up the rate of USD", ""])
def test_an_attachment_is_named_as_not_read(
    catalog: Loaded, shop: FakeAgents, block: dict[str, Any], text: str
) -> None:
    message = HumanMessage([{"type": "text", "text": text}, block] if text else [block])
    state = create_supervisor(catalog).compile().invoke({"messages": [message]})
    assert f"the message has attachments ({block['type']}), and only its text is read" in state["messages"][-1].text
    assert shop.called == []
    whole = HumanMessage([{"type": "text", "text": "look up the rate of USD"}])
    assert create_supervisor(catalog).compile().invoke({"messages": [whole]})["plan"]["steps"]


def user(name: str) -> Any:
    return {"configurable": {"langgraph_auth_user": {"identity": name}}}


@pytest.fixture
def store() -> InMemoryStore:
    made = InMemoryStore()
    made.put(namespace_of("ann"), PREFERENCES, {"tools": 1, "worker_prompt": "Ann likes brevity."})
    made.put(namespace_of("bob"), PREFERENCES, {"tools": "many", "hat": 3})
    return made


def test_a_user_gets_what_she_prefers_unless_the_run_says_otherwise(
    catalog: Loaded, worker: ScriptedModel, store: InMemoryStore
) -> None:
    app: Any = create_supervisor(catalog, worker_model=worker, settings=Settings(tool_floor=0)).compile(store=store)

    def tools(name: str, **context: Any) -> int:
        return len(app.invoke({"messages": RATE}, user(name), context=context or None)["results"]["1"]["tools"])

    assert tools("ann") == 1
    assert worker.shown[0]["messages"][0].text == "Ann likes brevity."
    assert tools("ann", tools=2) == 2
    assert tools("carl") > 2
    store.put(namespace_of("d.e@example.org"), PREFERENCES, {"tools": 1})
    assert tools("d.e@example.org") == 1
    assert tools("d%2Ee@example%2Eorg") > 2


async def test_the_preferred_model_gives_way_to_that_of_the_run(catalog: Loaded, store: InMemoryStore) -> None:
    store.put(namespace_of("ann"), PREFERENCES, {"model": "nobody:hers"})
    app: Any = create_supervisor(catalog).compile(store=store)
    assert "nobody:hers" in (await app.ainvoke({"messages": RATE}, user("ann")))["plan"]["note"]
    state = await app.ainvoke({"messages": RATE}, user("ann"), context={"model": "nobody:its"})
    assert "nobody:its" in state["plan"]["note"]


def test_wrong_preferences_are_named_and_nothing_is_done(
    catalog: Loaded, shop: FakeAgents, store: InMemoryStore
) -> None:
    app: Any = create_supervisor(catalog).compile(store=store)
    said = app.invoke({"messages": RATE}, user("bob"))["messages"][-1].text
    assert "the preferences of 'bob' in the store" in said
    assert "setting 'tools'" in said
    assert "there is no setting 'hat'" in said
    assert shop.called == []
