"""Calls that a person is asked about first."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from callsheet import CallsheetTools, Settings, create_ask_app, create_supervisor
from callsheet.agents.approval.supervised_call import SupervisedCall
from callsheet.agents.calls.refusal import Refusal
from callsheet.agents.calls.review import flat
from callsheet.agents.servers.catalogs.catalog_sources import load_reference
from callsheet.graphs import Loaded, load
from fake_agents import FakeAgents
from scripted_model import ScriptedModel, calls, planned

WEATHER, RATE, NOTE = "tell the weather of Oslo", "look up the rate of USD", "write a note with both"
STEPS = (("1", WEATHER, []), ("2", RATE, []), ("3", NOTE, ["1", "2"]))
REQUEST = f"Please {WEATHER}, {RATE}, and {NOTE}"
THREAD: Any = {"configurable": {"thread_id": "1"}}
FOUR = ["approve", "edit", "reject", "respond"]


@pytest.fixture
def asking(shop: FakeAgents, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    """The shop, for which nobody has vouched."""
    shop.approval = None
    return shop.loaded(monkeypatch)


def compiled(catalog: Any, planner: Any, worker: Any, **settings: Any) -> Any:
    workflow = create_supervisor(catalog, planner_model=planner, worker_model=worker, settings=Settings(**settings))
    return workflow.compile(checkpointer=InMemorySaver())


def ask(app: Any, text: str) -> Any:
    return app.invoke({"messages": [HumanMessage(text)]}, THREAD)


def edited(**args: Any) -> dict[str, Any]:
    """A decision that changes the arguments of the exchange rate."""
    return {"type": "edit", "edited_action": {"name": "bank_exchange_rate", "args": args}}


def asked(state: Any) -> dict[str, Any]:
    """Step id -> the interrupt of that step."""
    return {found.value["step_id"]: found for found in state["__interrupt__"]}


def resume(app: Any, **answers: Any) -> Any:
    """Answers the interrupts of these steps (``s1``, ``s2``)."""
    waiting = {found.value["step_id"]: found.id for found in app.get_state(THREAD).interrupts}
    given = {waiting[name.removeprefix("s")]: answer for name, answer in answers.items()}
    return app.invoke(Command(resume=given), THREAD)


@pytest.fixture
def app(asking: Loaded, worker: ScriptedModel) -> Any:
    return compiled(asking, ScriptedModel(replies=[planned(*STEPS)]), worker)


def test_a_call_of_a_risky_tool_waits_for_a_person(app: Any, shop: FakeAgents) -> None:
    state = ask(app, REQUEST)
    assert shop.called == []
    question = asked(state)["2"].value
    assert question["type"] == "tool_approval"
    assert (question["agent"], question["tool"], flat(question)["args"]) == (
        "bank",
        "bank/exchange_rate",
        {"currency": "USD"},
    )
    assert "it is not marked as read-only" in question["why"]
    assert len(question["hash"]) == 64
    assert question["review_configs"] == [{"action_name": "bank_exchange_rate", "allowed_decisions": FOUR}]


def test_a_request_that_replaces_one_with_an_open_question_says_so(app: Any, shop: FakeAgents) -> None:
    assert "unfinished" not in ask(app, REQUEST).get("plan", {}).get("note", "")
    note = ask(app, REQUEST)["plan"]["note"]
    assert "the last request was left unfinished at" in note
    assert "and 2 more: whether a call of it took effect is unknown" in note
    resume(app, s1={"type": "approve"}, s2={"type": "approve"})
    resume(app, s3={"type": "approve"})
    assert "unfinished" not in ask(app, REQUEST)["plan"]["note"]


def test_two_calls_of_a_fan_out_are_answered_by_id_one_after_the_other(app: Any, shop: FakeAgents) -> None:
    assert set(asked(ask(app, REQUEST))) == {"1", "2"}
    state = resume(app, s2={"type": "approve"})
    assert shop.called == ["exchange_rate"]
    assert set(asked(state)) == {"1"}
    state = resume(app, s1={"type": "approve"})
    assert shop.called == ["exchange_rate", "weather_report"]
    assert set(asked(state)) == {"3"}
    state = resume(app, s3={"type": "approve"})
    assert shop.called == ["exchange_rate", "weather_report", "write_note"]
    assert [state["results"][i]["status"] for i in "123"] == ["done"] * 3


@pytest.mark.parametrize(
    "yes", [{"decisions": [{"type": "approve"}]}, {"type": "approve"}, [{"type": "accept", "args": None}]], ids=str
)
def test_an_answer_without_an_id_is_for_the_first_question(app: Any, shop: FakeAgents, yes: Any) -> None:
    """Agent Chat UI sends the first form, the agent inbox the last one."""
    first, second = ask(app, REQUEST)["__interrupt__"]
    state = app.invoke(Command(resume=yes), THREAD)
    assert shop.called == [first.value["tool"].partition("/")[2]]
    assert [one.id for one in state["__interrupt__"]] == [second.id]
    (third,) = app.invoke(Command(resume=yes), THREAD)["__interrupt__"]
    assert shop.called == [one.value["tool"].partition("/")[2] for one in (first, second)]
    app.invoke(Command(resume=yes), THREAD)
    assert shop.called[2:] == [third.value["tool"].partition("/")[2]]


async def test_a_run_asks_one_question_after_the_other(
    asking: Loaded,
    shop: FakeAgents,
    worker: ScriptedModel,
) -> None:
    """What a client shows is what its next answer without an id is for."""
    app = compiled(asking, ScriptedModel(replies=[planned(*STEPS)]), worker, questions="one")
    state = ask(app, REQUEST)
    seen = []
    while asked_now := state.get("__interrupt__"):
        (question,) = asked_now
        assert [one.id for one in (await app.aget_state(THREAD)).interrupts] == [question.id]
        seen.append(question.value["tool"].partition("/")[2])
        state = await app.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), THREAD)
        assert shop.called == seen
    assert sorted(seen) == ["exchange_rate", "weather_report", "write_note"]
    assert [state["results"][i]["status"] for i in "123"] == ["done"] * 3


async def test_one_question_after_the_other_within_one_run_of_another_graph(
    asking: Loaded, worker: ScriptedModel
) -> None:
    supervisor = compiled(asking, ScriptedModel(replies=[planned(*STEPS)]), worker, questions="one")
    state = await create_ask_app(supervisor).compile().ainvoke({"question": REQUEST})
    assert [step["status"] for step in state["steps"]] == ["failed", "failed", "skipped"]


async def test_an_answer_with_a_hash_is_for_that_call_only(app: Any, shop: FakeAgents) -> None:
    first, second = ask(app, REQUEST)["__interrupt__"]
    approval = Command(resume={"decisions": [{"type": "approve", "hash": second.value["hash"]}]})
    state = await app.ainvoke(approval, THREAD)
    assert shop.called == [second.value["tool"].partition("/")[2]]
    assert [one.id for one in state["__interrupt__"]] == [first.id]
    (again,) = (await app.ainvoke(approval, THREAD))["__interrupt__"]
    assert "hash of another call" in again.value["problem"]
    assert len(shop.called) == 1


def test_a_decision_on_a_call_that_no_longer_waits_approves_no_other_call(
    shop: FakeAgents, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first call is refused before its answer is read, and the next one of its turn is asked about."""
    shop.approval = None
    both = calls("notebook_write_note", text="a")
    both.tool_calls.append({**calls("notebook_delete_note", title="b").tool_calls[0], "id": "2"})
    tools = CallsheetTools(shop.loaded(monkeypatch), agents=1, tools=2)
    agent = create_agent(
        ScriptedModel(replies=[both, AIMessage("Done.")]), middleware=[tools], checkpointer=InMemorySaver()
    )
    (first,) = agent.invoke({"messages": [HumanMessage(NOTE)]}, THREAD)["__interrupt__"]
    assert first.value["tool"] == "notebook/write_note"
    refusal = SupervisedCall.refusal

    def gone(case: SupervisedCall) -> Refusal | None:
        return Refusal("it is gone") if case.bound.id == "notebook/write_note" else refusal(case)

    monkeypatch.setattr(SupervisedCall, "refusal", gone)
    (second,) = agent.invoke(Command(resume={"type": "approve"}), THREAD)["__interrupt__"]
    assert (second.value["tool"], shop.called) == ("notebook/delete_note", [])
    assert "was for another question" in second.value["problem"]
    agent.invoke(Command(resume={"type": "approve"}), THREAD)
    assert shop.called == ["delete_note"]


