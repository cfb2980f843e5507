"""What makes a tool harmless: a person's word, or a hint that is believed; never its name."""

from __future__ import annotations

from typing import Any

import pytest

from callsheet.graphs import Tool
from callsheet.graphs.trust.harm import harm_of

READS = {"readOnlyHint": True}
VERB_FIRST = """
get_time convert_length calculate read_file list_orders search_replace find_and_replace fetch_and_merge
get_or_create_user show_and_apply list_unsubscribe read_then_move sendMessage
""".split()


def harm(name: str = "tell", about: str = "", *, trusted: bool = False, vouched: bool = False, **hints: Any) -> str:
    return harm_of(Tool(agent="a", name=name, description=about, annotations=hints), trusted=trusted, vouched=vouched)


@pytest.mark.parametrize("trusted", [False, True])
def test_no_verb_makes_a_tool_harmless(*, trusted: bool) -> None:
    assert {harm(name, "Looks up something.", trusted=trusted) for name in VERB_FIRST} == {"change"}


def test_a_hint_counts_only_if_it_is_believed() -> None:
    assert harm("get_time", **READS) == "change"
    assert harm("get_time", trusted=True, **READS) == "none"
    assert harm("sendMessage", trusted=True, **READS) == "none"
    assert harm("get_time", trusted=True, readOnlyHint="true") == "change"


def test_a_word_of_destruction_in_a_name_makes_a_believed_hint_doubtful() -> None:
    assert harm("delete_all", trusted=True, **READS) == "destroy"
    assert harm("get_and_clear_cache", trusted=True, **READS) == "destroy"
    assert harm("execute_command") == "destroy"


def test_what_a_person_names_as_reading_is_harmless_unless_its_server_says_that_it_destroys() -> None:
    assert harm("clear_sky_forecast", vouched=True) == "none"
    assert harm("clear_sky_forecast", vouched=True, destructiveHint=True) == "destroy"
