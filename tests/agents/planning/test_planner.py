"""Plans from models: what is accepted, what is repaired, what falls back to a single step."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, ToolException, tool

from callsheet.agents.calls.plan import Plan, Step
from callsheet.agents.planning.planner import decompose, looked_up
from callsheet.graphs import PlanError
from scripted_model import ScriptedModel, calls

REQUEST = "Convert 3 miles to km and write the result to a.txt"
GOOD = [
    {"id": "1", "text": "Convert 3 miles to km", "depends_on": []},
    {"id": "2", "text": "write the result to a.txt", "depends_on": ["1"]},
]


def planner(*plans: Any) -> ScriptedModel:
    """A model that returns these plans in order; a string is an answer without a call."""
    replies = [AIMessage(plan) if isinstance(plan, str) else calls("PlanDraft", steps=plan) for plan in plans]
    return ScriptedModel(replies=replies)


async def test_a_good_plan_is_taken_as_it_is() -> None:
    plan = await decompose(REQUEST, planner(GOOD))
    assert [step.text for step in plan.steps] == ["Convert 3 miles to km", "write the result to a.txt"]
    assert plan.steps[1].depends_on == ("1",)
    assert plan.note == ""


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        ([{"id": "1", "text": "convert", "depends_on": ["2"]}], "unknown step 2"),
        (
            [{"id": "1", "text": "convert", "depends_on": ["2"]}, {"id": "2", "text": "write", "depends_on": ["1"]}],
            "in a circle",
        ),
        ([{"id": "1", "text": "convert"}, {"id": "1", "text": "write"}], "repeat the id 1"),
        ([], "no steps"),
        ([{"id": str(i), "text": "convert"} for i in range(13)], "13 steps"),
    ],
)
async def test_a_plan_that_cannot_be_used_is_repaired_once(bad: Any, complaint: str) -> None:
    model = planner(bad, GOOD)
    plan = await decompose(REQUEST, model)
    assert len(plan.steps) == 2
    assert complaint in plan.note
    assert complaint in model.shown[1]["messages"][-1].text


def walker() -> BaseTool:
    @tool
    def walk_graph(node: str = "") -> str:
        """Walks."""
        if node == "nowhere":
            raise ToolException("no node 'nowhere'")
        return f"seen {node}"

    walk_graph.handle_tool_error = True
    return walk_graph


@pytest.mark.parametrize(
    ("replies", "told", "calls_made"),
    [
        ([AIMessage("ready")], "", 1),
        ([calls("walk_graph", node="units"), AIMessage("ready")], 'walk_graph({"node": "units"}):\nseen units', 2),
        (
            [calls("walk_graph", node="nowhere"), AIMessage("")],
            'walk_graph({"node": "nowhere"}):\nno node \'nowhere\'',
            2,
        ),
        ([calls("other", node="x"), calls("walk_graph")], "", 1),
        ([calls("walk_graph", node="a")] * 3, 'walk_graph({"node": "a"}):\nseen a\n\n' * 2, 2),
    ],
)
async def test_a_model_looks_at_the_graph_as_often_as_it_may(replies: Any, told: str, calls_made: int) -> None:
    model = ScriptedModel(replies=replies)
    found, _ = await looked_up(REQUEST, model, walker(), 2)
    assert found == told.strip()
    assert len(model.shown) == calls_made


async def test_a_model_without_tool_calls_has_looked_up_nothing() -> None:
    found, _ = await looked_up(REQUEST, FakeListChatModel(responses=["x"]), walker(), 2)
    assert found.startswith("Nothing more was looked up: ")


LOOP = [{"id": "1", "text": "convert", "depends_on": ["1"]}]


@pytest.mark.parametrize(
    ("plans", "why", "calls_made"),
    [
        (["no"], "the model did not answer in the requested form", 3),
        ([json.dumps({"steps": GOOD})[:-30]], "the model did not answer in the requested form", 3),
        ([LOOP], "the model's plan could not be used: steps wait for each other", 2),
    ],
)
async def test_after_a_second_bad_plan_the_request_is_one_step_and_says_so(
    plans: list[Any], why: str, calls_made: int
) -> None:
    plan = await decompose(REQUEST, planner(*plans))
    assert ([step.text for step in plan.steps], plan.mode, plan.usage.calls) == ([REQUEST], "none", calls_made)
    assert plan.note.startswith(f"taken as a single step: {why}")


@pytest.mark.parametrize(
    "written",
    [
        json.dumps({"steps": GOOD}),
        f"Here is the plan:\n```json\n{json.dumps({'steps': GOOD})}\n```",
        json.dumps({"name": "PlanDraft", "arguments": {"steps": GOOD}}),
    ],
)
async def test_a_plan_that_is_written_as_text_is_read(written: str) -> None:
    model = planner(written)
    assert len((await decompose(REQUEST, model)).steps) == 2
    assert len(model.shown) == 1


async def test_the_form_that_a_model_can_do_is_remembered() -> None:
    model = planner("Let me think.", "First I convert.", json.dumps({"steps": GOOD}))
    plan = await decompose(REQUEST, model)
    assert len(plan.steps) == 2
    assert plan.usage.calls == 3
    assert "JSON schema" in model.shown[2]["messages"][-1].text
    assert (await decompose(REQUEST, model)).usage.calls == 1
    assert "JSON schema" in model.shown[3]["messages"][-1].text


TOO_MANY = "the request needs 2 steps, at most 1 are allowed: ask for less at once, or raise max_steps"


@pytest.mark.parametrize("plans", [[GOOD, GOOD], [GOOD, "no", "no", "no"], ["no", GOOD, GOOD]])
async def test_so_is_one_of_a_model_that_cannot_do_with_less(plans: list[Any]) -> None:
    with pytest.raises(PlanError, match=TOO_MANY):
        await decompose(REQUEST, planner(*plans), max_steps=1)


def test_ready_steps_come_in_the_order_of_the_plan() -> None:
    plan = Plan(steps=(Step(id="b", text="x", depends_on=("a",)), Step(id="a", text="y"), Step(id="c", text="z")))
    assert [step.id for step in plan.ready(())] == ["a", "c"]
    assert [step.id for step in plan.ready({"a"})] == ["b", "c"]
    assert plan.ready({"a", "b", "c"}) == ()
