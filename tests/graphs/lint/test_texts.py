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
PLAN, MUSIC = {"description": "Makes a plan."}, {"description": "Plays music"}
WEATHER = {"a": {"description": "A powerful MCP server for the weather."}}
SAME = {"description": "Finds a thing by its name."}
ZONES, UNITS = {"description": "Convert time between time zones."}, {"description": "Seconds to hours, days, weeks."}
SCHEMA = {
    "type": "object",
    "properties": {"path": {}, "depth": {"description": "How deep."}, "mode": {"type": "string"}},
}
LISTS = {"input_schema": SCHEMA, "description": "Lists.\n\nArgs:\n  path: where"}


def described(tools: int, telling: int) -> dict[str, dict[str, str]]:
    return {f"t{i}": {"description": "Reads weather"} if i < telling else MUSIC for i in range(tools)}


@pytest.mark.parametrize(
    ("rule", "about", "agents", "expected"),
    [
        (
            text_rules.empty_description,
            {},
            {"a": {"bare": {}, "blank": {"description": " \u200b\n"}, "titled": {"title": "Adds"}, "said": PLAN}},
            {"a/bare": "", "a/blank": ""},
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
            {
                "a": {"x": PLAN, "y": {"description": "makes  a PLAN."}, "z": CLICK, "e": {}, "f": {}},
                "b": {"x": PLAN},
            },
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
        (text_rules.description_hides_tools, WEATHER, {"a": described(8, 2)}, {}),
        (
            text_rules.description_hides_tools,
            WEATHER,
            {"a": described(8, 1)},
            {"a": r"7 of its 8 tools \(t1, t2, t3 and 4 more\)"},
        ),
        # These cannot be judged: few tools, no spaces between words, no description, no tools.
        (
            text_rules.description_hides_tools,
            {"few": {"description": "Ok."}, "zh": {"description": "全网热点趋势一站式聚合服务"}},
            {"few": described(2, 0), "zh": described(8, 0), "mute": described(8, 0), "empty": {}},
            {},
        ),
        # Words count in any form.
        (
            text_rules.description_hides_tools,
            {"a": {"description": "Converts."}},
            {"a": {"convert_length": {}, "conversion_table": {}, "converting": {}}},
            {},
        ),
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
