"""The supervisor with a question in, and an answer and its steps out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import interrupt

from callsheet import Settings, create_supervisor
from callsheet.graphs import SettingsError
from callsheet.orchestrator.apps.ask_graph import create_ask_app
from callsheet.orchestrator.run.run_context import PREFERENCES, namespace_of

RATE, NOTE = "look up the rate of USD", "write a note"


def asked(catalog: Any, question: str, *config: Any, store: Any = None, context: Any = None, **models: Any) -> Any:
    supervisor = create_supervisor(catalog, **models).compile(name="supervisor")
    app = create_ask_app(supervisor).compile(name="ask", store=store)
    return app.invoke({"question": question}, *config, context=context)


def test_small_schemas(catalog: Any) -> None:
    app = create_ask_app(create_supervisor(catalog).compile()).compile()
    given, back = app.get_input_jsonschema(), app.get_output_jsonschema()
    assert given["required"] == ["question"]
    assert given["properties"]["question"]["description"].startswith("A question")
    assert set(back["properties"]) == {"answer", "steps"}
    assert {"supervisor:plan", "supervisor:worker:agent:model"} <= set(app.get_graph(xray=True).nodes)


def test_answers_with_what_was_done(catalog: Any, worker: Any) -> None:
    said = asked(catalog, RATE, worker_model=worker)
    done = {"id": "1", "text": RATE, "status": "done", "tools": ["bank/exchange_rate"], "result": "1 USD = 0.9 EUR"}
    assert said == {"answer": "1 USD = 0.9 EUR", "steps": [done]}


def test_an_input_without_a_question_is_named(catalog: Any) -> None:
    app: Any = create_ask_app(create_supervisor(catalog).compile()).compile()
    with pytest.raises(SettingsError, match="needs a text 'question'"):
        app.invoke({"query": RATE, "question": None})


async def test_the_same_asynchronously_and_many_at_once(catalog: Any, worker: Any) -> None:
    app: Any = create_ask_app(create_supervisor(catalog, worker_model=worker).compile()).compile()
    said = await asyncio.gather(*(app.ainvoke({"question": RATE}) for _ in range(5)))
    assert {answer["steps"][0]["status"] for answer in said} == {"done"}


def test_a_call_that_needs_approval_is_not_made_and_the_others_are(
    shop: Any, monkeypatch: Any, scripted: Any, say: Any, worker: Any
) -> None:
    shop.approval = None
    loaded = shop.loaded(monkeypatch)
    planner = scripted(replies=[say["planned"](("1", RATE, []), ("2", NOTE, []))])
    said = asked(loaded, f"{RATE} and {NOTE}", planner_model=planner, worker_model=worker)
    assert shop.called == []
    assert {step["status"] for step in said["steps"]} == {"failed"}
    assert all("nobody can be asked here" in step["error"] for step in said["steps"])
    said = asked(
        loaded,
        RATE,
        context={"approval": "never"},
        planner_model=scripted(replies=[AIMessage("")]),
        worker_model=worker,
    )
    assert shop.called == ["exchange_rate"]


def test_an_agent_that_asks_for_something_else_leaves_its_step_open() -> None:
    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(interrupt("which form?"))]}

    app = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask").compile(name="clerk")
    sure = app.with_config(metadata={"callsheet/approval": "never"})
    said = asked({"clerk": sure}, "Ask the clerk to file a form", settings=Settings(allow=("clerk/run",)))
    assert said["steps"][0]["status"] == "not_finished"
    assert "which form?" in said["answer"]


def test_it_is_the_users_own_run(catalog: Any, worker: Any) -> None:
    store = InMemoryStore()
    store.put(namespace_of("ann"), PREFERENCES, {"worker_prompt": "Ann likes brevity."})
    asked(
        catalog, RATE, {"configurable": {"langgraph_auth_user": {"identity": "ann"}}}, store=store, worker_model=worker
    )
    assert worker.shown[0]["messages"][0].text == "Ann likes brevity."