def test_a_call_behind_one_that_waits_for_a_person_waits_too(asking: Loaded, shop: FakeAgents) -> None:
    both = calls("notebook_write_note", text="a")
    both.tool_calls.append({**calls("notebook_delete_note", title="b").tool_calls[0]})
    model = ScriptedModel(replies=[both, AIMessage("Done.")])
    app = compiled(asking, ScriptedModel(replies=[planned(("1", NOTE, []))]), model)
    (first,) = ask(app, NOTE)["__interrupt__"]
    assert first.value["tool"] == "notebook/write_note"
    (second,) = app.invoke(Command(resume={first.id: {"type": "approve"}}), THREAD)["__interrupt__"]
    assert second.value["tool"] == "notebook/delete_note"
    assert shop.called == ["write_note"]
    state = app.invoke(Command(resume={second.id: {"type": "reject"}}), THREAD)
    assert shop.called == ["write_note"]
    assert "__interrupt__" not in state


def test_a_rejected_call_is_not_tried_with_another_tool_and_its_reason_is_told(
    asking: Loaded,
    shop: FakeAgents,
    worker: ScriptedModel,
) -> None:
    planner = ScriptedModel(replies=[planned(("1", WEATHER, []))])
    app = create_supervisor(asking, planner_model=planner, worker_model=worker).compile(checkpointer=InMemorySaver())
    ask(app, WEATHER)
    state = resume(app, s1={"type": "reject", "message": "too dear"})
    result = state["results"]["1"]
    assert shop.called == []
    assert (result["status"], len(result["calls"]), result["calls"][0]["kind"]) == ("failed", 1, "rejected")
    assert "a person refused this call: too dear" in result["error"]
    assert "refused" in state["messages"][-1].text


