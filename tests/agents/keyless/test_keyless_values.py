"""Values that a step writes in a way of its own: orders to compute, units without a number, patterns."""

from __future__ import annotations

import pytest

from callsheet.agents.keyless import Filled, fill

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
    unit = {"type": "string", "enum": ["kilometer", "mile"]}
    given = {
        "properties": {"value": {"type": "number"}, "from_unit": unit, "to_unit": unit},
        "required": ["value", "from_unit", "to_unit"],
    }
    filled = fill(given, said)
    assert filled.args == {"value": value, "from_unit": "mile", "to_unit": "kilometer"}
    assert filled.unused == (("half",) if "and a half" in said else ())


def test_a_file_name_with_an_asterisk_is_a_pattern_and_no_path() -> None:
    pattern = {"title": "file search", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]}
    assert fill(pattern, "search all *.csv files") == Filled({"pattern": "*.csv"})
    path = {"title": "read file", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    assert fill(path, "read *.csv").missing == ("path",)


def test_phrases_without_content() -> None:
    zone = {"title": "get current time", "properties": {"timezone": {"type": "string"}}, "required": ["timezone"]}
    assert fill(zone, "find out what time it is right now in Tokyo") == Filled({"timezone": "Asia/Tokyo"})
    assert fill(zone, "what time is it in Tokyo, right?").unused == ("right",)
