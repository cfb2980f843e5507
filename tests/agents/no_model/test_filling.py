"""What stands in a step is filled in; what is left over is said."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.agents.calls.plan import StepResult
from callsheet.agents.no_model.filling import fill, spread, unanswered
from callsheet.agents.no_model.values import in_words, total, unit_in, values_in, zone_of
from callsheet.graphs import Agent, Tool

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
LENGTHS = {"type": "string", "enum": ["mile", "kilometer", "foot", "inch", "centimeter"]}


def tool(name: str, about: str, *required: str, **properties: Any) -> Tool:
    schema = {"type": "object", "properties": properties, "required": list(required or properties)}
    return Tool(agent="a", name=name, description=about, input_schema=schema)


def filled(given: Tool, text: str, results: Any = (), *, harmless: bool = True) -> Any:
    return fill(given, Agent(id="a", tools=(given,)), text, results, harmless=harmless)


LENGTH = tool("convert_length", "Convert length between units.", value=NUMBER, from_unit=LENGTHS, to_unit=LENGTHS)
CLOCK = tool("convert_time", "Convert time.", source_timezone=TEXT, time=TEXT, target_timezone=TEXT)
READ = tool("read_file", "Read a file.", file_path=TEXT)
WRITE = tool("write_file", "Write file to disk.", file_path=TEXT, text=TEXT)
COPY = tool("copy_file", "Copy a file.", source_path=TEXT, destination_path=TEXT)
SEARCH = tool("search", "Answers questions about the race.", question=TEXT)
DONE = [StepResult(id="1", text="Convert it", result="42 km"), StepResult(id="2", text="Ask", result="08:15")]


@pytest.mark.parametrize(
    ("given", "text", "args"),
    [
        (LENGTH, "Convert 26.2 miles to kilometres", {"value": 26.2, "from_unit": "mile", "to_unit": "kilometer"}),
        (LENGTH, "How many feet is 3 km?", {"value": 3, "from_unit": "kilometer", "to_unit": "foot"}),
        (LENGTH, "5 feet 11 inches in cm", {"value": 71, "from_unit": "inch", "to_unit": "centimeter"}),
        (CLOCK, "What time is it in Tokyo when it is 9:30 in Berlin?",
         {"source_timezone": "Europe/Berlin", "time": "09:30", "target_timezone": "Asia/Tokyo"}),
        (CLOCK, "find out what time it is in Tokyo when it is 9:30 in Berlin",
         {"source_timezone": "Europe/Berlin", "time": "09:30", "target_timezone": "Asia/Tokyo"}),
        (CLOCK, "Convert 3pm from London to New York",
         {"source_timezone": "Europe/London", "time": "15:00", "target_timezone": "America/New_York"}),
        (READ, "Read a.txt", {"file_path": "a.txt"}),
        (READ, "Show me the file 'notes/a.txt'", {"file_path": "notes/a.txt"}),
        (tool("mail", "Mail to.", to_email=TEXT), "Mail to ann@example.com", {"to_email": "ann@example.com"}),
        (tool("fetch", "Fetch.", url=TEXT), "Fetch https://example.org/x.", {"url": "https://example.org/x"}),
        (tool("due", "Tasks due.", date=TEXT), "Tasks due 3 May 2027", {"date": "2027-05-03"}),
        (tool("calculate", "Calculate.", expression=TEXT), "Calculate 12 × 7", {"expression": "12 * 7"}),
    ],
)  # fmt: skip
def test_typed_values_are_filled_in_and_nothing_is_left(given: Tool, text: str, args: dict[str, Any]) -> None:
    found = filled(given, text)
    assert (found.args, found.missing, found.unused) == (args, (), ())
    assert found.complete


@pytest.mark.parametrize(
    ("given", "text", "missing"),
    [
        (COPY, "Copy a.txt to b.txt", ("source_path", "destination_path")),
        (READ, "Read a.txt and b.txt", ("file_path",)),
        (LENGTH, "Convert 5 miles", ("from_unit", "to_unit")),
        (CLOCK, "Convert 9:30 in Berlin to 10:30 in Tokyo", ("source_timezone", "time", "target_timezone")),
    ],
)
def test_a_value_that_fits_two_parameters_fills_none(given: Tool, text: str, missing: tuple[str, ...]) -> None:
    assert filled(given, text).missing == missing


@pytest.mark.parametrize(
    ("given", "text", "unused"),
    [
        (READ, "Read the first line of a.txt", ("first", "line")),
        (READ, "Do not read a.txt", ("not",)),
        (READ, "Read a.txt if it exists", ("if", "it", "exists")),
        (LENGTH, "Convert 5 miles to km for runners", ("runners",)),
        (LENGTH, "Convert 5a miles to km", ("a", "miles", "km")),
        (LENGTH, "Convert <5 miles to km", ("<",)),
        (WRITE, "Could you write 'x' to a.txt", ("Could", "you")),
        (WRITE, "How do I write 'x' to a.txt?", ("How", "do", "I")),
    ],
)
def test_every_word_that_went_nowhere_is_said(given: Tool, text: str, unused: tuple[str, ...]) -> None:
    assert filled(given, text, harmless=given is not WRITE).unused == unused


def test_a_changing_tool_is_not_named_by_verbs_of_asking() -> None:
    delete = tool("file_delete", "Delete a file.", file_path=TEXT)
    assert filled(delete, "Check a.txt", harmless=False).unused == ("Check",)
    assert filled(delete, "Delete a.txt", harmless=False).complete


def test_results_are_what_is_written_only_if_their_number_is_right() -> None:
    found = filled(WRITE, "write both results to t.txt", DONE, harmless=False)
    assert found.args == {"file_path": "t.txt", "text": "Convert it: 42 km\nAsk: 08:15"}
    assert filled(WRITE, "write the result to t.txt", DONE, harmless=False).args["text"] == "08:15"
    assert filled(WRITE, "write all three results to t.txt", DONE, harmless=False).missing == ("text",)
    assert filled(WRITE, "write the result to t.txt", harmless=False).missing == ("text",)
    assert filled(WRITE, "write that to t.txt", DONE, harmless=False).unused == ("that",)


def test_a_question_is_an_argument_whose_words_the_answer_must_contain() -> None:
    found = filled(SEARCH, "When does the race start, and what is that in Tokyo time?")
    assert found.question
    assert "Tokyo" in found.open
    assert unanswered(found, "The race starts at 08:30.") == ("Tokyo",)
    assert unanswered(filled(SEARCH, "When does the race start?"), "The race starts at 08:30.") == ()
    assert not filled(SEARCH, "good morning").question


def test_an_enumeration_is_one_call_for_each_value() -> None:
    assert spread(LENGTH, "Convert 3, 5 and 8 miles to km") == [f"Convert {n} miles to km" for n in (3, 5, 8)]
    assert spread(READ, "Read a.txt and b.txt") == ["Read a.txt", "Read b.txt"]
    assert spread(READ, "Read a.txt") == []


def test_units_and_zones() -> None:
    assert unit_in("kilometres", LENGTHS["enum"]) == "kilometer"  # type: ignore[arg-type]
    assert unit_in("kg", LENGTHS["enum"]) is None  # type: ignore[arg-type]
    assert unit_in("tons", ["short ton", "long ton"]) is None
    assert (zone_of("Denmark"), zone_of("Springfield"), zone_of("nowhere")) == ("Europe/Copenhagen", None, None)
    assert total([(5, "feet"), (11, "inches")]) == 71
    assert total([(5, "feet"), (3, "kg")]) is None


def test_values_have_one_place_and_results_are_told_in_words() -> None:
    assert [value.value for value in values_in('Put "a.txt" at 9:30 on 2027-05-03 into x/y.md, 1,234.5')] == [
        "a.txt", "09:30", "2027-05-03", "x/y.md", 1234.5,
    ]  # fmt: skip
    assert in_words('{"value": 1.50000000000001, "unit": "km", "to": {"x": [1, 2]}}') == "value 1.5; unit km; to x 1, 2"
    assert in_words("plain") == "plain"
