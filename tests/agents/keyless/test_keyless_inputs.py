"""Arguments from earlier results, and schemas that are broken, nested or by reference."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.agents.keyless import Filled, fill
from callsheet.agents.planning.plan import StepResult


def schema(required: str, /, **properties: Any) -> dict[str, Any]:
    """A schema from a compact form: a bare string is a type, a dict is the property itself."""
    specs = {name: {"type": spec} if isinstance(spec, str) else spec for name, spec in properties.items()}
    return {"type": "object", "properties": specs, "required": required.split()}


def text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


LENGTH = {"type": "string", "enum": ["centimeter", "foot", "inch", "kilometer", "meter", "mile", "nautical mile"]}
CONVERT = schema("value from_unit to_unit", value="number", from_unit=LENGTH, to_unit=LENGTH)
WRITE = schema(
    "file_path text",
    file_path=text("name of file"),
    text=text("text to write to file"),
    append={"type": "boolean", "default": False, "description": "Whether to append to an existing file."},
)
NUMBERS = schema(
    "numbers operation",
    numbers={"type": "array", "items": {"type": "number"}},
    operation=text("One of: mean, median, mode, std_dev, variance"),
)


def done(id_: str, said: str, result: str) -> StepResult:
    return StepResult(id=id_, text=said, result=result)


MILES = done(
    "1",
    "Convert 26.2 miles to kilometres",
    '{"original_value": 26.2, "converted_value": 42.164813, "converted_unit": "kilometer"}',
)
TOKYO = done(
    "2",
    "what time is it in Tokyo when it is 9:30 in Berlin",
    '{"source": {"timezone": "Europe/Berlin", "datetime": "2026-01-05T09:30:00+01:00"}, '
    '"target": {"timezone": "Asia/Tokyo", "datetime": "2026-01-05T17:30:00+09:00"}, "time_difference": "+8.0h"}',
)


def test_content_takes_one_line_per_input() -> None:
    filled = fill(WRITE, "write both results to trip.txt", (MILES, TOKYO))
    lines = filled.args["text"].splitlines()
    assert filled.missing == ()
    assert filled.args["file_path"] == "trip.txt"
    assert "42.164813" in lines[0]
    assert "17:30" in lines[1]
    assert len(lines) == 2


def test_numbers_come_from_inputs_and_text() -> None:
    filled = fill(NUMBERS, "take the average of that and 10 km", (MILES,))
    assert filled == Filled({"numbers": [42.164813, 10], "operation": "mean"}, ())


def test_a_value_comes_from_an_input() -> None:
    filled = fill(CONVERT, "convert that to feet", (MILES,))
    assert filled == Filled({"value": 42.164813, "from_unit": "kilometer", "to_unit": "foot"}, ())


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"properties": []},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"]},
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/A"}},
            "$defs": {"A": {"$ref": "#/$defs/A"}},
            "required": ["a"],
        },
        {"type": "object", "properties": {"a": 3}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"type": "nonsense", "enum": 5}}, "required": 7},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}, "required": ["a"]},
    ],
)
def test_a_broken_schema_gives_a_sane_answer(broken: dict[str, Any]) -> None:
    filled = fill(broken, "do something with 'a thing' and 3 apples")
    assert isinstance(filled.args, dict)


def test_references_and_null_unions() -> None:
    given = {
        "type": "object",
        "properties": {
            "path": {"$ref": "#/$defs/Where"},
            "unit": {"anyOf": [{"enum": ["metric", "imperial"]}, {"type": "null"}]},
        },
        "required": ["path"],
        "$defs": {"Where": {"type": "string"}},
    }
    assert fill(given, "Open data/x.json in metric") == Filled({"path": "data/x.json", "unit": "metric"}, ())


def test_a_nested_object_is_asked_for() -> None:
    place = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    assert fill(schema("where", where=place), "Open data/x.json").missing == ("where",)


def test_what_does_not_validate_is_missing() -> None:
    given = schema("count", count={"type": "integer", "maximum": 10, "description": "How many"})
    assert fill(given, "give me 50") == Filled({}, ("count",))


def test_a_result_is_not_an_address_too() -> None:
    done = StepResult(id="1", text="look up ORD-551", result="shipped on Monday")
    given = {
        "type": "object",
        "properties": {"to": {"type": "string"}, "text": {"type": "string"}},
        "required": ["to", "text"],
    }
    assert fill(given, "post the result to #general", (done,)).missing == ("to",)
    mail = {**given, "title": "send_mail", "description": "Sends an e-mail."}
    assert fill(mail, "send the result to ann@example.org", (done,)).args["to"] == "ann@example.org"


@pytest.mark.parametrize(
    ("said", "args"),
    [
        ("replace 'a' with 'b'", {"query": "a", "replacement": "b"}),
        ("replace 'a' by 'b'", {"query": "a", "replacement": "b"}),
    ],
)
def test_the_old_text_and_the_new(said: str, args: dict[str, str]) -> None:
    text = {"type": "string"}
    tool = {
        "title": "replace_text",
        "properties": {"query": text, "replacement": text},
        "required": ["query", "replacement"],
    }
    assert fill(tool, said, plainly=True).args == args


@pytest.mark.parametrize("path", ["/srv/my docs/annual report.txt", "my docs/annual report.txt", "C:\\my docs\\a.txt"])
def test_a_quoted_path_may_have_spaces(path: str) -> None:
    tool = {"title": "read_file", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    assert fill(tool, f'read "{path}"').args == {"path": path}


DUE = {"due_before": {"type": "string", "format": "date"}, "due_after": {"type": "string", "format": "date"}}


@pytest.mark.parametrize(
    ("said", "args"),
    [
        ("after 2025-01-05 and before 2025-01-20", {"due_before": "2025-01-20", "due_after": "2025-01-05"}),
        ("before 2025-01-10", {"due_before": "2025-01-10"}),
        ("from 2025-01-10 on", {}),
        ("on 2025-01-10", {}),
        ("by 2025-01-10", {}),
        ("before 2025-02-30", {}),
    ],
)
def test_a_date_goes_to_its_side_of_a_period(said: str, args: dict[str, str]) -> None:
    tool = {"title": "list_tasks", "description": "List the tasks", "properties": DUE}
    filled = fill(tool, f"list the tasks {said}")
    assert filled.args == args
    assert bool(filled.unused) is not bool(args)


@pytest.mark.parametrize("said", ["from 2025-01-03 to 2025-01-05", "on 2025-01-03 until 2025-01-05"])
def test_a_period_has_a_start_and_an_end(said: str) -> None:
    day = {"type": "string", "format": "date"}
    tool = {
        "title": "book_room",
        "properties": {"start_date": day, "end_date": day},
        "required": ["start_date", "end_date"],
    }
    assert fill(tool, f"book a room {said}", plainly=True).args == {
        "start_date": "2025-01-03",
        "end_date": "2025-01-05",
    }


@pytest.mark.parametrize("said", ['comment by "Ben"', 'comment from "Ben"', 'comment for the "Ben"'])
def test_what_stands_after_by_is_not_the_text(said: str) -> None:
    tool = {"title": "add_comment", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    assert fill(tool, f"add a {said}", plainly=True).missing == ("text",)
    assert fill(tool, 'add the comment "Ben"', plainly=True).args == {"text": "Ben"}


def test_a_named_thing_is_not_the_value_of_another_parameter() -> None:
    tool = {"title": "score_lead", "properties": {"industry": {"type": "string"}}, "required": ["industry"]}
    assert fill(tool, 'score the lead "Acme"').missing == ("industry",)
    assert fill(tool, 'score the lead of the industry "Steel"').args == {"industry": "Steel"}