def test_an_edited_call_is_shown_again_before_it_is_sent(app: Any, shop: FakeAgents, worker: ScriptedModel) -> None:
    first = asked(ask(app, REQUEST))["2"].value
    state = resume(app, s2=edited(currency="NOK"))
    again = asked(state)["2"].value
    assert shop.called == []
    assert flat(again)["args"] == {"currency": "NOK"}
    assert again["hash"] != first["hash"]
    resume(app, s2={"type": "approve", "hash": again["hash"]})
    resume(app, s1={"type": "approve"})
    result = app.get_state(THREAD).values["results"]["2"]
    assert result["calls"][0]["args"] == {"currency": "NOK"}
    assert "1 NOK = 0.9 EUR" in result["calls"][0]["output"]
    assert "A person changed the arguments" in result["calls"][0]["output"]


def test_a_response_takes_the_place_of_the_call(app: Any, shop: FakeAgents) -> None:
    ask(app, REQUEST)
    resume(app, s1={"type": "approve"}, s2={"type": "respond", "message": "1 USD = 0.5 EUR"})
    result = app.get_state(THREAD).values["results"]["2"]
    assert shop.called == ["weather_report"]
    assert (result["status"], result["result"]) == ("done", "1 USD = 0.5 EUR")


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        ("maybe", 'an answer is {"decisions": [{"type": approve or edit or reject or respond'),
        ({"type": "edit"}, 'an edit needs "edited_action"'),
        (edited(currency=7), "currency: 7 is not of type 'string'"),
        (
            {"type": "edit", "edited_action": {"name": "notebook_delete_note", "args": {}}},
            "cannot call 'notebook_delete_note' instead",
        ),
        ({"type": "respond"}, 'needs a "message"'),
        ({"type": "approve", "hash": "0" * 64}, "hash of another call"),
        ({"type": "approve", "tool": "x"}, "tool: Extra inputs are not permitted"),
        ({"type": "sure"}, "type: Input should be 'approve', 'edit', 'reject' or 'respond'"),
        ({}, "type: Field required"),
    ],
)
def test_an_invalid_decision_is_asked_for_again(app: Any, shop: FakeAgents, answer: Any, problem: str) -> None:
    ask(app, REQUEST)
    state = resume(app, s2=answer)
    assert shop.called == []
    assert problem in asked(state)["2"].value["problem"]
    resume(app, s2={"type": "approve"})
    assert shop.called == ["exchange_rate"]


