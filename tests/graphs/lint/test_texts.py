"""Rules on names and descriptions."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, strategies as st

from callsheet.graphs.lint import Rule, text_rules
from callsheet.graphs.lint.text_rules import similar_pairs

Finds = Callable[..., list[tuple[str, str, str]]]


CLICK = {"description": "Click an element on the page"}
PLAN = {"description": "Makes a plan."}
SAME = {"description": "Finds a thing by its name."}
ZONES, UNITS = {"description": "Convert time between time zones."}, {"description": "Seconds to hours, days, weeks."}
SCHEMA = {
    "type": "object",
    "properties": {"path": {}, "depth": {"description": "How deep."}, "mode": {"type": "string"}},
}
BOTH = {"input_schema": SCHEMA, "output_schema": SCHEMA}
LISTS = {"input_schema": SCHEMA, "description": "Lists.\n\nArgs:\n  path: where"}


@pytest.mark.parametrize(
    ("rule", "about", "agents", "expected"),
    [
        (
            text_rules.empty_description,
            {},
            {
                "a": {"bare": {}, "blank": {"description": " \u200b\n"}, "titled": {"title": "Adds"}, "said": PLAN},
                "b": {"in": {"input_schema": SCHEMA}, "out": {"output_schema": SCHEMA}, "all": BOTH},
            },
            {
                "a/bare": "so only its name can match",
                "a/blank": "so only its name can match",
                "b/in": "so only its name and its parameters can match",
                "b/out": "so only its name and its results can match",
                "b/all": "so only its name and its parameters and its results can match",
            },
        ),
        (
            text_rules.undescribed_agent,
            {"b": {"description": "Adds."}, "c": {"instructions": "Add."}},
            {"a": {}, "b": {}, "c": {}},
            {"a": ""},
        ),
        (
            text_rules.duplicate_description,
            {},
            {"a": {"x": PLAN, "y": {"description": "makes  a PLAN."}, "z": CLICK, "e": {}, "f": {}}, "b": {"x": PLAN}},
            {"a/x": "as y:"},
        ),
        (
            text_rules.near_identical_tools,
            {},
            {
                "playwright": {"playwright_click": CLICK, "playwright_close": {"description": "Close the browser"}},
                "puppeteer": {"puppeteer_click": CLICK, "puppeteer_open": {"description": "Open a tab"}},
                "other": {"click": {"description": "Click an element on the page, please"}},
            },
            {"playwright/playwright_click": "puppeteer/puppeteer_click, other/click"},
        ),
        # They share a name, but no meaning.
        (text_rules.near_identical_tools, {}, {"time": {"convert_time": ZONES}, "units": {"convert_time": UNITS}}, {}),
        # Tools of one agent are not compared.
        (text_rules.near_identical_tools, {}, {"a": {"find_thing": SAME, "find_things": SAME}}, {}),
        (text_rules.undescribed_parameter, {}, {"a": {"x": LISTS, "y": {}}}, {"a/x": ": 'mode'$"}),
    ],
)
def test_what_a_rule_finds(finds: Finds, rule: Rule, about: Any, agents: Any, expected: dict[str, str]) -> None:
    found = finds(rule, about, **agents)
    assert [tool or agent for agent, tool, _ in found] == [*expected]
    assert all(re.search(words, message) for words, (_, _, message) in zip(expected.values(), found, strict=True))


@given(
    st.lists(st.frozensets(st.sampled_from("abcdefg"), max_size=6), max_size=12),
    st.sampled_from([0.3, 0.5, 0.7, 0.75, 1.0]),
)
def test_similar_pairs_are_those_that_comparing_all_finds(sets: list[frozenset[str]], least: float) -> None:
    words = {str(i): found for i, found in enumerate(sets)}
    every = {
        (a, b)
        for a, b in combinations(words, 2)
        if words[a] and words[b] and len(words[a] & words[b]) >= least * len(words[a] | words[b])
    }
    assert set(similar_pairs(words, least)) == every
