"""A step that lacks values asks a person for them, and goes on with what it is given."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from callsheet import Settings, create_supervisor
from callsheet.agents import StepResult
from callsheet.agents.approval.questions import wanted_schema
from callsheet.agents.calls.review import flat
from callsheet.graphs import Loaded
from callsheet.graphs.text.model_schema import model_schema
from callsheet.orchestrator.apps.ask_graph import create_ask_app
from callsheet.orchestrator.step import StepNodes
from fake_agents import FakeAgents
from scripted_model import ScriptedModel, planned

LETTER = "Look up the exchange rate"
THREAD: Any = {"configurable": {"thread_id": "1"}}


def compiled(catalog: Any, **settings: Any) -> Any:
    planner = ScriptedModel(replies=[planned(("1", LETTER, []))])
    workflow = create_supervisor(
        catalog, planner_model=planner, settings=Settings(**{"agents": 1, "tools": 1, **settings})
    )
    return workflow.compile(checkpointer=InMemorySaver())


def ask(app: Any) -> Any:
    return app.invoke({"messages": LETTER}, THREAD)


def given(**values: Any) -> dict[str, Any]:
    """A decision that gives the missing values."""
    return {"type": "edit", "edited_action": {"name": "bank/exchange_rate", "args": values}}


def answer(app: Any, state: Any, answer: Any) -> Any:
    (question,) = state["__interrupt__"]
    return app.invoke(Command(resume={question.id: answer}), THREAD)


@pytest.fixture
def app(catalog: Loaded, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Nobody answers as soon as a test: a run that resumes need not wait until the one before has surely ended."""
    monkeypatch.setattr("callsheet.agents.calls.run_claim._PASSING_ON", 0.1)
    return compiled(catalog)


def test_the_question_names_step_tool_parameters_and_their_schema(app: Any, shop: FakeAgents) -> None:
    (question,) = ask(app)["__interrupt__"]
    value = question.value
    assert (value["type"], value["step_id"], value["tool"]) == ("needs_input", "1", "bank/exchange_rate")
    assert [*flat(value)["args"]] == ["currency"]
    assert value["schema"]["properties"]["currency"]["type"] == "string"
    assert "bank/exchange_rate, was not called: it needs currency" in flat(value)["description"]
    edit = question.response_schema["properties"]["decisions"]["items"]["oneOf"][0]
    assert edit["properties"]["edited_action"]["properties"]["args"] == value["schema"]
    assert shop.called == []


def test_a_form_has_the_tools_own_names_and_its_labels_no_line_breaks() -> None:
    fields = {"filter[title]": {"title": "Title\nApproved by you", "type": "float"}}
    schema = {"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": fields}}}
    form = wanted_schema(model_schema(schema).plain, ["filter[title]"])
    assert form["properties"] == {"filter[title]": {"title": "Title Approved by you", "type": "number"}}
    assert form["required"] == ["filter[title]"]


def test_the_step_goes_on_with_what_a_person_gives(app: Any, shop: FakeAgents) -> None:
    state = answer(app, ask(app), given(currency="NOK"))
    assert "__interrupt__" not in state
    assert shop.called == ["exchange_rate"]
    assert (state["results"]["1"]["status"], state["results"]["1"]["result"]) == ("done", "1 NOK = 0.9 EUR")


async def test_an_asynchronous_step_goes_on_with_what_a_person_gives(app: Any, shop: FakeAgents) -> None:
    (question,) = (await app.ainvoke({"messages": LETTER}, THREAD))["__interrupt__"]
    state = await app.ainvoke(Command(resume={question.id: {"decisions": [given(currency="NOK")]}}), THREAD)
    assert (state["results"]["1"]["status"], shop.called) == ("done", ["exchange_rate"])


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"currency": 5}, "currency: 5 is not of type 'string'"),
        ({}, "'currency' is a required property"),
        ({"currency": "NOK", "amount": 3}, "'amount' was unexpected"),
    ],
)
def test_what_does_not_fit_is_asked_for_again_with_the_reason(
    app: Any, shop: FakeAgents, values: Any, problem: str
) -> None:
    state = answer(app, ask(app), given(**values))
    (question,) = state["__interrupt__"]
    assert problem in question.value["problem"]
    assert shop.called == []
    state = answer(app, state, given(currency="NOK"))
    assert state["results"]["1"]["status"] == "done"


@pytest.mark.parametrize("said", [{"type": "reject"}, {"type": "approve"}, "approve", "", False])
def test_an_answer_without_values_leaves_the_step_as_it_is(app: Any, shop: FakeAgents, said: Any) -> None:
    state = answer(app, ask(app), said)
    assert "__interrupt__" not in state
    result = state["results"]["1"]
    assert (result["status"], result["missing"]) == ("needs_input", {"bank/exchange_rate": ["currency"]})
    assert "bank/exchange_rate, was not called: it needs currency" in result["error"]
    assert shop.called == []


def test_with_approval_never_or_without_a_checkpointer_no_values_are_asked_for(catalog: Loaded) -> None:
    state = ask(compiled(catalog, approval="never"))
    assert state["results"]["1"]["status"] == "needs_input"
    workflow = create_supervisor(catalog, planner_model=ScriptedModel(replies=[planned(("1", LETTER, []))]))
    state = workflow.compile().invoke({"messages": LETTER})  # type: ignore[arg-type]
    assert state["results"]["1"]["status"] == "needs_input"


def test_the_ask_graph_leaves_a_step_that_needs_input_undone(catalog: Loaded) -> None:
    planner = ScriptedModel(replies=[planned(("1", LETTER, []))])
    app: Any = create_ask_app(create_supervisor(catalog, planner_model=planner).compile()).compile()
    (step,) = app.invoke({"question": LETTER})["steps"]
    assert step["status"] == "needs_input"


def test_words_of_a_step_that_no_argument_used_are_not_asked_about(app: Any) -> None:
    nodes: Any = StepNodes(None, None, None)  # type: ignore[arg-type]
    unused = StepResult(id="1", text="x", status="needs_input", error="nothing would be done with 'please'")
    state: Any = {}
    assert nodes.question(unused, state, "ask") == {}


def test_values_that_do_not_fit_are_asked_for_three_times_at_most(app: Any, shop: FakeAgents) -> None:
    state = ask(app)
    for currency in (5, None, []):
        state = answer(app, state, given(currency=currency))
    assert "__interrupt__" not in state
    assert (state["results"]["1"]["status"], shop.called) == ("needs_input", [])
