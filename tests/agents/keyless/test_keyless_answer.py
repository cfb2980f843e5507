"""The answer without a model says what was found, and what was not done and why."""

from __future__ import annotations

import pytest

from callsheet.agents.keyless import compose
from callsheet.agents.planning.plan import Call, Status, StepResult


def step(id_: str, text: str, result: str = "", status: Status = "done", error: str = "") -> StepResult:
    return StepResult(id=id_, text=text, result=result, status=status, error=error)


def test_done_steps_first_then_what_was_not_done() -> None:
    said = compose(
        "many things",
        [
            step("1", "ring the bell", status="failed", error="bell/ring failed: no rope"),
            step("2", "multiply 6 by 7", '{"result": 42}'),
            step("3", "refund it", status="needs_input", error="shop/refund needs order_id"),
            step("4", "mail it", status="skipped", error="step 3 was not done"),
        ],
    )
    assert said.splitlines() == [
        "Multiply 6 by 7: 42",
        "Failed: ring the bell: bell/ring failed: no rope",
        "Needs your input: refund it: shop/refund needs order_id",
        "Skipped: mail it: step 3 was not done",
    ]


def test_nothing_done_is_said() -> None:
    assert compose("ring", []) == 'Nothing was done of "ring".'
    assert compose("", []) == "Nothing was done."
    failed = compose("ring", [step("1", "ring", status="failed", error="no rope")])
    assert failed.splitlines() == ['Nothing was done of "ring".', "Failed: ring: no rope"]


def test_what_may_have_been_done_is_not_said_to_be_nothing() -> None:
    made = Call(agent="a", tool="a/heat", output="kitchen: 40 C")
    late = step("1", "heat both", status="failed", error="office: too warm").model_copy(update={"calls": (made,)})
    assert compose("heat both", [late]) == "Failed: heat both: office: too warm"
    lost = step("1", "order it", status="outcome_unknown", error="the server has crashed")
    assert compose("order it", [lost]) == "Outcome unknown: order it: the server has crashed"


def test_json_in_words() -> None:
    said = compose("", [step("1", "how warm is it?", '{"city": "Oslo", "temperature": 3}')])
    assert said == 'How warm is it? {"city": "Oslo", "temperature": 3}'
    assert compose("", [step("1", "what is the temperature?", '{"city": "Oslo", "temperature": 3}')]).endswith("? 3")
    assert "rows" in compose("", [step("1", "list", '{"rows": 3, "columns": 4}')])


def test_the_time_zone_that_was_taken_is_named() -> None:
    said = compose("", [step("1", "time in Georgia", '{"timezone": "Asia/Tbilisi", "datetime": "2026-01-05T17:22"}')])
    assert said == "Time in Georgia: 2026-01-05T17:22 (Asia/Tbilisi)"


def test_a_long_result_is_cut_and_says_so() -> None:
    said = compose("", [step("1", "read a.txt", "x" * 10_000)])
    assert len(said) < 3_000
    assert "characters in all" in said


@pytest.mark.parametrize("form", ["[{}]", '{{"content": [{}]}}'])
def test_content_blocks_written_as_json_are_read_as_their_text(form: str) -> None:
    block = '{"type": "text", "text": "12*7+3 = 87.0", "annotations": {"difficulty": "basic"}}'
    said = compose("x", [StepResult(id="1", text="Calculate 12*7+3", result=form.format(block))])
    assert said == "Calculate 12*7+3: 12*7+3 = 87.0"