@pytest.mark.parametrize(
    ("of_author", "of_run", "asks"), [(None, "never", False), ("never", "always", True), ("always", "never", True)]
)
def test_an_always_of_the_author_or_the_run_is_above_a_never(
    shop: FakeAgents,
    monkeypatch: pytest.MonkeyPatch,
    worker: ScriptedModel,
    of_author: Any,
    of_run: str,
    asks: bool,
) -> None:
    shop.approval = of_author
    app = compiled(shop.loaded(monkeypatch), ScriptedModel(replies=[planned(*STEPS)]), worker)
    state = app.invoke({"messages": [HumanMessage(REQUEST)]}, THREAD, context={"approval": of_run})
    if asks:
        assert (set(asked(state)), shop.called) == ({"1", "2"}, [])
    else:
        assert [r["status"] for r in state["results"].values()] == ["done"] * 3
        assert len(shop.called) == 3


def test_approval_without_a_checkpointer_is_an_error_before_anything_runs(
    asking: Loaded,
    shop: FakeAgents,
    worker: ScriptedModel,
) -> None:
    planner = ScriptedModel(replies=[planned(*STEPS)])
    app = create_supervisor(asking, planner_model=planner, worker_model=worker).compile()
    state = app.invoke({"messages": [HumanMessage(REQUEST)]})
    said = state["messages"][-1].text
    assert "compile(checkpointer=InMemorySaver())" in said
    assert 'Settings(approval="never")' in said
    assert (shop.called, planner.shown, worker.shown, state["plan"]["steps"]) == ([], [], [], [])


def test_a_tool_that_interrupts_by_itself_gets_its_own_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = []

    @tool
    def send_mail(to: str) -> str:
        """Sends an e-mail to an address."""
        subject = interrupt("Which subject?")
        sent.append((to, subject))
        return f"sent to {to}: {subject}"

    import sys
    from types import ModuleType

    module = ModuleType("mail_of_the_tests")
    module.mail = [send_mail]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    model = ScriptedModel(replies=[calls("mail_send_mail", to="ann"), lambda told: AIMessage(told[-1].text)])
    planner = ScriptedModel(replies=[planned(("1", "send an e-mail to ann", []))])
    app = compiled(load(load_reference("mail_of_the_tests:mail")), planner, model)
    state = ask(app, "send an e-mail to ann")
    state = resume(app, s1={"type": "approve"})
    (own,) = state["__interrupt__"]
    assert own.value == "Which subject?"
    state = app.invoke(Command(resume={own.id: "hello"}), THREAD)
    assert sent == [("ann", "hello")]
    assert state["results"]["1"]["status"] == "done"


def test_the_answer_of_the_model_is_not_asked_for_again(app: Any, worker: ScriptedModel) -> None:
    ask(app, REQUEST)
    before = len(worker.shown)
    resume(app, s2={"type": "approve"})
    rate = [shown for shown in worker.shown[before:] if not isinstance(shown["messages"][-1], ToolMessage)]
    assert rate == []


@pytest.mark.parametrize("answer", ["maybe", {"type": "approve", "hash": "0" * 64}, edited(x=1)])
def test_an_invalid_decision_is_asked_for_three_times_at_most(app: Any, shop: FakeAgents, answer: Any) -> None:
    ask(app, REQUEST)
    for _ in range(2):
        assert "2" in asked(resume(app, s2=answer))
    assert set(asked(resume(app, s2=answer))) == {"1"}
    (call,) = app.get_state(THREAD).values["results"]["2"]["calls"]
    assert (call["kind"], call["effect"], shop.called) == ("rejected", "none", [])
    assert "the question was asked 3 times without a valid answer" in call["error"]


def test_only_invalid_decisions_in_a_row_are_counted(app: Any, shop: FakeAgents) -> None:
    ask(app, REQUEST)
    for answer in ("maybe", "maybe", edited(currency="NOK"), "maybe", "maybe"):
        assert "2" in asked(resume(app, s2=answer))
    resume(app, s2={"type": "approve"})
    assert shop.called == ["exchange_rate"]
