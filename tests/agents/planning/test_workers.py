"""Which steps a worker does: all of them, unless a context is the limit."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.agents.calls.outcome import Call
from callsheet.agents.calls.plan import Plan, Status, Step, StepEnd, StepResult
from callsheet.agents.calls.token_usage import Usage
from callsheet.agents.planning.workers import next_workers
from callsheet.agents.work.step_results import step_results


def step(number: str, *after: str, **fields: Any) -> Step:
    return Step(id=number, text=f"step {number}", depends_on=after, **fields)


def divided(*steps: Step, finished: Any = (), **more: Any) -> list[list[str]]:
    return [[one.id for one in worker] for worker in next_workers(Plan(steps=steps), finished, **more)]


def test_one_worker_does_all_steps_with_and_without_dependencies() -> None:
    assert divided(step("1"), step("2", "1"), step("3"), step("4", "2", "3")) == [["1", "2", "3", "4"]]


def test_a_step_that_is_apart_has_a_worker_of_its_own() -> None:
    steps = step("1"), step("2", apart=True), step("3", "1")
    assert divided(*steps) == [["1", "3"], ["2"]]


def test_a_step_between_two_others_that_is_apart_ends_the_worker() -> None:
    steps = step("1"), step("2", "1", apart=True), step("3", "2"), step("4", "3")
    assert divided(*steps) == [["1"]]
    assert divided(*steps, finished={"1"}) == [["2"]]
    assert divided(*steps, finished={"1", "2"}) == [["3", "4"]]


def test_items_have_workers_of_their_own_and_what_waits_for_them_comes_after() -> None:
    steps = (
        step("1"),
        step("2.1", for_each="1", item='"a"'),
        step("2.2", for_each="1", item='"b"'),
        step("3", "2.1", "2.2"),
    )
    assert divided(*steps, finished={"1"}) == [["2.1"], ["2.2"]]
    assert divided(*steps, finished={"1", "2.1", "2.2"}) == [["3"]]


def test_tools_beyond_the_budget_are_divided_among_workers() -> None:
    steps = step("1", tools=("a", "b")), step("2", tools=("c",)), step("3", "1", tools=("d",)), step("4", tools=("a",))
    assert divided(*steps, cost=len, most=2) == [["1", "4"], ["2"]]
    assert divided(*steps, finished={"1", "2", "4"}, cost=len, most=2) == [["3"]]
    assert divided(*steps, cost=len, most=None) == [["1", "2", "3", "4"]]


def test_a_step_whose_own_tools_exceed_the_budget_still_has_a_worker() -> None:
    assert divided(step("1", tools=("a", "b", "c")), cost=len, most=2) == [["1"]]


def test_without_a_model_each_step_that_is_ready_has_a_worker() -> None:
    plan = Plan(steps=(step("1"), step("2"), step("3", "1")), mode="no_model")
    assert [[one.id for one in worker] for worker in next_workers(plan, ())] == [["1"], ["2"]]


def called(number: int, tool: str) -> Call:
    return Call(id=f"c{number}", agent=tool.partition("/")[0], tool=tool, output=f"{tool} said so")


STEPS = (step("1", tools=("a/read",)), step("2", tools=("a/write", "a/read")), step("3"))
GIVEN = {"1": ["a/read"], "2": ["a/write", "a/read"], "3": ["b/send"]}


def of_steps(*calls: Call, **fields: Any) -> dict[str, StepResult]:
    whole = StepResult(
        **{"id": "1", "text": "all", "calls": calls, "result": "Done.", "usage": Usage(calls=2), **fields}
    )
    return {one.id: one for one in step_results(whole, STEPS, GIVEN, {"1": ["a"]})}


@pytest.mark.parametrize(
    ("tools", "places"),
    [
        (["a/read", "a/write", "a/read"], ["1", "2", "2"]),  # the second reading is of the step that is at work
        (["a/read", "a/read"], ["1", "1"]),
        (["b/send", "a/read"], ["3", "2"]),  # a step that is passed gets the calls that only it names
        (["c/other", "b/send"], ["1", "3"]),
    ],
)
def test_a_call_belongs_to_the_first_unfinished_step_that_names_its_tool(tools: list[str], places: list[str]) -> None:
    results = of_steps(*(called(number, tool) for number, tool in enumerate(tools, 1)))
    found = {call.id: name for name, result in results.items() for call in result.calls}
    assert [found[f"c{number}"] for number in range(1, len(tools) + 1)] == places


def test_cost_and_added_tools_belong_to_the_first_step() -> None:
    results = of_steps(tools=("a/read", "a/write", "b/send", "c/added"))
    assert [result.usage.calls for result in results.values()] == [2, 0, 0]
    assert results["1"].tools == ("a/read", "c/added")
    assert {result.worker for result in results.values()} == {"1"}


@pytest.mark.parametrize(
    ("status", "named", "statuses"),
    [
        ("partly", {"2": "failed"}, ["done", "failed", "done"]),  # what is not named is done
        ("partly", {"3": "done"}, ["partly", "partly", "done"]),  # nothing says what is not done
        ("partly", {}, ["partly", "partly", "partly"]),
        ("failed", {"1": "partly"}, ["partly", "failed", "failed"]),
        ("done", {"2": "partly"}, ["done", "partly", "done"]),
    ],
)
def test_steps_that_finish_did_not_name_are_done_if_it_named_what_is_not(
    status: str, named: dict[str, Status], statuses: list[str]
) -> None:
    ends = {name: StepEnd(status=one) for name, one in named.items()}
    results = of_steps(called(1, "a/read"), status=status, ends=ends)
    assert [result.status for result in results.values()] == statuses


def test_each_step_keeps_a_value_and_references_are_resolved_with_the_calls_of_all_steps() -> None:
    ends = {"3": StepEnd(status="done", data={"$call": "c1"}), "2": StepEnd(status="failed")}
    results = of_steps(called(1, "a/read"), status="partly", ends=ends)
    assert [result.status for result in results.values()] == ["done", "failed", "done"]
    assert (results["2"].error, results["2"].result) == ("Done.", "")
    assert results["3"].data == "a/read said so"
