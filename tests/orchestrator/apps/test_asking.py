"""The supervisor with a question in and an answer out, and LangGraph apps as its agents."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, interrupt

from callsheet import CallsheetTools, Settings, create_supervisor
from callsheet.agents import Limits, ToolRegistry
from callsheet.graphs import Loaded, SettingsError, load
from callsheet.orchestrator.apps.ask_graph import create_ask_app
from callsheet.orchestrator.run.run_context import PREFERENCES, namespace_of
from fake_agents import FakeAgents
from scripted_model import ScriptedModel, calls, planned

RATE, NOTE = "look up the rate of USD", "write a note"


def asked(catalog: Any, question: str, *config: Any, store: Any = None, context: Any = None, **models: Any) -> Any:
    supervisor = create_supervisor(catalog, **models).compile(name="supervisor")
    app = create_ask_app(supervisor).compile(name="ask", store=store)
    return app.invoke({"question": question}, *config, context=context)


def test_the_schemas_of_the_ask_graph_are_a_question_and_an_answer(catalog: Loaded) -> None:
    app = create_ask_app(create_supervisor(catalog).compile()).compile()
    given, back = app.get_input_jsonschema(), app.get_output_jsonschema()
    assert given["required"] == ["question"]
    assert given["properties"]["question"]["description"].startswith("A question")
    assert set(back["properties"]) == {"answer", "steps"}
    assert {"supervisor:plan", "supervisor:worker:agent:model"} <= set(app.get_graph(xray=True).nodes)


def test_the_answer_of_the_ask_graph_has_the_steps_that_were_done(catalog: Loaded, worker: ScriptedModel) -> None:
    said = asked(catalog, RATE, worker_model=worker)
    done = {"id": "1", "text": RATE, "status": "done", "tools": ["bank/exchange_rate"], "result": "1 USD = 0.9 EUR"}
    assert said == {"answer": "1 USD = 0.9 EUR", "steps": [done]}


def test_an_input_without_a_question_is_named(catalog: Loaded) -> None:
    app: Any = create_ask_app(create_supervisor(catalog).compile()).compile()
    with pytest.raises(SettingsError, match="needs a text 'question'"):
        app.invoke({"query": RATE, "question": None})


def test_a_call_that_needs_approval_is_not_made_and_the_others_are(
    shop: FakeAgents, monkeypatch: pytest.MonkeyPatch, worker: ScriptedModel
) -> None:
    shop.approval = None
    loaded = shop.loaded(monkeypatch)
    planner = ScriptedModel(replies=[planned(("1", RATE, []), ("2", NOTE, []))])
    said = asked(loaded, f"{RATE} and {NOTE}", planner_model=planner, worker_model=worker)
    assert shop.called == []
    assert {step["status"] for step in said["steps"]} == {"failed"}
    assert all("nobody can be asked here" in step["error"] for step in said["steps"])
    said = asked(
        loaded,
        RATE,
        context={"approval": "never"},
        planner_model=ScriptedModel(replies=[AIMessage("")]),
        worker_model=worker,
    )
    assert shop.called == ["exchange_rate"]


def test_the_models_of_the_ask_graph_are_told_that_nobody_is_present(catalog: Loaded, worker: ScriptedModel) -> None:
    planner = ScriptedModel(replies=[planned(("1", RATE, []))])
    asked(catalog, RATE, planner_model=planner, worker_model=worker)
    told = "\n".join(message.text for message in planner.shown[0]["messages"])
    assert "Nobody is present" in told


def test_without_a_model_the_ask_graph_says_how_to_allow_a_call(catalog: Loaded, shop: FakeAgents) -> None:
    (step,) = asked(catalog, f"{NOTE} text: hello")["steps"]
    assert (step["status"], shop.called) == ("needs_input", [])
    assert "Nobody is here to confirm the call" in step["error"]
    assert "--allow notebook/write_note" in step["error"]


def test_an_app_that_interrupts_leaves_its_step_not_finished() -> None:
    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(interrupt("which form?"))]}

    app = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask").compile(name="clerk")
    sure = app.with_config(metadata={"callsheet/approval": "never"})
    said = asked({"clerk": sure}, "Ask the clerk to file a form", settings=Settings(allow=("clerk/run",)))
    assert said["steps"][0]["status"] == "not_finished"
    assert "which form?" in said["answer"]


def test_the_ask_graph_uses_the_preferences_of_its_user(catalog: Loaded, worker: ScriptedModel) -> None:
    store = InMemoryStore()
    store.put(namespace_of("ann"), PREFERENCES, {"worker_prompt": "Ann likes brevity."})
    asked(
        catalog, RATE, {"configurable": {"langgraph_auth_user": {"identity": "ann"}}}, store=store, worker_model=worker
    )
    assert worker.shown[0]["messages"][0].text == "Ann likes brevity."


POEM = "Roses are red, violets are blue"
THREAD: Any = {"configurable": {"thread_id": "1"}}
ALL = ("poet/run", "clerk/run", "notary/run")
FORM = "Ask the clerk to file form 12"


class AskingApp:
    """An app that asks a person, and counts how often its first node runs."""

    def __init__(self, name: str) -> None:
        self.name, self.began = name, 0

    def app(self, **compiled: Any) -> Any:
        def begin(state: MessagesState) -> dict[str, Any]:
            self.began += 1
            return {}

        def ask(state: MessagesState) -> dict[str, Any]:
            said = interrupt({"who": self.name, "about": state["messages"][-1].text})
            return {"messages": [AIMessage(f"{self.name} heard {said}")]}

        workflow = StateGraph(MessagesState).add_node("begin", begin).add_node("ask", ask)
        return workflow.add_edge(START, "begin").add_edge("begin", "ask").compile(name=self.name, **compiled)


def supervised(given: Any, *, keep: bool = True, **settings: Any) -> Any:
    workflow = create_supervisor(given, settings=Settings(**{"approval": "never", "allow": ALL, **settings}))
    return workflow.compile(checkpointer=InMemorySaver() if keep else None)


def message_of(text: str) -> Any:
    return {"messages": [("user", text)]}


def poet() -> Any:
    return create_agent(GenericFakeChatModel(messages=iter([AIMessage(POEM)])), name="poet")


def test_an_app_is_handed_the_step_and_its_answer_is_the_steps() -> None:
    state = supervised({"poet": {"description": "Writes a poem.", "tools": poet()}}).invoke(
        message_of("Write a poem about roses"), THREAD
    )
    result = state["results"]["1"]
    assert (result["status"], result["result"]) == ("done", POEM)
    assert result["calls"][0]["args"] == {"request": "Write a poem about roses"}


async def test_the_tokens_of_an_app_are_streamed() -> None:
    app = supervised({"poet": {"description": "Writes a poem.", "tools": poet()}})
    stream = app.astream(message_of("Write a poem"), THREAD, stream_mode="messages", subgraphs=True)
    said = [chunk async for chunk in stream]
    tokens = [message.content for _, (message, about) in said if about.get("lc_agent_name") == "poet"]
    assert len(tokens) > 3
    assert "".join(tokens) == POEM


def test_what_an_app_asks_is_asked_by_the_run_and_resumes_it() -> None:
    clerk = AskingApp("clerk")
    app = supervised([clerk.app()])
    stopped = app.invoke(message_of(FORM), THREAD)
    (question,) = stopped["__interrupt__"]
    assert question.value == {"who": "clerk", "about": FORM}
    state = app.invoke(Command(resume="yes"), THREAD)
    assert (state["results"]["1"]["result"], clerk.began) == ("clerk heard yes", 1)


async def test_two_apps_that_ask_at_once_are_answered_by_id() -> None:
    planner = ScriptedModel(replies=[planned(("1", FORM, []), ("2", "Ask the notary to sign form 13", []))])
    apps, options = (
        [AskingApp("clerk").app(), AskingApp("notary").app()],
        Settings(approval="never", allow=ALL, tools=1),
    )
    workflow = create_supervisor(apps, settings=options, planner_model=planner)
    app = workflow.compile(checkpointer=InMemorySaver())
    stopped = await app.ainvoke(message_of("Ask the clerk to file form 12. Ask the notary to sign form 13."), THREAD)
    answers = {question.id: f"yes, {question.value['who']}" for question in stopped["__interrupt__"]}
    assert len(answers) == 2
    state = await app.ainvoke(Command(resume=answers), THREAD)
    assert {result["result"] for result in state["results"].values()} == {
        "clerk heard yes, clerk",
        "notary heard yes, notary",
    }


def test_an_app_that_asks_is_approved_first_where_that_is_wanted() -> None:
    app = supervised([AskingApp("clerk").app()], approval="always", allow=())
    (approval,) = app.invoke(message_of(FORM), THREAD)["__interrupt__"]
    assert approval.value["type"] == "tool_approval"
    (question,) = app.invoke(Command(resume={"type": "approve"}), THREAD)["__interrupt__"]
    assert question.value["who"] == "clerk"
    assert app.invoke(Command(resume="go"), THREAD)["results"]["1"]["result"] == "clerk heard go"


@pytest.mark.parametrize("own", [None, InMemorySaver()])
def test_an_app_that_asks_without_a_checkpointer_has_failed_and_says_so(own: Any) -> None:
    state = supervised([AskingApp("clerk").app(checkpointer=own)], keep=False).invoke(message_of(FORM))
    result = state["results"]["1"]
    assert result["status"] == "failed"
    assert "compiled with a checkpointer" in result["error"]
    assert "'who': 'clerk'" in result["error"]


async def test_an_app_may_take_longer_than_a_call_of_a_tool() -> None:
    async def slow(state: MessagesState) -> dict[str, Any]:
        await asyncio.sleep(0.3)
        return {"messages": [AIMessage("at last")]}

    app = StateGraph(MessagesState).add_node("slow", slow).add_edge(START, "slow").compile(name="slow")
    registry = ToolRegistry.from_catalog(load([app]), limits=Limits(call=0.05))
    assert await registry.bind(["slow/run"], "run")["slow_run"].ainvoke({"request": "go"}) == "at last"


def test_an_app_can_be_a_tool_of_an_agent_with_callsheet_tools() -> None:
    model = ScriptedModel(replies=[calls("clerk_run", request="file form 12"), AIMessage("Filed.")])
    tools = CallsheetTools([AskingApp("clerk").app()], approval="never")
    agent = create_agent(model, middleware=[tools], checkpointer=InMemorySaver())
    (question,) = agent.invoke(message_of(FORM), THREAD)["__interrupt__"]
    assert question.value["about"] == "file form 12"
    state = agent.invoke(Command(resume="yes"), THREAD)
    assert [message.text for message in state["messages"][-2:]] == ["clerk heard yes", "Filed."]


def test_a_request_that_nothing_fits_brings_all_there_is_where_that_is_little(catalog: Loaded) -> None:
    model = ScriptedModel(replies=[AIMessage("Hello.")])
    agent = create_agent(model, middleware=[CallsheetTools(catalog, agents=4, tools=5)], checkpointer=InMemorySaver())
    agent.invoke(message_of("bake a chocolate cake in an oven"), THREAD)
    assert len(model.shown[-1]["tools"]) == 3 + 5
