"""The supervisor over a small catalog, with models that follow a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph

from callsheet import Settings, create_supervisor
from callsheet.graphs import Loaded
from callsheet.orchestrator.supervisor import create_retriever_app
from callsheet.retrievers import AgentGraphRetriever
from deciding_model import own_steps
from fake_agents import FakeAgents
from scripted_decisions import Stub, of
from scripted_model import ScriptedModel, calls, planned

WEATHER, RATE, NOTE = "tell the weather of Oslo", "look up the rate of USD", "write a note with both"
REQUEST = f"Please {WEATHER}, {RATE}, and {NOTE}"
STEPS = (("1", WEATHER, []), ("2", RATE, []), ("3", NOTE, ["1", "2"]))


def ask(app: Any, text: str = REQUEST, **more: Any) -> Any:
    return app.invoke({"messages": [HumanMessage(text)]}, **more)


def test_gives_an_uncompiled_workflow_that_the_caller_compiles(catalog: Loaded) -> None:
    workflow = create_supervisor(catalog)
    assert isinstance(workflow, StateGraph)
    nodes = set(workflow.compile().get_graph(xray=True).nodes)
    assert {"plan", "dispatch", "retriever", "worker:agent:model", "worker:agent:tools", "answer"} <= nodes


def test_plans_dispatches_in_waves_and_answers(catalog: Loaded, shop: FakeAgents, worker: ScriptedModel) -> None:
    planner, answer = ScriptedModel(replies=[planned(*STEPS)]), ScriptedModel(replies=[AIMessage("All done.")])
    app = create_supervisor(catalog, planner_model=planner, worker_model=worker, answer_model=answer).compile()
    state = ask(app)
    assert sorted(shop.called[:2]) == ["exchange_rate", "weather_report"]
    assert shop.called[2:] == ["write_note"]
    assert {i: r["status"] for i, r in state["results"].items()} == {"1": "done", "2": "done", "3": "done"}
    assert state["messages"][-1].text == "All done."
    told = answer.shown[0]["messages"][-1].text
    assert "sunny in Oslo" in told
    assert "0.9 EUR" in told
    assert set(state) == {"messages", "plan", "selections", "results", "revisions", "usage"}


def test_a_step_is_skipped_when_nothing_that_it_waits_for_was_done(
    catalog: Loaded, shop: FakeAgents, worker: ScriptedModel
) -> None:
    shop.broken = {"exchange_rate"}
    planner = ScriptedModel(replies=[planned(("1", RATE, []), ("2", NOTE, ["1"]), ("3", "write a note", ["2"]))])
    app = create_supervisor(catalog, planner_model=planner, worker_model=worker, settings=Settings())
    state = ask(app.compile(), f"{RATE} and {NOTE}")
    assert [state["results"][i]["status"] for i in "123"] == ["failed", "skipped", "skipped"]
    assert "write_note" not in shop.called


def test_one_worker_does_the_steps_of_a_plan_and_each_step_gets_its_calls(catalog: Loaded, shop: FakeAgents) -> None:
    drafts = [
        {"id": "1", "text": "weather of a city", "tools": ["meteo/weather_report"]},
        {"id": "2", "text": "exchange rate of a currency", "tools": ["bank/exchange_rate"]},
        {"id": "3", "text": "write a note", "tools": ["notebook/write_note"], "depends_on": ["1", "2"]},
    ]
    worker = ScriptedModel(
        replies=[
            AIMessage(
                "",
                tool_calls=[
                    {"name": "meteo_weather_report", "args": {"city": "Oslo"}, "id": "a"},
                    {"name": "bank_exchange_rate", "args": {"currency": "USD"}, "id": "b"},
                ],
            ),
            calls("notebook_write_note", text="sunny in Oslo, 0.9 EUR"),
            AIMessage("The note is written."),
        ]
    )
    planner = ScriptedModel(replies=[calls("PlanDraft", steps=drafts)])
    state = ask(create_supervisor(catalog, planner_model=planner, worker_model=worker).compile())
    results = state["results"]
    assert [[call["tool"] for call in results[i]["calls"]] for i in "123"] == [
        ["meteo/weather_report"], ["bank/exchange_rate"], ["notebook/write_note"]
    ]  # fmt: skip
    assert {(result["status"], result["worker"]) for result in results.values()} == {("done", "1")}
    assert state["messages"][-1].text == "The note is written."
    assert state["usage"]["by_role"]["answer"]["calls"] == 0
    opening = worker.shown[0]["messages"][-1].text
    assert opening.startswith(f"{REQUEST}\n\nIts steps:\n1. weather of a city\n2. exchange rate of a currency\n3. ")
    assert {"meteo_weather_report", "bank_exchange_rate", "notebook_write_note"} <= set(worker.shown[0]["tools"])


def test_without_a_model_no_other_tool_is_called_if_the_best_one_fails() -> None:
    called = []

    @tool
    def get_book(book_id: int) -> str:
        """Gets a book."""
        called.append(book_id)
        raise RuntimeError("no such book")

    @tool
    def get_copy(book_id: int) -> str:
        """Gets a copy of a book."""
        called.append(-book_id)
        return "a copy"

    get_book.metadata = get_copy.metadata = {"callsheet/approval": "never"}
    state = ask(create_supervisor({"books": [get_book], "library": [get_copy]}).compile(), "Get book 99")
    assert called == [99]
    assert state["results"]["1"]["error"].endswith("no such book")


def test_results_reach_a_step_through_others(catalog: Loaded, worker: ScriptedModel) -> None:
    chain = planned(("1", WEATHER, []), ("2", RATE, ["1"]), ("3", NOTE, ["2"]))
    app = create_supervisor(catalog, planner_model=ScriptedModel(replies=[chain]), worker_model=worker)
    ask(app.compile())
    openings = [shown["messages"][-1].text for shown in worker.shown]
    note = next(text for text in openings if own_steps(text).startswith(NOTE))
    assert "sunny in Oslo" in note
    assert "0.9 EUR" in note


def test_an_error_of_the_model_is_a_failed_step(catalog: Loaded) -> None:
    dead = ScriptedModel(replies=[lambda _: ConnectionError("no route to the provider")])
    state = ask(create_supervisor(catalog, model=dead, settings=Settings()).compile(), RATE)
    assert "no route to the provider" in state["plan"]["note"]
    assert state["results"]["1"]["status"] == "failed"
    assert "no route to the provider" in state["results"]["1"]["error"]
    assert "no route to the provider" in state["messages"][-1].text


def test_a_request_that_names_no_tool_is_told_the_nearest_ones(catalog: Loaded) -> None:
    told = ask(create_supervisor(catalog).compile(), "Is it sunny outside?")["messages"][-1].text.splitlines()
    assert told[0] == "Nothing was done: no step names a tool with its values."
    assert told[1] == "The nearest tools, to be called by name:"
    assert told[2].startswith("- `callsheet call skywatch/city_weather city=...`")
    assert "The agents are:" in told


def test_a_decision_model_judges_the_tools_of_each_step_in_one_call(catalog: Loaded, worker: ScriptedModel) -> None:
    judge = Stub(shares=of(city_weather=0.8), usage={"input_tokens": 700, "output_tokens": 30})
    planner = ScriptedModel(replies=[planned(("1", WEATHER, []), ("2", RATE, []))])
    models: dict[str, Any] = {"planner_model": planner, "worker_model": worker, "decision_model": judge}
    state = ask(create_supervisor(catalog, **models).compile())
    assert sorted(asked["request"] for asked, _ in judge.asked) == sorted([WEATHER, RATE])
    decision = state["selections"]["1"]["decision"]
    assert (decision["by"], decision["fits"], decision["error"]) == ("Stub stub-1", pytest.approx(0.8), "")
    tools = [tool for agent in state["selections"]["1"]["agents"] for tool in agent["tools"]]
    assert max(tools, key=lambda tool: tool["use"])["id"].endswith("/city_weather")
    spent = state["usage"]["by_role"]["decision"]
    assert (spent["calls"], spent["input_tokens"], spent["output_tokens"]) == (2, 1_400, 60)
    assert state["usage"]["by_step"]["1"]["input_tokens"] >= 700


@pytest.mark.parametrize(
    ("broken", "why"),
    [({"shares": ConnectionError("refused")}, "ConnectionError: refused"), ({"seconds": 60.0}, "within 3 s")],
)
def test_a_decision_model_that_fails_changes_nothing_and_the_step_says_so(
    catalog: Loaded, worker: ScriptedModel, broken: dict[str, Any], why: str
) -> None:
    # The worker has these seconds too, for each of its replies.
    settings = Settings(planning="none", model_seconds=3.0)
    plain = ask(create_supervisor(catalog, settings=settings, worker_model=worker).compile(), RATE)
    stub = Stub(**broken)
    state = ask(create_supervisor(catalog, settings=settings, worker_model=worker, decision_model=stub).compile(), RATE)
    decision = state["selections"]["1"].pop("decision")
    assert why in decision["error"]
    assert plain["selections"]["1"].pop("decision") is None
    assert state["selections"] == plain["selections"]
    assert state["results"]["1"]["status"] == plain["results"]["1"]["status"]


def test_a_worker_whose_step_nothing_fits_is_told_so_with_the_nearest_agents(
    catalog: Loaded, worker: ScriptedModel
) -> None:
    parts: dict[str, Any] = {"worker_model": worker, "settings": Settings(planning="none")}
    state = ask(create_supervisor(catalog, decision_model=Stub(shares={"none": 1.0}), **parts).compile(), RATE)
    assert state["selections"]["1"]["verdict"] == "nothing_fits"
    opening, tools = worker.shown[0]["messages"][-1].text, worker.shown[0]["tools"]
    assert "No tool of the catalog seems to fit this step." in opening
    assert "The nearest agents:\n- bank" in opening
    assert {"need_tool", "bank_exchange_rate"} <= set(tools)
    ask(create_supervisor(catalog, **parts).compile(), RATE)
    assert "seems to fit" not in worker.shown[-1]["messages"][-1].text


def test_a_run_names_its_decision_model(
    catalog: Loaded, worker: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callsheet.orchestrator.run.run_context.chat_model", lambda name: Stub(model=name))
    app = create_supervisor(catalog, worker_model=worker, settings=Settings(planning="none")).compile()
    assert ask(app, RATE)["selections"]["1"]["decision"] is None
    state = ask(app, RATE, context=Settings(decision_model="maker:judge"))
    assert state["selections"]["1"]["decision"]["by"] == "Stub maker:judge"
    monkeypatch.setattr("callsheet.orchestrator.supervisor.chat_model", lambda name: Stub(model=name))
    picker: Any = create_retriever_app(AgentGraphRetriever.from_catalog(catalog)).compile()
    found = picker.invoke({"query": RATE}, context={"decision_model": "maker:judge"})
    assert found["selection"]["decision"]["by"] == "Stub maker:judge"


def test_an_empty_request_is_answered(catalog: Loaded) -> None:
    state = ask(create_supervisor(catalog).compile(), "  ")
    assert state["plan"]["steps"] == []
    assert "the request is empty" in state["messages"][-1].text


def test_a_second_request_of_a_thread_has_a_plan_and_results_of_its_own(catalog: Loaded, worker: ScriptedModel) -> None:
    planner = ScriptedModel(replies=[planned(*STEPS), planned(("9", RATE, []))])
    workflow = create_supervisor(catalog, planner_model=planner, worker_model=worker, settings=Settings())
    app = workflow.compile(checkpointer=InMemorySaver())
    config = {"configurable": {"thread_id": "1"}}
    assert set(ask(app, config=config)["results"]) == {"1", "2", "3"}
    second = ask(app, RATE, config=config)
    assert set(second["results"]) == {"9"}
    assert [m.type for m in second["messages"] if m.type != "tool" and m.text] == ["human", "ai", "ai", "human", "ai"]


class Hanging(ScriptedModel):
    """Never answers."""

    async def _agenerate(self, *args: Any, **kwargs: Any) -> Any:
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("role", "said"),
    [
        ("planner_model", lambda state: state["plan"]["note"]),
        ("worker_model", lambda state: state["results"]["1"]["error"]),
        ("answer_model", lambda state: state["messages"][-1].text),
    ],
)
async def test_a_model_that_never_answers_does_not_stop_the_run(
    catalog: Loaded, worker: ScriptedModel, role: str, said: Callable[[Any], str]
) -> None:
    settings = Settings(model_seconds=2.0)
    two = ScriptedModel(replies=[planned(("1", RATE, []), ("2", WEATHER, []))])
    models: dict[str, Any] = {"worker_model": worker, "planner_model": two, role: Hanging()}
    app = create_supervisor(catalog, settings=settings, **models).compile()
    state = await app.ainvoke({"messages": [HumanMessage("look up the rate of USD")]})
    assert "the model did not answer within 2 s" in said(state)
    assert state["results"]["1"]["status"] == ("failed" if role == "worker_model" else "done")
