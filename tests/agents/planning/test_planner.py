"""Plans from models: what is accepted, what is repaired, what falls back to a single step."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from callsheet.agents.calls.plan import Plan, Step
from callsheet.agents.planning.planner import decompose
from callsheet.graphs import Agent, Catalog, PlanError, Tool
from scripted_model import ScriptedModel, calls

REQUEST = "Convert 3 miles to km and write the result to a.txt"
GOOD = [
    {"id": "1", "text": "Convert 3 miles to km", "depends_on": []},
    {"id": "2", "text": "write the result to a.txt", "depends_on": ["1"]},
]


CATALOG = Catalog(
    agents=(
        Agent(id="units", tools=(Tool(agent="units", name="convert_length"), Tool(agent="units", name="list_units"))),
        Agent(id="files", tools=(Tool(agent="files", name="write_file"),)),
    )
)


def planner(*plans: Any) -> ScriptedModel:
    """A model that returns these plans in order; a string is an answer without a call."""
    replies = [AIMessage(plan) if isinstance(plan, str) else calls("PlanDraft", steps=plan) for plan in plans]
    return ScriptedModel(replies=replies)


async def test_a_valid_plan_is_not_changed() -> None:
    plan = await decompose(REQUEST, planner(GOOD), CATALOG)
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
    plan = await decompose(REQUEST, model, CATALOG)
    assert len(plan.steps) == 2
    assert complaint in plan.note
    assert complaint in model.shown[1]["messages"][-1].text


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
    plan = await decompose(REQUEST, planner(*plans), CATALOG)
    assert ([step.text for step in plan.steps], plan.mode, plan.usage.calls) == ([REQUEST], "auto", calls_made)
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
    assert len((await decompose(REQUEST, model, CATALOG)).steps) == 2
    assert len(model.shown) == 1


async def test_the_form_that_a_model_can_do_is_remembered() -> None:
    model = planner("Let me think.", "First I convert.", json.dumps({"steps": GOOD}))
    plan = await decompose(REQUEST, model, CATALOG)
    assert len(plan.steps) == 2
    assert plan.usage.calls == 3
    assert "JSON schema" in model.shown[2]["messages"][-1].text
    assert (await decompose(REQUEST, model, CATALOG)).usage.calls == 1
    assert "JSON schema" in model.shown[3]["messages"][-1].text


TOO_MANY = "the request needs 2 steps, at most 1 are allowed: ask for less at once, or raise max_steps"


@pytest.mark.parametrize("plans", [[GOOD, GOOD], [GOOD, "no", "no", "no"], ["no", GOOD, GOOD]])
async def test_a_plan_with_too_many_steps_is_refused_whatever_the_repair(plans: list[Any]) -> None:
    with pytest.raises(PlanError, match=TOO_MANY):
        await decompose(REQUEST, planner(*plans), CATALOG, max_steps=1)


def step(*tools: str, **fields: Any) -> dict[str, Any]:
    return {"id": "1", "text": "convert a length", "tools": list(tools), **fields}


async def test_names_are_resolved_as_a_model_writes_them() -> None:
    plan = await decompose(REQUEST, planner([step("convert_length", "files__write_file")]), CATALOG)
    assert plan.steps[0].tools == ("units/convert_length", "files/write_file")
    assert plan.note == ""


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("units/convert_lenght", "there is no tool 'units/convert_lenght' (did you mean units/convert_length"),
        ("units", "units is an agent: name its tools (convert_length, list_units)"),
        ("web/search", "there is no tool 'web/search'"),
    ],
)
async def test_a_name_that_no_tool_has_goes_back_once_and_then_stays_in_the_plan(name: str, complaint: str) -> None:
    model = planner([step(name)], [step("units/convert_length")])
    assert (await decompose(REQUEST, model, CATALOG)).steps[0].tools == ("units/convert_length",)
    assert complaint in model.shown[1]["messages"][-1].text
    stubborn = planner([step(name)])
    plan = await decompose(REQUEST, stubborn, CATALOG)
    assert len(stubborn.shown) == 2
    assert plan.steps[0].tools == (name,)
    assert plan.note.startswith("repaired: ")


async def test_a_step_without_a_text_is_the_request() -> None:
    plan = await decompose(REQUEST, planner([{"id": "1", "tools": ["list_units"], "apart": True}]), CATALOG)
    assert (plan.steps[0].text, plan.steps[0].apart) == (REQUEST, True)


async def test_a_planner_says_that_it_cannot() -> None:
    model = ScriptedModel(replies=[calls("PlanDraft", cannot="No tool books flights.")])
    plan = await decompose("Book a flight to Oslo", model, CATALOG)
    assert (plan.steps, plan.cannot) == ((), "No tool books flights.")


def test_ready_steps_come_in_the_order_of_the_plan() -> None:
    plan = Plan(steps=(Step(id="b", text="x", depends_on=("a",)), Step(id="a", text="y"), Step(id="c", text="z")))
    assert [step.id for step in plan.ready(())] == ["a", "c"]
    assert [step.id for step in plan.ready({"a"})] == ["b", "c"]
    assert plan.ready({"a", "b", "c"}) == ()
