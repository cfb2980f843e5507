"""Earlier results by reference: their values, the paths into them, and reading them in pieces."""

from __future__ import annotations

import json
from typing import Any

import pytest

from callsheet.agents import Call, StepResult
from callsheet.agents.work.read_result import answer_reading, shown_in_part, shown_result
from callsheet.agents.work.value_references import ResultValueError, resolved, value_of

ROWS = {"items": [{"id": "x-19", "n": 3}, {"id": "x-20", "n": 4}]}


def result(step: str, output: Any, said: str = "done") -> StepResult:
    text = output if isinstance(output, str) else json.dumps(output)
    return StepResult(id=step, text="t", result=said, calls=(Call(agent="a", tool="a/t", output=text),))


RESULTS = (result("1", ROWS), result("2.1", "plain text"), StepResult(id="3", text="t", result="said"))


@pytest.mark.parametrize(
    ("value", "real"),
    [
        ({"$from": "1", "path": "items[0].id"}, "x-19"),
        ({"$from": "1", "path": "items[*].n"}, [3, 4]),
        ({"$from": "1"}, ROWS),
        ({"$from": "2.1"}, "plain text"),
        ({"$from": "3", "path": ""}, "said"),
        ([{"$from": "1", "path": "items[1].n"}], [4]),
        ({"deep": {"er": {"$from": "2.1"}}}, {"deep": {"er": "plain text"}}),
        ({"$from": "1", "more": 2}, {"$from": "1", "more": 2}),
        ("$from", "$from"),
    ],
)
def test_a_reference_stands_for_its_value(value: Any, real: Any) -> None:
    assert resolved({"x": value, "y": 1}, RESULTS) == {"x": real, "y": 1}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"$from": "9"}, "there is no earlier result '9'; there are: 1, 2.1, 3"),
        (
            {"$from": "1", "path": "items[7].id"},
            "there is nothing at 'items[7].id'; there is an object of 1 fields (items)",
        ),
        ({"$from": "1", "path": "items["}, "is not a path such as items[0].id"),
        ({"$from": "2.1", "path": "a.b"}, "there is a text of 10 characters"),
        ({"$from": ["1"]}, "no earlier result"),
        ({"$from": "1", "path": 3}, "must be a text"),
    ],
)
def test_a_reference_to_nothing_is_refused(value: Any, words: str) -> None:
    with pytest.raises(ResultValueError) as caught:
        resolved({"x": value}, RESULTS)
    assert words in str(caught.value)


def test_a_failed_call_gives_no_value() -> None:
    failed = Call(agent="a", tool="a/t", error="it broke")
    assert value_of(StepResult(id="1", text="t", result="r", calls=(failed,))) == "r"
    assert value_of(StepResult(id="1", text="t", calls=(Call(agent="a", tool="a/t", output="7"), failed))) == 7


def test_a_long_result_is_shown_in_part_and_read_in_pieces() -> None:
    rows = [{"id": number, "text": "row " * 20} for number in range(200)]
    long = result("1", rows, said="200 rows")
    told = shown_result(long)
    assert len(told) < 2_000
    assert "a list of 200 items, the first an object of 2 fields (id, text)" in told
    assert shown_in_part([long])
    assert not shown_in_part([result("1", ROWS)])
    pieces, start = "", 0
    while True:
        call: Any = {"name": "read_result", "args": {"id": "1", "start": start}, "id": "c", "type": "tool_call"}
        text = answer_reading(call, [long]).text
        piece, more, rest = text.partition("\n[")
        pieces += piece
        if not more:
            break
        start = int(rest.partition("start=")[2].rstrip("]"))
    assert json.loads(pieces) == rows
    one: Any = {"name": "read_result", "args": {"id": "1", "path": "[3].id"}, "id": "c", "type": "tool_call"}
    assert answer_reading(one, [long]).text == "3"


@pytest.mark.parametrize(
    "args", [{}, {"id": "7"}, {"id": "1", "start": -1}, {"id": "1", "start": 10**9}, {"id": "1", "start": "x"}]
)
def test_a_wrong_reading_is_an_error(args: Any) -> None:
    call: Any = {"name": "read_result", "args": args, "id": "c", "type": "tool_call"}
    assert answer_reading(call, RESULTS).status == "error"
