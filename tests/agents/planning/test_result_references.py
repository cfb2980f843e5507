"""Earlier results by reference: their values, the paths into them, and reading them in pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callsheet.agents import Call, StepResult
from callsheet.agents.calls.plan import ResultValueError, resolve_references, value_of
from callsheet.agents.work.context import report_of, reports
from callsheet.agents.work.equipment import answer_reading

ROWS = {"items": [{"id": "x-19", "n": 3}, {"id": "x-20", "n": 4}]}


def made(output: Any, name: str = "c1") -> Call:
    text = output if isinstance(output, str) else json.dumps(output)
    return Call(id=name, agent="a", tool="a/t", args={"q": 1}, output=text)


RESULTS = (
    StepResult(id="1", text="t", result="two rows", data=ROWS, calls=(made("raw"), made([7, 8], "c2"))),
    StepResult(id="2.1", text="t", result="plain text", calls=(made("[DIR] raw"),)),
    StepResult(id="3", text="t", result="[1, 2]"),
    StepResult(id="4", text="t", result="the list", data={"$call": "c1", "path": "items"}, calls=(made(ROWS),)),
)
OWN = (made({"own": True}),)


@pytest.mark.parametrize(
    ("value", "real"),
    [
        ({"$from": "1", "path": "items[0].id"}, "x-19"),
        ({"$from": "1", "path": "items[*].n"}, [3, 4]),
        ({"$from": "1"}, ROWS),
        ({"$from": "2.1"}, "plain text"),
        ({"$from": "3", "path": ""}, [1, 2]),
        ({"$from": "4", "path": "[1].id"}, "x-20"),
        ({"$call": "1/c2", "path": "[0]"}, 7),
        ({"$call": "2.1/c1"}, "[DIR] raw"),
        ({"$call": "c1", "path": "own"}, True),
        ([{"$from": "1", "path": "items[1].n"}], [4]),
        ({"deep": {"er": {"$from": "2.1"}}}, {"deep": {"er": "plain text"}}),
        ({"$from": "1", "more": 2}, {"$from": "1", "more": 2}),
        ("$from", "$from"),
    ],
)
def test_a_reference_stands_for_its_value(value: Any, real: Any) -> None:
    assert resolve_references({"x": value, "y": 1}, RESULTS, OWN) == {"x": real, "y": 1}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"$from": "9"}, "there is no earlier result '9'; there are: 1, 2.1, 3, 4"),
        (
            {"$from": "1", "path": "items[7].id"},
            "there is nothing at 'items[7].id'; there is an object of 1 fields (items)",
        ),
        ({"$from": "1", "path": "items["}, "is not a path such as items[0].id"),
        ({"$from": "2.1", "path": "a.b"}, "there is a text of 10 characters"),
        ({"$from": ["1"]}, "no earlier result"),
        ({"$from": "1", "path": 3}, "must be a text"),
        ({"$call": "c9"}, "there are: 1, 2.1, 3, 4, c1, 1/c1, 1/c2, 2.1/c1, 4/c1"),
    ],
)
def test_a_reference_to_nothing_is_refused(value: Any, words: str) -> None:
    with pytest.raises(ResultValueError) as caught:
        resolve_references({"x": value}, RESULTS, OWN)
    assert words in str(caught.value)


def test_a_failed_call_gives_no_value() -> None:
    failed = Call(id="c1", agent="a", tool="a/t", error="it broke")
    with pytest.raises(ResultValueError, match="no earlier result 'c1'; there are: none"):
        value_of(StepResult(id="1", text="t", result="r", data={"$call": "c1"}, calls=(failed,)))


def test_a_result_is_reported_with_its_data_and_the_beginning_of_its_calls() -> None:
    told = report_of(RESULTS[0])
    assert "<result>\ntwo rows\n</result>" in told
    assert "The data of '1': an object of 1 fields (items): " in told
    assert '- 1/c2 a/t {"q": 1} -> 6 characters: [7, 8]' in told
    failed = StepResult(
        id="5", text="t", status="failed", error="gone", calls=(made("x").model_copy(update={"error": "404"}),)
    )
    assert "(failed) gone" in report_of(failed)
    assert "-> failed: 404" in report_of(failed)


def test_results_have_a_budget_together() -> None:
    many = [StepResult(id=str(n), text="t", result="word " * 400, calls=(made("x" * 5_000),)) for n in range(20)]
    assert len(reports(many)) < 20_000
    assert all(f"<step id='{n}'>" in reports(many) for n in range(20))


def test_a_long_result_is_shown_in_part_and_read_in_pieces() -> None:
    rows = [{"id": number, "text": "row " * 20} for number in range(200)]
    long = StepResult(id="1", text="t", result="200 rows", data=rows, calls=(made(rows),))
    told = report_of(long)
    assert len(told) < 2_500
    assert "a list of 200 items, the first an object of 2 fields (id, text)" in told
    for name in ("1", "1/c1"):
        pieces, start = "", 0
        while True:
            call: Any = {"name": "read_result", "args": {"id": name, "start": start}, "id": "c", "type": "tool_call"}
            text = answer_reading(call, [long], ()).text
            piece, more, rest = text.partition("\n[")
            pieces += piece
            if not more:
                break
            start = int(rest.partition("start=")[2].rstrip("]"))
        assert json.loads(pieces) == rows
    one: Any = {"name": "read_result", "args": {"id": "1", "path": "[3].id"}, "id": "c", "type": "tool_call"}
    assert answer_reading(one, [long], ()).text == "3"


@pytest.mark.parametrize(
    "args", [{}, {"id": "7"}, {"id": "1", "start": -1}, {"id": "1", "start": 10**9}, {"id": "1", "start": "x"}]
)
def test_a_wrong_reading_is_an_error(args: Any) -> None:
    call: Any = {"name": "read_result", "args": args, "id": "c", "type": "tool_call"}
    assert answer_reading(call, RESULTS, OWN).status == "error"
