"""Values that a step writes in a way of its own: orders to compute, units without a number, patterns."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.agents.keyless import Filled, fill
from callsheet.agents.keyless.slots.slot import slots_of
from callsheet.agents.keyless.slots.vocabularies import variants

EXPRESSION = {"title": "calculate", "properties": {"expression": {"type": "string"}}, "required": ["expression"]}


@pytest.mark.parametrize(
    ("said", "formula"),
    [
        ("Add 3 and 4", "3 + 4"),
        ("subtract 3 from 10", "10 - 3"),
        ("multiply 3 by 4", "3 * 4"),
        ("divide 10 by 4", "10 / 4"),
        ("What's 15 percent of 80", "15/100*80"),
    ],
)
def test_an_order_to_compute_is_a_formula(said: str, formula: str) -> None:
    assert fill(EXPRESSION, said) == Filled({"expression": formula})


@pytest.mark.parametrize("said", ["Add 3, 4 and 5", "Add 3 and 4 to the list"])
def test_an_order_to_compute_with_more_is_not_cut_short(said: str) -> None:
    filled = fill(EXPRESSION, said)
    assert filled.missing or filled.unused


@pytest.mark.parametrize(
    ("said", "value"), [("How many km in a mile?", 1), ("half a mile in km", 0.5), ("a mile and a half in km", 1)]
)
def test_a_unit_without_a_number(said: str, value: float) -> None:
    filled = fill(converter("kilometer", "mile"), said)
    assert filled.args == {"value": value, "from_unit": "mile", "to_unit": "kilometer"}
    assert filled.unused == (("half",) if "and a half" in said else ())


VOLUMES = ("cubic centimeter", "cubic meter", "cup", "kiloliter", "liter", "milliliter", "pint")


@pytest.mark.parametrize(
    ("said", "source", "target"),
    [
        ("Convert 2 cups to ml", "cup", "milliliter"),
        ("convert 2 cc to l", "cubic centimeter", "liter"),
        ("2 l in pints?", "liter", "pint"),
        ("convert 2 m3 to kl", "cubic meter", "kiloliter"),
    ],
)
def test_a_unit_has_its_own_name_among_those_of_its_size(said: str, source: str, target: str) -> None:
    assert fill(converter(*VOLUMES), said) == Filled({"value": 2, "from_unit": source, "to_unit": target})


@pytest.mark.parametrize(("said", "missing"), [("convert a C to F", "value"), ("convert 2 C to a file", "to_unit")])
def test_a_letter_is_a_unit_only_in_the_place_of_one(said: str, missing: str) -> None:
    assert missing in fill(converter("celsius", "fahrenheit"), said).missing


def converter(*units: str) -> dict[str, Any]:
    unit = {"type": "string", "enum": [*units]}
    properties = {"value": {"type": "number"}, "from_unit": unit, "to_unit": unit}
    return {"properties": properties, "required": [*properties]}


def test_a_file_name_with_an_asterisk_is_a_pattern_and_no_path() -> None:
    pattern = {"title": "file search", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]}
    assert fill(pattern, "search all *.csv files") == Filled({"pattern": "*.csv"})
    path = {"title": "read file", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    assert fill(path, "read *.csv").missing == ("path",)


def test_phrases_without_content() -> None:
    zone = {"title": "get current time", "properties": {"timezone": {"type": "string"}}, "required": ["timezone"]}
    assert fill(zone, "find out what time it is right now in Tokyo") == Filled({"timezone": "Asia/Tokyo"})
    assert fill(zone, "what time is it in Tokyo, right?").unused == ("right",)


NUMBER = {"type": "number"}


@pytest.mark.parametrize(
    ("title", "description", "said", "unused"),
    [
        ("clock set timer", "Set a timer in minutes.", "Set a timer for 5 minutes", ()),
        ("clock set timer", "Set a timer in minutes.", "Set a timer for 5 hours", ("hours",)),
        ("pay bill", "Pay a bill.", "Pay the bill with 50 EUR", ()),
        ("pay bill", "Pay a bill.", "Pay the bill with 50 LBS", ("LBS",)),
        ("pay bill", "Pay a bill.", "Pay the bill with 50 pounds", ("pounds",)),
        ("scale service", "Scale the service.", "Scale the service to 3", ()),
        ("scale service", "Scale the service.", "Scale the service by 3", ("by",)),
        ("raise volume", "Raise the volume by a number.", "Raise the volume by 3", ()),
    ],
)
def test_the_unit_of_a_number_and_a_difference_are_accounted_for(
    title: str, description: str, said: str, unused: tuple[str, ...]
) -> None:
    about = {"title": title, "description": description}
    filled = fill({**about, "properties": {"value": NUMBER}, "required": ["value"]}, said, plainly=True)
    assert tuple(word.strip() for word in filled.unused) == unused


def test_what_is_counted_is_not_another_parameter() -> None:
    water = {"title": "water plants", "properties": {"liters": NUMBER}, "required": ["liters"]}
    assert fill(water, "water 2 plants").missing == ("liters",)
    assert fill(water, "water the plants with 2 liters").args == {"liters": 2}
    songs = {"title": "songs", "properties": {"limit": NUMBER}, "required": ["limit"]}
    assert fill(songs, "5 songs").args == {"limit": 5}


def test_numbers_are_taken_in_order_only_side_by_side() -> None:
    songs = {"title": "top songs", "properties": {"year": NUMBER, "count": NUMBER}, "required": ["year", "count"]}
    assert fill(songs, "top 5 songs of 2020").args == {}
    assert fill(songs, "top songs of the year 2020, count 5").args == {"year": 2020, "count": 5}


def test_a_list_of_paths_and_where_they_go() -> None:
    paths = {"type": "array", "items": {"type": "string"}}
    merge = {
        "title": "merge pdfs",
        "properties": {"paths": paths, "output_path": {"type": "string"}},
        "required": ["paths", "output_path"],
    }
    slots = slots_of(merge)
    assert variants("merge a.pdf and b.pdf into c.pdf", slots) == ("merge a.pdf and b.pdf into c.pdf",)
    assert fill(merge, "merge a.pdf and b.pdf into c.pdf").args == {"paths": ["a.pdf", "b.pdf"], "output_path": "c.pdf"}
    assert fill(merge, "merge a.pdf, b.pdf and c.pdf").missing == ("output_path",)


@pytest.mark.parametrize("order", ["Find", "Look up", "Fetch", "Get", "Show me"])
def test_to_find_a_value_is_to_get_it(order: str) -> None:
    zone = {"timezone": {"type": "string", "description": "IANA timezone name"}}
    clock = {"title": "get_current_time", "properties": zone, "required": ["timezone"]}
    assert fill(clock, f"{order} the time in Tokyo") == Filled({"timezone": "Asia/Tokyo"})
    assert "weather" in " ".join(fill(clock, f"{order} the weather in Tokyo").unused)
