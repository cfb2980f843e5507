"""Which earlier results a step uses: those that it refers to, and none that it does not."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.agents.keyless import fill, split
from callsheet.agents.planning.plan import StepResult

TEXT = {"type": "string"}
WRITE: dict[str, Any] = {
    "title": "write file",
    "description": "Write file to disk",
    "properties": {"file_path": TEXT, "text": {**TEXT, "description": "text to write to file"}},
    "required": ["file_path", "text"],
}
READ: dict[str, Any] = {
    "title": "read file",
    "description": "Read file from disk",
    "properties": {"file_path": TEXT},
    "required": ["file_path"],
}
MEAN: dict[str, Any] = {
    "title": "statistics",
    "description": "Perform statistical calculations on a list of numbers.\nOne of: mean, median",
    "properties": {
        "numbers": {"type": "array", "items": {"type": "number"}},
        "operation": {"enum": ["mean", "median"]},
    },
    "required": ["numbers", "operation"],
}


def done(text: str, result: str) -> StepResult:
    return StepResult(id=text, text=text, result=result)


MILES = done("Convert 3 miles to km", '{"converted_value": 4.8, "converted_unit": "km"}')
KILOS = done("convert 5 kg to pounds", '{"converted_value": 11, "converted_unit": "pounds"}')
WRITTEN = done("write it to x.txt", "File written successfully to x.txt.")
NOTES = done("Read notes.txt", "Buy milk\nCall Bob")
SHORT = done("Read a.txt", "alpha")


@pytest.mark.parametrize(
    ("said", "inputs", "text"),
    [
        ("write it to y.txt", (MILES, KILOS), "11 pounds"),
        ("write that to y.txt", (MILES, WRITTEN, KILOS), "11 pounds"),
        ("write it to y.txt", (MILES, WRITTEN), "4.8 km"),
        (
            "write both results to y.txt",
            (MILES, WRITTEN, KILOS),
            f"{MILES.text}: 4.8 km\nConvert 5 kg to pounds: 11 pounds",
        ),
        ("write its content to y.txt", (SHORT,), "alpha"),
        ("write the result to y.txt", (WRITTEN,), WRITTEN.result),
    ],
)
def test_what_a_step_refers_to_is_written(said: str, inputs: tuple[StepResult, ...], text: str) -> None:
    filled = fill(WRITE, said, inputs, plainly=True)
    assert (filled.args, filled.unused) == ({"file_path": "y.txt", "text": text}, ())


def test_a_file_that_was_just_written_is_it() -> None:
    assert fill(READ, "read it", (SHORT, WRITTEN)).args == {"file_path": "x.txt"}


COPY: dict[str, Any] = {
    "title": "copy file",
    "description": "Create a copy of a file",
    "properties": {"source_path": TEXT, "destination_path": TEXT},
    "required": ["source_path", "destination_path"],
}


@pytest.mark.parametrize(
    ("said", "args"),
    [
        ("copy it to b.txt", {"source_path": "a.txt", "destination_path": "b.txt"}),
        ("copy c.txt to b.txt", {"source_path": "c.txt", "destination_path": "b.txt"}),
        ("copy to b.txt the file c.txt", {"source_path": "c.txt", "destination_path": "b.txt"}),
        ("copy 'c.txt' to b.txt", {"source_path": "c.txt", "destination_path": "b.txt"}),
        ("copy b.txt from c.txt", {"source_path": "c.txt", "destination_path": "b.txt"}),
        ("copy from c.txt to b.txt", {"source_path": "c.txt", "destination_path": "b.txt"}),
        ("copy c.txt b.txt", {"source_path": "c.txt", "destination_path": "b.txt"}),
        ("copy c.txt", {"source_path": "c.txt"}),
    ],
)
def test_a_file_goes_where_the_step_says(said: str, args: dict[str, str]) -> None:
    assert fill(COPY, said, (SHORT,), plainly=True).args == args


@pytest.mark.parametrize("noun", ["summary", "total", "count", "number", "translation", "difference"])
def test_a_value_that_nothing_computed_is_not_written(noun: str) -> None:
    assert fill(WRITE, f"write the {noun} to y.txt", (NOTES,), plainly=True).unused == (noun,)


@pytest.mark.parametrize(
    ("said", "inputs", "unused"),
    [
        ("write both to y.txt", (MILES,), ("both",)),
        ("write both to y.txt", (MILES, KILOS), ()),
        ("write both to y.txt", (MILES, KILOS, NOTES), ("both",)),
        ("write all three to y.txt", (MILES, KILOS, NOTES), ()),
        ("write all three to y.txt", (MILES, KILOS), ("three",)),
    ],
)
def test_as_many_results_as_the_step_names(said: str, inputs: tuple[StepResult, ...], unused: tuple[str, ...]) -> None:
    assert fill(WRITE, said, inputs, plainly=True).unused == unused


def test_a_value_that_a_step_computed_may_have_another_name() -> None:
    mean = done("Calculate the mean of 1, 2 and 3", "2")
    assert fill(WRITE, "write the average to y.txt", (mean,), plainly=True).unused == ()


@pytest.mark.parametrize(
    ("steps", "said", "unused"),
    [
        (("compute 2+2", "compute 3+3"), "write the sum to y.txt", ("sum",)),
        (("add 1 and 2", "compute 3+3"), "write the total to y.txt", ("total",)),
        (("compute 2*5", "compute 3+3"), "write the sum to y.txt", ()),
        (("compute 3+3", "write the sum to x.txt"), "write the sum to y.txt", ()),
        (("compute 2+2", "compute 3+3"), "write both sums to y.txt", ()),
        (
            ("calculate the mean of 1 and 2", "calculate the mean of 3 and 4"),
            "write the average to y.txt",
            ("average",),
        ),
    ],
)
def test_a_noun_for_the_results_of_several_steps_is_ambiguous(
    steps: tuple[str, ...], said: str, unused: tuple[str, ...]
) -> None:
    assert fill(WRITE, said, [done(step, "6") for step in steps], plainly=True).unused == unused


def test_a_noun_for_the_results_of_several_steps_waits_for_all_of_them() -> None:
    steps = split("Compute 2+2, compute 3+3 and write the sum to y.txt").steps
    assert steps[-1].depends_on == ("1", "2")
    steps = split("Compute 2*2, compute 3+3 and write the sum to y.txt").steps
    assert steps[-1].depends_on == ("2",)


@pytest.mark.parametrize(
    ("said", "numbers"),
    [
        ("calculate the mean of 1, 2 and 3", [1, 2, 3]),
        ("calculate the mean of it and 10", [11, 10]),
        ("calculate the mean of both", [4.8, 11]),
        ("calculate the mean", [4.8, 11]),
    ],
)
def test_numbers_of_earlier_results_count_only_where_the_step_refers_to_them(said: str, numbers: list[float]) -> None:
    assert fill(MEAN, said, (MILES, KILOS)).args == {"numbers": numbers, "operation": "mean"}


def test_a_noun_with_its_own_values_refers_to_no_step() -> None:
    steps = split("Convert 3 miles to km and what is the average of 1, 2 and 3?").steps
    assert [step.depends_on for step in steps] == [(), ()]
    steps = split("Convert 3 miles to km, convert 5 miles to km and compute the average").steps
    assert [step.depends_on for step in steps] == [(), (), ("1", "2")]


FIND: dict[str, Any] = {
    "title": "file search",
    "description": "Search for files by name",
    "properties": {"pattern": TEXT},
    "required": ["pattern"],
}


def test_a_pronoun_that_no_argument_uses_is_left_over() -> None:
    assert fill(FIND, "find 'gamma' in it", (SHORT,)).unused == ("it",)
    assert fill(FIND, "find 'gamma' in it").unused == ("it",)
    assert fill(READ, "read it again", (WRITTEN,)).unused == ("again",)


@pytest.mark.parametrize(
    ("made", "noun", "unused"),
    [
        ("Calculate 2+2", "sum", ()),
        ("Calculate 2+2", "product", ("product",)),
        ("Calculate 2+2*3", "sum", ("sum",)),
        ("Add 2 and 3", "sum", ()),
        ("Subtract 2 from 3", "difference", ()),
    ],
)
def test_what_an_operation_gives_has_a_name(made: str, noun: str, unused: tuple[str, ...]) -> None:
    assert fill(WRITE, f"write the {noun} to y.txt", (done(made, "4"),), plainly=True).unused == unused


def test_a_result_goes_only_into_a_parameter_for_text() -> None:
    keys = {"title": "json list keys", "properties": {"tool_input": TEXT}, "required": ["tool_input"]}
    assert fill(keys, "list its lines", (NOTES,)).missing == ("tool_input",)
