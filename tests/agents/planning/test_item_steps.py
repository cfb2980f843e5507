"""Steps that are done for items: what the items are, and what a revision may make of such steps."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.agents import Plan, Step, StepResult
from callsheet.agents.planning.planner import PlanRevision
from callsheet.agents.planning.revision import expand_items, items_of, revise_plan
from callsheet.graphs import Catalog

LISTED = Step(id="1", text="list notes")
READ = Step(id="2", text="read {item}", depends_on=("1",), for_each="1")
MAPPED, _ = expand_items(Plan(steps=(LISTED, READ)), READ, ["a", "b"], wave=1)
DONE = {name: StepResult(id=name, text="") for name in ("1", "2.1", "2.2")}


def gave(text: str, name: str = "1") -> StepResult:
    return StepResult(id=name, text="", result=text)


def draft(**fields: Any) -> PlanRevision:
    return PlanRevision(steps=[{"id": "9", **fields}])  # type: ignore[list-item]


@pytest.mark.parametrize("text", ["", "[]", '{"content": ""}', '{"files": []}'])
def test_an_empty_result_has_no_items(text: str) -> None:
    assert items_of(READ, gave(text)) == []


def test_results_per_item_are_the_items_of_the_next_step() -> None:
    step = Step(id="3", text="write {item}", for_each="2")
    assert items_of(step, gave("a\nb", "2.1"), gave('["c"]', "2.2"), gave("d", "2.3")) == ["a", "b", "c", "d"]


def test_steps_of_items_take_no_id_that_another_step_has() -> None:
    plan = Plan(steps=(LISTED, READ, Step(id="2.1", text="write")))
    after, revision = expand_items(plan, READ, ["a", "b"], wave=1)
    assert [step.id for step in after.steps] == ["1", "2.2", "2.3", "2.1"]
    assert revision.added == ("2.2", "2.3")


def test_a_revision_may_map_the_same_text_over_other_items() -> None:
    steps = [{"id": str(number), "text": "write {item}", "for_each": f"2.{number - 6}"} for number in (7, 8)]
    after, _ = revise_plan(MAPPED, PlanRevision(steps=steps), DONE, Catalog(), wave=2)  # type: ignore[arg-type]
    assert [(step.for_each, step.depends_on) for step in after.steps[-2:]] == [("2.1", ("2.1",)), ("2.2", ("2.2",))]


@pytest.mark.parametrize("needs", [{"depends_on": ["2"]}, {"for_each": "2"}])
def test_a_new_step_may_build_on_all_steps_of_items(needs: dict[str, Any]) -> None:
    after, _ = revise_plan(MAPPED, draft(text="write", **needs), DONE, Catalog(), wave=2)
    assert after.steps[-1].depends_on == ("2.1", "2.2")
