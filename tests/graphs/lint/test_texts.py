"""Rules on names and descriptions."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

from hypothesis import given, strategies as st

from callsheet.graphs.lint import text_rules
from callsheet.graphs.lint.text_rules import similar_pairs

Finds = Callable[..., list[tuple[str, str, str]]]


def test_a_tool_that_says_nothing_is_found(finds: Finds) -> None:
    tools = {
        "bare": {},
        "blank": {"description": " \u200b\n"},
        "titled": {"title": "Adds"},
        "said": {"description": "A"},
    }
    found = finds(text_rules.empty_description, a=tools)
    assert [tool for _, tool, _ in found] == ["a/bare", "a/blank"]


def test_an_agent_that_says_nothing_is_found(finds: Finds) -> None:
    about = {"b": {"description": "Adds."}, "c": {"instructions": "Add."}}
    assert [agent for agent, _, _ in finds(text_rules.undescribed_agent, about, a={}, b={}, c={})] == ["a"]


def test_tools_of_one_agent_with_one_description_are_found_together(finds: Finds) -> None:
    same = {"description": "Makes a plan."}
    tools = {"x": same, "y": {"description": "makes  a PLAN."}, "z": {"description": "Makes a list."}, "e": {}, "f": {}}
    [(agent, tool, message)] = finds(text_rules.duplicate_description, a=tools, b={"x": same})
    assert (agent, tool) == ("a", "a/x")
    assert "as y:" in message


def test_tools_of_different_agents_that_say_the_same_are_found_with_their_names(finds: Finds) -> None:
    click = {"description": "Click an element on the page"}
    found = finds(
        text_rules.near_identical_tools,
        playwright={"playwright_click": click, "playwright_close": {"description": "Close the browser"}},
        puppeteer={"puppeteer_click": click, "puppeteer_open": {"description": "Open a tab"}},
        other={"click": {"description": "Click an element on the page, please"}},
    )
    [(_, tool, message)] = found
    assert tool == "playwright/playwright_click"
    assert "puppeteer/puppeteer_click, other/click" in message


def test_tools_that_share_a_name_but_no_meaning_are_told_apart(finds: Finds) -> None:
    zones, units = (
        {"description": "Convert time between time zones."},
        {"description": "Seconds to hours, days, weeks."},
    )
    assert finds(text_rules.near_identical_tools, time={"convert_time": zones}, units={"convert_time": units}) == []


def test_tools_of_one_agent_are_not_compared(finds: Finds) -> None:
    same = {"description": "Finds a thing by its name."}
    assert finds(text_rules.near_identical_tools, a={"find_thing": same, "find_things": same}) == []


def test_a_parameter_that_nobody_describes_is_found(finds: Finds) -> None:
    properties: dict[str, Any] = {"path": {}, "depth": {"description": "How deep."}, "mode": {"type": "string"}}
    schema = {"type": "object", "properties": properties}
    [(_, tool, message)] = finds(
        text_rules.undescribed_parameter,
        a={"x": {"input_schema": schema, "description": "Lists.\n\nArgs:\n  path: where"}, "y": {}},
    )
    assert tool == "a/x"
    assert message.endswith(": 'mode'")


def described(tools: int, telling: int) -> dict[str, dict[str, str]]:
    return {f"t{i}": {"description": "Reads weather" if i < telling else "Plays music"} for i in range(tools)}


def test_an_agent_whose_description_hides_its_tools_is_found(finds: Finds) -> None:
    about = {"a": {"description": "A powerful MCP server for the weather."}}
    assert finds(text_rules.description_hides_tools, about, a=described(8, 2)) == []
    [(agent, tool, message)] = finds(text_rules.description_hides_tools, about, a=described(8, 1))
    assert (agent, tool) == ("a", "")
    assert "7 of its 8 tools (t1, t2, t3 and 4 more)" in message


def test_agents_that_cannot_be_judged_are_passed_over(finds: Finds) -> None:
    about = {"few": {"description": "Ok."}, "zh": {"description": "全网热点趋势一站式聚合服务"}, "mute": {}}
    music = described(8, 0)
    assert finds(text_rules.description_hides_tools, about, few=described(2, 0), zh=music, mute=music, empty={}) == []


def test_words_count_in_any_form(finds: Finds) -> None:
    tools = {name: {} for name in ("convert_length", "conversion_table", "converting")}
    assert finds(text_rules.description_hides_tools, {"a": {"description": "Converts."}}, a=tools) == []


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
